#pragma once

#include <absl/time/time.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>

namespace cumulus::server {

/// Wakes one thread at the earliest of the times that others ask for, which then need not be looked for
/// every now and then. Thread-safe.
class Alarm {
 public:
  /// After what there is to be done at that time can be seen. Costs next to nothing where an earlier time has
  /// been asked for.
  void ask(absl::Time when);
  /// Waits until the earliest time asked for since it was so for the last time; false once it is stopped. For
  /// one thread.
  bool wait();
  void stop();

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::int64_t> earliest_ = kNever;  // in nanoseconds of steady_now(); written with the lock held
  bool stopped_ = false;
};

}  // namespace cumulus::server
