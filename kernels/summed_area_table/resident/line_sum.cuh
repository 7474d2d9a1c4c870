#pragma once

#include <cstdint>

#include "kernels/primitives/status_word.cuh"
#include "kernels/summed_area_table/gpu/call_words.cuh"

// Sums of values that other blocks publish, as they come.

namespace cumulus::summed_area_table {

/// Words in a line: `count` of them, the first at `index`, `stride` apart.
struct WordLine {
  int index;
  int stride;
  int count;
};

/// The sum of a line's values, in their order, kAtOnce of which are polled together: each takes as long as
/// all.
template <class Sum, int kAtOnce>
class LineSum {
 public:
  __device__ LineSum(const CallWords<Sum>& words, const WordLine& line)
      : next_(words.words + line.index), stride_(line.stride), left_(line.count), tag_(words.tag) {
    load_next();
  }

  /// True if all values under way have come; those that have not are loaded once more.
  __device__ bool poll() {
    bool all = true;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i >= left_ || values_[i].has(tag_)) continue;
      all = false;
      values_[i].load(next_ + i * stride_);
    }
    return all;
  }

  /// Adds the values under way, once poll() is true, and loads the next; false if there are none left.
  __device__ bool advance() {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i < left_) sum_ += values_[i].value();
    }
    left_ -= kAtOnce;
    next_ += kAtOnce * stride_;
    if (left_ <= 0) return false;
    load_next();
    return true;
  }

  __device__ Sum sum() const { return sum_; }

 private:
  __device__ void load_next() {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i < left_) values_[i].load(next_ + i * stride_);
    }
  }

  const typename StatusWord<Sum>::Bits* next_;
  int stride_;
  int left_;
  std::uint32_t tag_;
  Sum sum_ = 0;
  StatusWord<Sum> values_[kAtOnce];
};

}  // namespace cumulus::summed_area_table
