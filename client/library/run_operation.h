#pragma once

#include <functional>
#include <future>
#include <memory>

#include "cumulus/operation.h"
#include "library/connection.h"
#include "library/session_state.h"

namespace cumulus {

/// The one path of every operation. `session` may be null.
void run_to_callback(Connection& connection, std::shared_ptr<SessionState> session,
                     const Operation& operation, const RunOptions& options,
                     std::function<void(absl::StatusOr<Result>)> done);
std::future<absl::StatusOr<Result>> run_to_future(Connection& connection,
                                                  std::shared_ptr<SessionState> session,
                                                  const Operation& operation, const RunOptions& options);

}  // namespace cumulus
