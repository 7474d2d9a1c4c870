#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/slice.h"

namespace cumulus::sampling_table {

/// A loop over [0, count) that can go on in another slice.
class LongLoop {
 public:
  explicit LongLoop(std::int64_t count) : count_(count) {}

  /// Calls body(first, end) for one piece after another, from where it was to the end, or until `slice`, if
  /// there is one, is over. Whether it has come to the end.
  template <class Body>
  bool run(const Slice* slice, const Body& body) {
    while (at_ < count_) {
      const std::int64_t end = std::min(at_ + kAtOnce, count_);
      body(at_, end);
      at_ = end;
      if (at_ < count_ && slice != nullptr && slice->over()) return false;
    }
    return true;
  }

  /// What takes some tenths of a millisecond.
  static constexpr std::int64_t kAtOnce = 1 << 15;

 private:
  std::int64_t count_;
  std::int64_t at_ = 0;
};

}  // namespace cumulus::sampling_table
