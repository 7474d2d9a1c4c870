#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

// Status words: a value and a status (a state of decoupled look-back, or the tag of a call or a round) that
// one block publishes while others poll. Reads and writes are relaxed, at the scope of the device, past the
// caches of a multiprocessor, and whole.
//
// Why it makes progress: a store needs no other block; a poll comes past the L1 cache, so that it sees the
// store some time. That the publisher runs at all is its kernel's affair: it is resident, or has a lower
// ticket. Why nothing is torn: who sees the status sees the value, since both are in one access, or, of a
// value in two words, each has the tag; nothing else needs to be ordered. Why nothing is overwritten while it
// is read: a word has one publisher, which writes it again only once its kernel knows that all have read it.

namespace cumulus {

__device__ inline void store_relaxed(std::uint64_t* to, std::uint64_t word) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}
__device__ inline std::uint64_t load_relaxed(const std::uint64_t* from) {
  std::uint64_t word = 0;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  return word;
}

/// Two neighbouring words in one access, each of which is whole. At a multiple of 16 bytes.
__device__ inline void store_relaxed(std::uint64_t* to, std::uint64_t first, std::uint64_t second) {
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(first), "l"(second) : "memory");
}
__device__ inline void load_relaxed(const std::uint64_t* from, std::uint64_t& first, std::uint64_t& second) {
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(first), "=l"(second)
               : "l"(from)
               : "memory");
}

__device__ inline void store_relaxed(uint4* to, const uint4& word) {
  asm volatile(
      "{\n\t.reg .b64 low, high;\n\t.reg .b128 whole;\n\t"
      "mov.b64 low, {%1, %2};\n\tmov.b64 high, {%3, %4};\n\tmov.b128 whole, {low, high};\n\t"
      "st.relaxed.gpu.global.b128 [%0], whole;\n\t}" ::"l"(to),
      "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
      : "memory");
}
__device__ inline uint4 load_relaxed(const uint4* from) {
  uint4 word;
  asm volatile(
      "{\n\t.reg .b64 low, high;\n\t.reg .b128 whole;\n\t"
      "ld.relaxed.gpu.global.b128 whole, [%4];\n\tmov.b128 {low, high}, whole;\n\t"
      "mov.b64 {%0, %1}, low;\n\tmov.b64 {%2, %3}, high;\n\t}"
      : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
      : "l"(from)
      : "memory");
  return word;
}

/// The same of 64 bits of a value and 64 of a status.
__device__ inline void store_relaxed(ulonglong2* to, const ulonglong2& word) {
  asm volatile(
      "{ .reg .b128 whole; mov.b128 whole, {%1, %2}; st.relaxed.gpu.global.b128 [%0], whole; }" ::"l"(to),
      "l"(word.x), "l"(word.y)
      : "memory");
}
__device__ inline ulonglong2 load_relaxed(const ulonglong2* from) {
  ulonglong2 word;
  asm volatile("{ .reg .b128 whole; ld.relaxed.gpu.global.b128 whole, [%2]; mov.b128 {%0, %1}, whole; }"
               : "=l"(word.x), "=l"(word.y)
               : "l"(from)
               : "memory");
  return word;
}

/// A value of 4 bytes in 64 bits, of 8 or 12 bytes in 128; the status comes behind it. All bytes zero:
/// status 0.
template <class Value>
class StatusWord {
 public:
  static_assert(sizeof(Value) == 4 || sizeof(Value) == 8 || sizeof(Value) == 12);
  static_assert(std::is_trivially_copyable_v<Value>);
  static constexpr int kParts = sizeof(Value) / 4;
  /// What device memory holds.
  using Bits =
      std::conditional_t<kParts == 1, std::uint64_t, std::conditional_t<kParts == 2, ulonglong2, uint4>>;

  StatusWord() = default;
  __device__ StatusWord(std::uint32_t status, const Value& value) {
    if constexpr (kParts == 1) {
      std::uint32_t part;
      memcpy(&part, &value, sizeof(value));
      bits_ = std::uint64_t{status} << 32 | part;
    } else if constexpr (kParts == 2) {
      memcpy(&bits_.x, &value, sizeof(value));
      bits_.y = status;
    } else {
      std::uint32_t parts[kParts];
      memcpy(parts, &value, sizeof(value));
      bits_ = make_uint4(parts[0], parts[1], parts[2], status);
    }
  }

  __device__ void store(Bits* to) const { store_relaxed(to, bits_); }
  __device__ void load(const Bits* from) { bits_ = load_relaxed(from); }

  __device__ std::uint32_t status() const {
    if constexpr (kParts == 1) {
      return static_cast<std::uint32_t>(bits_ >> 32);
    } else if constexpr (kParts == 2) {
      return static_cast<std::uint32_t>(bits_.y);
    } else {
      return bits_.w;
    }
  }
  __device__ bool has(std::uint32_t status) const { return this->status() == status; }
  __device__ Value value() const {
    Value value;
    if constexpr (kParts == 1) {
      const auto part = static_cast<std::uint32_t>(bits_);
      memcpy(&value, &part, sizeof(value));
    } else if constexpr (kParts == 2) {
      memcpy(&value, &bits_.x, sizeof(value));
    } else {
      const std::uint32_t parts[kParts] = {bits_.x, bits_.y, bits_.z};
      memcpy(&value, parts, sizeof(value));
    }
    return value;
  }

 private:
  Bits bits_;
};

/// A value of 4 or 8 bytes in one or two words of 64 bits, each with the tag above 32 bits of the value: for
/// memory that is not cleared between calls, which lay words of either number there. Wherever a word of an
/// earlier call comes to lie, it has an earlier tag where a tag is looked for.
template <class Value>
class TaggedValue {
 public:
  static_assert(sizeof(Value) == 4 || sizeof(Value) == 8);
  static_assert(std::is_trivially_copyable_v<Value>);
  static constexpr int kWords = sizeof(Value) / 4;

  TaggedValue() = default;
  __device__ TaggedValue(std::uint32_t tag, const Value& value) {
    std::uint32_t parts[kWords];
    memcpy(parts, &value, sizeof(value));
#pragma unroll
    for (int i = 0; i < kWords; ++i) words_[i] = std::uint64_t{tag} << 32 | parts[i];
  }

  __device__ void store(std::uint64_t* to) const {
    if constexpr (kWords == 1) {
      store_relaxed(to, words_[0]);
    } else {
      store_relaxed(to, words_[0], words_[1]);
    }
  }
  __device__ void load(const std::uint64_t* from) {
    if constexpr (kWords == 1) {
      words_[0] = load_relaxed(from);
    } else {
      load_relaxed(from, words_[0], words_[1]);
    }
  }

  __device__ bool has(std::uint32_t tag) const {
    bool all = true;
#pragma unroll
    for (int i = 0; i < kWords; ++i) all = all && static_cast<std::uint32_t>(words_[i] >> 32) == tag;
    return all;
  }
  __device__ Value value() const {
    std::uint32_t parts[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) parts[i] = static_cast<std::uint32_t>(words_[i]);
    Value value;
    memcpy(&value, parts, sizeof(value));
    return value;
  }

 private:
  std::uint64_t words_[kWords];
};

}  // namespace cumulus
