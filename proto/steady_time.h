#pragma once

#include <absl/time/time.h>

#include <chrono>

namespace cumulus {

/// What the machine's clock said when the process first asked, and the time that has passed since. All that
/// server and client count, leases, deadlines and stalls, counts by it: a clock that is set, as after a
/// machine's start or sleep, must neither end what goes on nor let it hang.
inline absl::Time steady_now() {
  const auto passed = [] { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); };
  static const absl::Time kBegin = absl::FromChrono(std::chrono::system_clock::now()) - passed();
  return kBegin + passed();
}

/// By how much the machine's clock is ahead of steady_now(). Not by absl::Now(), which notices only after a
/// while that the clock was set.
inline absl::Duration ahead_of_steady_now() {
  return absl::FromChrono(std::chrono::system_clock::now()) - steady_now();
}

/// What the machine's clock says when steady_now() is `steady`: for messages, and for gRPC, which takes
/// deadlines so and turns them at once into such as a clock that is set does not move.
inline absl::Time on_the_clock(absl::Time steady) { return steady + ahead_of_steady_now(); }

/// The reverse, of a time that gRPC names.
inline absl::Time from_the_clock(absl::Time time) { return time - ahead_of_steady_now(); }

}  // namespace cumulus
