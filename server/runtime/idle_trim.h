#pragma once

#include <absl/time/time.h>

#include <algorithm>

namespace cumulus::server {

/// Says when a process that has worked is idle, so that memory which allocators keep may go. What an idle
/// process takes is no work: or it would give back, and take again, what it needs to be idle.
class IdleTrim {
 public:
  /// To be asked at least as often as next_look says, with the processor time that the process has used so
  /// far. True where it has worked since it was so for the last time, and is idle. A process that others
  /// leave little of the cores seems idle while it works.
  bool due(absl::Time now, absl::Duration used) {
    const absl::Duration since = std::min(now - last_, kIdle);
    const absl::Duration spent = used - used_;
    // Work of less than that, at the end of a longer time, would be taken for an idle process's.
    if (spent > std::min(since, kLook) * kBusyShare) idle_since_ = now;
    worked_ = std::max(absl::ZeroDuration(), worked_ + spent - since * kIdleShare);
    last_ = now;
    used_ = used;
    if (now - idle_since_ < kIdle || worked_ < kWork) return false;
    worked_ = absl::ZeroDuration();
    return true;
  }
  /// When to ask again.
  absl::Duration next_look() const { return worked_ < kWork ? kIdle : kLook; }

  static constexpr absl::Duration kIdle = absl::Seconds(2);
  static constexpr absl::Duration kLook = absl::Milliseconds(500);
  static constexpr absl::Duration kWork = absl::Milliseconds(150);

 private:
  // Of one core: more is work now, and less than the second is none.
  static constexpr double kBusyShare = 0.1;
  static constexpr double kIdleShare = 0.02;

  absl::Time last_ = absl::InfinitePast();
  absl::Time idle_since_ = absl::InfinitePast();
  absl::Duration used_;
  absl::Duration worked_;  // since it was due for the last time, but for what an idle process takes
};

}  // namespace cumulus::server
