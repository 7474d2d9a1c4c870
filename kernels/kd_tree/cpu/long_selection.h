#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/core/slice.h"
#include "kernels/kd_tree/cpu/candidate.h"

// std::nth_element of so many candidates that it goes on from one slice of a call to the next.

namespace cumulus::kd_tree {

/// How far the selection among [begin, end) has come. The candidate looked for is in [low, high), around
/// which all others are as they are to be. As in R. Floyd and R. Rivest, "Expected time bounds for
/// selection", CACM 1975, two candidates of a sample between which it very probably is divide the range, in a
/// pass without branches each.
template <class T>
class LongSelection {
 public:
  LongSelection(Candidate<T>* begin, Candidate<T>* nth, Candidate<T>* end)
      : low_(begin), high_(end), nth_(nth), divided_(begin), seen_(begin) {}

  /// Goes on from where it was, to the end or until `slice` is over. Whether `nth` is as it is to be: none
  /// before it is greater, and none after it is less.
  bool run(const Slice& slice) {
    while (high_ - low_ > kSelectedAtOnce) {
      if (pass_ == Pass::kNone) begin_pass(Pass::kBelowLower);
      const bool whole = pass_ == Pass::kBelowLower
                             ? divide(slice, [this](const Candidate<T>& c) { return c < lower_; })
                             : divide(slice, [this](const Candidate<T>& c) { return !(upper_ < c); });
      if (!whole) return false;
      conclude_pass();
      if (slice.over()) return false;
    }
    std::nth_element(low_, nth_, high_);
    return true;
  }

 private:
  static constexpr std::ptrdiff_t kSelectedAtOnce = 1 << 15;
  static constexpr std::ptrdiff_t kSeenAtOnce = 1 << 14;
  enum class Pass { kNone, kBelowLower, kUpToUpper };

  void begin_pass(Pass pass) {
    if (pass == Pass::kBelowLower) sample();
    pass_ = pass;
    divided_ = seen_ = low_;
  }

  /// Moves those of which `goes_left` holds to the front: [low, divided) of those that were seen.
  template <class GoesLeft>
  bool divide(const Slice& slice, const GoesLeft& goes_left) {
    while (seen_ < high_) {
      Candidate<T>* const end = seen_ + std::min(kSeenAtOnce, high_ - seen_);
      Candidate<T>* divided = divided_;
      for (Candidate<T>* i = seen_; i < end; ++i) {
        const Candidate<T> candidate = *i;
        *i = *divided;
        *divided = candidate;
        divided += goes_left(candidate) ? 1 : 0;
      }
      divided_ = divided;
      seen_ = end;
      if (seen_ < high_ && slice.over()) return false;
    }
    return true;
  }

  void conclude_pass() {
    const bool is_left = nth_ < divided_;
    (is_left ? high_ : low_) = divided_;
    if (pass_ == Pass::kBelowLower && !is_left) return begin_pass(Pass::kUpToUpper);
    pass_ = Pass::kNone;
  }

  void sample() {
    const auto count = static_cast<std::size_t>(high_ - low_);
    const auto points = static_cast<double>(count);
    std::vector<Candidate<T>> sampled(static_cast<std::size_t>(0.5 * std::cbrt(points * points)));
    const std::size_t size = sampled.size();
    for (std::size_t i = 0; i < size; ++i) sampled[i] = low_[(2 * i + 1) * count / (2 * size)];
    const double share = static_cast<double>(nth_ - low_) / points;
    const double margin = 3 * std::sqrt(static_cast<double>(size) * share * (1 - share)) + 1;
    const double centre = share * static_cast<double>(size);
    const auto last = static_cast<double>(size - 1);
    const auto at = [&](double place) {
      return sampled.begin() + static_cast<std::ptrdiff_t>(std::clamp(place, 0.0, last));
    };
    const auto lower = at(centre - margin);
    const auto upper = at(centre + margin);
    std::nth_element(sampled.begin(), lower, sampled.end());
    std::nth_element(lower, upper, sampled.end());
    lower_ = *lower;
    upper_ = *upper;
  }

  Candidate<T>* low_;
  Candidate<T>* high_;
  Candidate<T>* nth_;
  Pass pass_ = Pass::kNone;
  Candidate<T> lower_{};
  Candidate<T> upper_{};
  Candidate<T>* divided_;
  Candidate<T>* seen_;
};

}  // namespace cumulus::kd_tree
