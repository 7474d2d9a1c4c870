#pragma once

#include <absl/time/time.h>

#include <string>
#include <vector>

namespace cumulus::server {

/// How a supervisor starts workers anew.
struct RestartLimits {
  absl::Duration first_delay = absl::Milliseconds(100);  // doubled each time
  absl::Duration max_delay = absl::Seconds(4);
  absl::Duration healthy_after = absl::Seconds(60);  // of a worker that lasts so long the delay begins anew
  int failed_starts = 5;                             // in a row, after which the supervisor gives up
};

/// What a worker is told by its supervisor, and tells it.
class WorkerLink {
 public:
  WorkerLink() = default;
  WorkerLink(int pipe, std::vector<std::string> addresses) : pipe_(pipe), addresses_(std::move(addresses)) {}

  /// Where the worker before this one served; empty for the first.
  const std::vector<std::string>& addresses() const { return addresses_; }
  /// The worker serves at `addresses`: the next one is to serve there, too.
  void announce(const std::vector<std::string>& addresses) const;

 private:
  int pipe_ = -1;  // to the supervisor; -1: there is none
  std::vector<std::string> addresses_;
};

/// Forks workers and returns in each of them. The supervisor itself stays in here: it starts another worker
/// when one ends by a fault, passes SIGTERM, SIGINT and SIGHUP on, and ends the process with the code of a
/// worker that ended as it should, that never served, or that can no longer be started. Call it before any
/// thread exists. docs/decisions/0021 says what systemd and containers see.
WorkerLink supervise(const RestartLimits& limits);

}  // namespace cumulus::server
