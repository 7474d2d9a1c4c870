#include "server/runtime/trace.h"

#include <absl/random/random.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

constexpr const char* kHeader = "traceparent";
// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
constexpr std::size_t kVersionSize = 2;
constexpr std::size_t kTraceSize = 32;
constexpr std::size_t kSpanSize = 16;
constexpr std::size_t kFlagsSize = 2;
constexpr std::size_t kSize = kVersionSize + 1 + kTraceSize + 1 + kSpanSize + 1 + kFlagsSize;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '0'; });
}

std::string fresh_span() {
  thread_local absl::BitGen random;
  return absl::StrFormat("%016x", absl::Uniform<std::uint64_t>(random) | 1U);
}

}  // namespace

std::string TraceContext::header() const { return concat("00-", trace_id, "-", span_id, "-", flags); }

TraceContext parse_traceparent(std::string_view header) {
  if (header.size() < kSize) return {};
  const std::string_view version = header.substr(0, kVersionSize);
  const std::string_view trace = header.substr(kVersionSize + 1, kTraceSize);
  const std::string_view parent = header.substr(kVersionSize + 1 + kTraceSize + 1, kSpanSize);
  const std::string_view flags = header.substr(kSize - kFlagsSize, kFlagsSize);
  if (header[kVersionSize] != '-' || header[kVersionSize + 1 + kTraceSize] != '-' ||
      header[kSize - kFlagsSize - 1] != '-')
    return {};
  for (const std::string_view part : {version, trace, parent, flags}) {
    if (!is_hex(part)) return {};
  }
  if (version == "ff" || is_zero(trace) || is_zero(parent)) return {};
  // Later versions may add fields; version 00 has none.
  const bool more = header.size() > kSize;
  if (more && (version == "00" || header[kSize] != '-')) return {};
  return {std::string(trace), fresh_span(), std::string(parent), std::string(flags)};
}

TraceContext take_trace(grpc::CallbackServerContext& context) {
  const auto [first, last] = context.client_metadata().equal_range(kHeader);
  if (first == last || std::next(first) != last) return {};
  const TraceContext trace = parse_traceparent({first->second.data(), first->second.size()});
  if (!trace.empty()) context.AddInitialMetadata(kHeader, trace.header());
  return trace;
}

}  // namespace cumulus::server
