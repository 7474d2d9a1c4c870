#pragma once

#include <absl/time/time.h>

namespace cumulus::server {

/// Says when a process that was busy has become idle, so that memory which allocators keep may go.
class IdleTrim {
 public:
  /// To be asked a few times a second, with the processor time that the process has used so far. True once
  /// after each time that it was busy.
  bool due(absl::Time now, absl::Duration used) {
    constexpr double kBusyShare = 0.1;  // of one core
    const absl::Duration passed = now - last_;
    if (used - used_ > passed * kBusyShare) {
      idle_since_ = now;
      trimmed_ = false;
    }
    last_ = now;
    used_ = used;
    if (trimmed_ || now - idle_since_ < kIdle) return false;
    trimmed_ = true;
    return true;
  }

  static constexpr absl::Duration kIdle = absl::Seconds(2);

 private:
  absl::Time last_ = absl::InfinitePast();
  absl::Time idle_since_ = absl::InfinitePast();
  absl::Duration used_;
  bool trimmed_ = true;
};

}  // namespace cumulus::server
