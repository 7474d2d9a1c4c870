#pragma once

#include <absl/time/time.h>

namespace cumulus::server {

/// Says when a process that has worked is idle, so that memory which allocators keep may go.
class IdleTrim {
 public:
  /// To be asked a few times a second, with the processor time that the process has used so far. True where
  /// it has worked since it was so for the last time, and is idle. A process that others leave little of the
  /// cores seems idle while it works.
  bool due(absl::Time now, absl::Duration used) {
    constexpr double kBusyShare = 0.1;  // of one core
    if (used - used_ > (now - last_) * kBusyShare) idle_since_ = now;
    last_ = now;
    used_ = used;
    if (now - idle_since_ < kIdle || used - used_before_ < kWork) return false;
    used_before_ = used;
    return true;
  }

  static constexpr absl::Duration kIdle = absl::Seconds(2);
  /// More than an idle process uses in a minute.
  static constexpr absl::Duration kWork = absl::Milliseconds(150);

 private:
  absl::Time last_ = absl::InfinitePast();
  absl::Time idle_since_ = absl::InfinitePast();
  absl::Duration used_;
  absl::Duration used_before_;  // when it was due for the last time
};

}  // namespace cumulus::server
