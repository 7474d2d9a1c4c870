#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <string>

#include "library/cancellation.h"
#include "library/connection.h"

namespace cumulus {

/// One streaming call of serialised messages, driven by the calling thread. One operation at a time:
/// start_...() begins it, wait() ends it and says whether the stream goes on.
class ByteStream {
 public:
  /// Starts the call over that lane of the connection.
  ByteStream(Connection& connection, int lane, const std::string& method, const CallContext& terms,
             absl::Time deadline, const Cancellation& cancellation);
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  ~ByteStream();

  void start_write(const grpc::ByteBuffer& message, bool last);
  void start_read(grpc::ByteBuffer& message);
  bool wait();

  /// Stops the call early; finish() still has to follow.
  void cancel();

  /// The call's status, once a wait() has answered false or the last message has been read.
  absl::Status finish();

 private:
  const std::shared_ptr<grpc::ClientContext> context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  CancellationScope scope_;
};

}  // namespace cumulus
