#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <future>
#include <memory>
#include <string>

#include "cumulus/operation.h"
#include "library/connection.h"
#include "library/session_state.h"

namespace cumulus {

struct Operation::Request {
  std::string method;
  /// The request without its RequestOptions. They are field 1 of every operation's request, so that
  /// running it puts them in front: serialised messages concatenate.
  grpc::ByteBuffer body;
};

/// The one path of every operation. `session` may be null.
void run_to_callback(Connection& connection, std::shared_ptr<SessionState> session,
                     const Operation& operation, const RunOptions& options,
                     std::function<void(absl::StatusOr<Result>)> done);
std::future<absl::StatusOr<Result>> run_to_future(Connection& connection,
                                                  std::shared_ptr<SessionState> session,
                                                  const Operation& operation, const RunOptions& options);

}  // namespace cumulus
