#pragma once

#include <absl/time/clock.h>
#include <absl/time/time.h>

#include <chrono>

namespace cumulus::server {

/// What the machine's clock said when the process first asked, and the time that has passed since. Leases,
/// and the Alarm that looks after them, count by it: a clock that is set an hour forward, as after a
/// machine's start or sleep, must not end them all.
inline absl::Time steady_now() {
  const auto passed = [] { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); };
  static const absl::Time kBegin = absl::Now() - passed();
  return kBegin + passed();
}

/// What the machine's clock says when steady_now() is `steady`: for others to read.
inline absl::Time on_the_clock(absl::Time steady) { return absl::Now() + (steady - steady_now()); }

}  // namespace cumulus::server
