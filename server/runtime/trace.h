#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <string_view>

namespace cumulus::server {

/// Where a call stands in a trace of its client's (https://www.w3.org/TR/trace-context/); all empty where
/// the client named none.
struct TraceContext {
  std::string trace_id;   // 32 lowercase hexadecimal digits
  std::string span_id;    // 16: of this call, made here
  std::string parent_id;  // 16: of the span that called
  std::string flags;      // 2, as they came

  bool empty() const { return trace_id.empty(); }
  /// The header `traceparent` that names this call as the parent.
  std::string header() const;
};

/// Reads a header `traceparent`. What the standard does not allow counts as no header: a call is never
/// refused for its trace. The span gets a fresh name.
TraceContext parse_traceparent(std::string_view header);

/// The trace of a call, which is told its span in the initial metadata, under `traceparent`. Two headers are
/// no header. Call it once, before the answer begins.
TraceContext take_trace(grpc::CallbackServerContext& context);

}  // namespace cumulus::server
