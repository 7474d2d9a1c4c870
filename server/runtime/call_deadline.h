#pragma once

#include <absl/status/status.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>

#include <chrono>

#include "server/pipeline/errors.h"

namespace cumulus::server {

/// When a call ends: its client's deadline, or the longest that the server allows where that comes first.
struct CallDeadline {
  absl::Time time;
  absl::Duration servers = absl::InfiniteDuration();  // that, where it came first

  static CallDeadline of(std::chrono::system_clock::time_point clients, absl::Duration longest) {
    const absl::Time asked = absl::FromChrono(clients);
    const absl::Time allowed = absl::Now() + longest;
    return asked < allowed ? CallDeadline{asked} : CallDeadline{allowed, longest};
  }
  /// `status`, which says so where it is late by the server's own limit.
  absl::Status named(const absl::Status& status) const {
    return servers != absl::InfiniteDuration() ? with_servers_deadline(status, servers) : status;
  }
};

}  // namespace cumulus::server
