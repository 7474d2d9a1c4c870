#pragma once

#include <cstdint>

#include "kernels/primitives/status_word.cuh"

// Values that the blocks of one call publish in CudaExecutor::status_words, and sums of them as they come.

namespace cumulus::summed_area_table {

/// Values of one call in tagged words.
template <class Sum>
struct TaggedValues {
  std::uint64_t* words;
  std::uint32_t tag;

  __device__ void publish(int index, Sum value) const {
    TaggedValue<Sum>(tag, value).store(words + index * TaggedValue<Sum>::kWords);
  }
};

/// Values of a line of words: `count` of them, the first at `index`, `stride` apart.
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
  __device__ LineSum(const TaggedValues<Sum>& values, const WordLine& line)
      : next_(values.words + line.index * TaggedValue<Sum>::kWords),
        stride_(line.stride * TaggedValue<Sum>::kWords),
        left_(line.count),
        tag_(values.tag) {
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

  const std::uint64_t* next_;
  int stride_;
  int left_;
  std::uint32_t tag_;
  Sum sum_ = 0;
  TaggedValue<Sum> values_[kAtOnce];
};

}  // namespace cumulus::summed_area_table
