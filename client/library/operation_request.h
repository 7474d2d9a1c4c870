#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cumulus/operation.h"
#include "cumulus/v1/array.pb.h"

namespace cumulus {

/// A request without its RequestOptions. They are field 1 of every operation's request, so that running it
/// puts them in front: serialised messages concatenate.
struct Operation::Request {
  Request(std::string its_method, const google::protobuf::Message& request,
          std::vector<std::shared_ptr<BufferState>> its_buffers);

  const std::string method;
  const std::vector<std::shared_ptr<BufferState>> buffers;  // that it reads

  /// The whole message, with `options` in front. `names` are those of `buffers`, in their order.
  /// INVALID_ARGUMENT where it is larger than a server takes.
  absl::StatusOr<grpc::ByteBuffer> encode(const std::vector<std::string>& names, const std::string& session,
                                          const RunOptions& options) const;
  /// The message without options.
  grpc::ByteBuffer body_with(const std::vector<std::string>& names) const;

 private:
  grpc::ByteBuffer nameless_;  // of a request that reads no buffer: serialised once
  mutable std::mutex mutex_;   // of the message
  std::unique_ptr<google::protobuf::Message> message_;
  std::vector<v1::Source*> fields_;  // of the message, in the order of the buffers
};

}  // namespace cumulus
