#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <chrono>

#include "proto/steady_time.h"
#include "server/pipeline/errors.h"

namespace cumulus::server {

/// When a call ends, by steady_now(): its client's deadline, or the longest that the server allows where that
/// comes first.
struct CallDeadline {
  absl::Time time;
  absl::Duration servers = absl::InfiniteDuration();  // that, where it came first

  /// `clients` as gRPC has it.
  static CallDeadline of(std::chrono::system_clock::time_point clients, absl::Duration longest) {
    return at(from_the_clock(absl::FromChrono(clients)), longest);
  }
  static CallDeadline at(absl::Time asked, absl::Duration longest) {
    const absl::Time allowed = steady_now() + longest;
    return asked < allowed ? CallDeadline{asked} : CallDeadline{allowed, longest};
  }
  /// `status`, which says so where it is late by the server's own limit.
  absl::Status named(const absl::Status& status) const {
    return servers != absl::InfiniteDuration() ? with_servers_deadline(status, servers) : status;
  }
};

}  // namespace cumulus::server
