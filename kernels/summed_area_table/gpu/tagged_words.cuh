#pragma once

#include <cstdint>
#include <cstring>

// Values that blocks of one kernel publish in CudaExecutor::status_words: words of a tag and 32 bits of a
// value, written and read whole, so that a reader that sees the tag sees the value, and nothing else needs
// ordering.

namespace cumulus::summed_area_table {

/// Values of 8 bytes take two words.
template <class Sum>
inline constexpr int kTaggedWordsOf = static_cast<int>(sizeof(Sum) / sizeof(std::uint32_t));

template <class Sum>
struct TaggedValue {
  std::uint64_t words[kTaggedWordsOf<Sum>];

  TaggedValue() = default;
  __device__ TaggedValue(std::uint32_t tag, Sum value) {
    std::uint32_t bits[kTaggedWordsOf<Sum>];
    memcpy(bits, &value, sizeof(value));
#pragma unroll
    for (int i = 0; i < kTaggedWordsOf<Sum>; ++i) words[i] = std::uint64_t{tag} << 32 | bits[i];
  }

  __device__ bool has(std::uint32_t tag) const {
    bool all = true;
#pragma unroll
    for (const std::uint64_t word : words) all = all && static_cast<std::uint32_t>(word >> 32) == tag;
    return all;
  }
  __device__ Sum value() const {
    std::uint32_t bits[kTaggedWordsOf<Sum>];
#pragma unroll
    for (int i = 0; i < kTaggedWordsOf<Sum>; ++i) bits[i] = static_cast<std::uint32_t>(words[i]);
    Sum sum;
    memcpy(&sum, bits, sizeof(sum));
    return sum;
  }

  __device__ void store(std::uint64_t* to) const {
    if constexpr (kTaggedWordsOf<Sum> == 1) {
      asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(words[0]) : "memory");
    } else {
      asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(words[0]), "l"(words[1])
                   : "memory");
    }
  }
  __device__ void load(const std::uint64_t* from) {
    if constexpr (kTaggedWordsOf<Sum> == 1) {
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(words[0]) : "l"(from) : "memory");
    } else {
      asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                   : "=l"(words[0]), "=l"(words[1])
                   : "l"(from)
                   : "memory");
    }
  }
};

/// Values of one call in tagged words.
template <class Sum>
struct TaggedValues {
  std::uint64_t* words;
  std::uint32_t tag;

  __device__ void publish(int index, Sum value) const {
    TaggedValue<Sum>(tag, value).store(words + index * kTaggedWordsOf<Sum>);
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
      : next_(values.words + line.index * kTaggedWordsOf<Sum>),
        stride_(line.stride * kTaggedWordsOf<Sum>),
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
