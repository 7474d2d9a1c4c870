#pragma once

#include <cstdint>
#include <cstring>

// What blocks of one kernel tell each other in CudaExecutor::tagged_words: words of a tag and 32 bits of a
// value, written and read whole, so that who sees the tag sees the value and nothing else needs ordering.

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

  __device__ void tell(int index, Sum value) const {
    TaggedValue<Sum>(tag, value).store(words + index * kTaggedWordsOf<Sum>);
  }
};

/// Values of a line that others tell: `count` of them, the first at `index`, `stride` apart.
struct ToldLine {
  int index;
  int stride;
  int count;
};

/// Up to kAtOnce values of a line, from number `first` on, which are asked for together: each takes as long
/// as all.
template <class Sum, int kAtOnce>
class AskedValues {
 public:
  __device__ AskedValues(const TaggedValues<Sum>& told, const ToldLine& line, int first)
      : from_(told.words + (line.index + first * line.stride) * kTaggedWordsOf<Sum>),
        stride_(line.stride * kTaggedWordsOf<Sum>),
        count_(line.count - first),
        tag_(told.tag) {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i < count_) values_[i].load(from_ + i * stride_);
    }
  }

  /// True if all have been told; asks for those that have not once more.
  __device__ bool complete() {
    bool all = true;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i >= count_ || values_[i].has(tag_)) continue;
      all = false;
      values_[i].load(from_ + i * stride_);
    }
    return all;
  }

  /// Adds them to `sum`, in their order.
  __device__ void add_to(Sum& sum) const {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i < count_) sum += values_[i].value();
    }
  }

 private:
  const std::uint64_t* from_;
  int stride_;
  int count_;
  std::uint32_t tag_;
  TaggedValue<Sum> values_[kAtOnce];
};

}  // namespace cumulus::summed_area_table
