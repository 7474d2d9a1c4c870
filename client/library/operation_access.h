#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>

#include "cumulus/operation.h"
#include "cumulus/v1/array.pb.h"
#include "library/connection.h"
#include "library/session_state.h"

namespace cumulus {

struct Operation::Request {
  std::string method;
  /// The request without its RequestOptions. They are field 1 of every operation's request, so that
  /// running it puts them in front: serialised messages concatenate.
  grpc::ByteBuffer body;
};

class OperationAccess {
 public:
  static const Operation::Request& request(const Operation& operation) { return *operation.request_; }

  /// `rpc` is the RPC's name in cumulus.v1.Operations.
  static Operation make(std::string_view rpc, const google::protobuf::MessageLite& request) {
    return Operation(std::make_shared<Operation::Request>(
        Operation::Request{"/cumulus.v1.Operations/" + std::string(rpc), wire::serialize(request)}));
  }
};

class SourceEncoder {
 public:
  static void encode(const Source& source, v1::Source& out);
};

/// The one path of every operation. `session` may be null.
void run_to_callback(Connection& connection, std::shared_ptr<SessionState> session,
                     const Operation& operation, const RunOptions& options,
                     std::function<void(absl::StatusOr<Result>)> done);
std::future<absl::StatusOr<Result>> run_to_future(Connection& connection,
                                                  std::shared_ptr<SessionState> session,
                                                  const Operation& operation, const RunOptions& options);

}  // namespace cumulus
