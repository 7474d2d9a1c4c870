#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>

#include "kernels/core/slice.h"
#include "tests/support/executors.h"

namespace cumulus::testing {

/// Wants each slice to end after a millisecond, and counts them.
class ImpatientTurns final : public Turns {
 public:
  void yield() override {
    if (slices_++ > 0) end_slice();
    processor_begin_ = processor_time();
    begin_ = std::chrono::steady_clock::now();
  }
  bool wanted() const override {
    return std::chrono::steady_clock::now() - begin_.load() >= std::chrono::milliseconds(1);
  }
  int slices() const { return slices_; }
  /// What the longest slice took of the processor time of all but the last one, of a call on one thread.
  double longest_share() const { return longest_ / all_; }

 private:
  /// Seconds of this thread, which those of other programs add nothing to.
  static double processor_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  void end_slice() {
    const double took = processor_time() - processor_begin_;
    longest_ = std::max(longest_, took);
    all_ += took;
  }

  int slices_ = 0;
  std::atomic<std::chrono::steady_clock::time_point> begin_ = std::chrono::steady_clock::now();
  double processor_begin_ = 0;
  double longest_ = 0;
  double all_ = 0;
};

/// A backend whose calls take as long on many cores as on one.
class OneThread {
 public:
  static constexpr Space kSpace = Space::kHost;
  CpuExecutor& executor() { return executor_; }

 private:
  CpuExecutor executor_{1};
};

}  // namespace cumulus::testing
