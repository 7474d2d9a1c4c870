#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/runtime/configuration.h"
#include "server/runtime/trace.h"

namespace cumulus::server {

/// Makes spdlog's default logger write as configured, and lets log_call write, both through a LogWriter:
/// nobody who logs waits for who reads. INVALID_ARGUMENT where the file cannot be written. Call before
/// threads log.
absl::Status start_logging(const Configuration::Logging& logging);

/// Opens the log file anew, so that one that was renamed can be taken away, and says so in the log. Standard
/// error stays.
void reopen_log();

/// Waits until all that was logged is written; false where `limit` is over first.
bool flush_log(absl::Duration limit);

/// Lines that nobody can read, since start_logging.
std::uint64_t dropped_log_lines();

/// A finished RPC.
struct CallRecord {
  std::string method;
  std::string request_id;
  std::string client;     // the peer
  std::string principal;  // who the peer is
  std::size_t bytes = 0;  // that it was admitted with, or moved
  double seconds = 0;     // from its arrival to its answer
  // Of them; all 0 for calls that have no stages.
  double queue_seconds = 0;
  double input_seconds = 0;
  double compute_seconds = 0;
  double output_seconds = 0;
  absl::Status status = absl::OkStatus();
  TraceContext trace = {};
  bool ran = false;  // on a device: the stages say something
};

/// `text` as the inside of a JSON string; also keeps what clients send from forging lines of the log.
std::string json_escaped(std::string_view text);

/// One line, or one JSON object, for each finished RPC: at level info, or error where the server is at fault.
/// Does nothing in a program that has not called start_logging.
void log_call(const CallRecord& call);

}  // namespace cumulus::server
