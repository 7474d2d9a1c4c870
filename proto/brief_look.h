#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace cumulus {

/// While it lives, its thread looks for something all the time that will be there at once. A core that sleeps
/// takes longer to wake than what it waits for takes to come.
class BriefLook {
 public:
  /// `somebody_looks` is one for all threads of this process that look for the same kind of thing.
  /// `may_look`: the process has cores to spare (has_many_cores()).
  BriefLook(bool may_look, std::atomic<bool>& somebody_looks, std::chrono::microseconds limit)
      : somebody_looks_(somebody_looks),
        only_one_(may_look && !somebody_looks.exchange(true)),
        end_(Clock::now() + limit) {}
  ~BriefLook() {
    if (only_one_) somebody_looks_ = false;
  }
  BriefLook(const BriefLook&) = delete;
  BriefLook& operator=(const BriefLook&) = delete;

  /// False once it is time to sleep; at once where this process has few cores, which others need meanwhile,
  /// or another thread looks already.
  bool goes_on() const {
    if (!only_one_ || Clock::now() > end_) return false;
    std::this_thread::yield();
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::atomic<bool>& somebody_looks_;
  const bool only_one_;
  const Clock::time_point end_;
};

}  // namespace cumulus
