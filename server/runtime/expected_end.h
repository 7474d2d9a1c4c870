#pragma once

#include <absl/time/time.h>

#include <algorithm>
#include <chrono>

namespace cumulus::server {

/// About when work on a device ends, as what it took the last time tells. Near to that its end is looked for
/// all the time, so that it is noticed at once, and no core is kept busy for the rest of the time.
class ExpectedEnd {
 public:
  using Clock = std::chrono::steady_clock;

  /// In so long a time; infinite where nobody knows, which is never near.
  ExpectedEnd(Clock::time_point now, absl::Duration from_now) {
    if (from_now == absl::InfiniteDuration()) return;
    // What a kernel takes varies by some hundredths from one time to the next, and what is around it by more.
    const absl::Duration around =
        std::clamp(from_now / kPartAround, absl::Microseconds(50), absl::Microseconds(500));
    begin_ = now + absl::ToChronoNanoseconds(from_now - around);
    end_ = now + absl::ToChronoNanoseconds(from_now + around);
  }

  bool is_known() const { return begin_ != Clock::time_point::max(); }
  bool is_near(Clock::time_point now) const { return begin_ <= now && now <= end_; }

 private:
  static constexpr int kPartAround = 50;

  Clock::time_point begin_ = Clock::time_point::max();
  Clock::time_point end_ = Clock::time_point::min();
};

}  // namespace cumulus::server
