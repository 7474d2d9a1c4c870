#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <string>

#include "server/runtime/configuration.h"

namespace cumulus::server {

/// Sets the process's log up: text or one JSON object a line, to standard error or a file.
/// INVALID_ARGUMENT where the file cannot be opened.
absl::Status start_logging(const Configuration::Logging& settings);

/// What the log says of a finished call.
struct CallRecord {
  std::string method;
  std::string request_id;
  std::string client;
  std::size_t bytes = 0;  // that it was admitted with
  double seconds = 0;     // from its arrival to its answer
  double queue_seconds = 0;
  double compute_seconds = 0;
  absl::Status status;
};

/// One line: at level info where the call succeeded or the client is to blame, else warn.
void log_call(const CallRecord& call);

}  // namespace cumulus::server
