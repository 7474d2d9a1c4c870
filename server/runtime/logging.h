#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <string>

#include "server/runtime/configuration.h"

namespace cumulus::server {

/// Makes spdlog's default logger write as configured, and lets log_call write. INVALID_ARGUMENT where the
/// file cannot be written. Call before threads log.
absl::Status start_logging(const Configuration::Logging& logging);

/// A finished RPC.
struct CallRecord {
  std::string method;
  std::string request_id;
  std::string client;     // the peer
  std::size_t bytes = 0;  // that it was admitted with, or moved
  double seconds = 0;     // from its arrival to its answer
  // Of them; all 0 for calls that have no stages.
  double queue_seconds = 0;
  double input_seconds = 0;
  double compute_seconds = 0;
  double output_seconds = 0;
  absl::Status status = absl::OkStatus();
};

/// One line, or one JSON object, for each finished RPC: at level info, or error where the server is at fault.
/// Does nothing in a program that has not called start_logging.
void log_call(const CallRecord& call);

}  // namespace cumulus::server
