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
// ticket. Why nothing is torn: who sees the status sees the value, since both are in one access; nothing else
// needs to be ordered. Why nothing is overwritten while it is read: a word has one publisher, which writes it
// again only once its kernel knows that all have read it.

namespace cumulus {

__device__ inline void store_relaxed(std::uint64_t* to, std::uint64_t word) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}
__device__ inline std::uint64_t load_relaxed(const std::uint64_t* from) {
  std::uint64_t word = 0;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  return word;
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

/// A value of 4 bytes in 64 bits, of 8 or 12 bytes in 128; the status has the rest. All bytes zero: status 0.
template <class Value>
class StatusWord {
 public:
  static_assert(sizeof(Value) == 4 || sizeof(Value) == 8 || sizeof(Value) == 12);
  static_assert(std::is_trivially_copyable_v<Value>);
  static constexpr bool kWide = sizeof(Value) > 4;
  /// What device memory holds.
  using Bits = std::conditional_t<kWide, uint4, std::uint64_t>;

  StatusWord() = default;
  __device__ StatusWord(std::uint32_t status, const Value& value) {
    std::uint32_t parts[sizeof(Value) / 4];
    memcpy(parts, &value, sizeof(value));
    if constexpr (kWide) {
      bits_ =
          make_uint4(parts[0], parts[1], sizeof(Value) == 12 ? parts[sizeof(Value) / 4 - 1] : status, status);
    } else {
      bits_ = std::uint64_t{status} << 32 | parts[0];
    }
  }

  __device__ void store(Bits* to) const { store_relaxed(to, bits_); }
  __device__ void load(const Bits* from) { bits_ = load_relaxed(from); }

  /// Looks at every part that holds the status: the assembler may load a word in parts where one is not used.
  __device__ std::uint32_t status() const {
    if constexpr (sizeof(Value) == 4) {
      return static_cast<std::uint32_t>(bits_ >> 32);
    } else if constexpr (sizeof(Value) == 8) {
      return bits_.z & bits_.w;
    } else {
      return bits_.w;
    }
  }
  __device__ bool has(std::uint32_t status) const {
    if constexpr (sizeof(Value) == 8) {
      return bits_.z == status && bits_.w == status;
    } else {
      return this->status() == status;
    }
  }
  __device__ Value value() const {
    std::uint32_t parts[sizeof(Value) / 4];
    if constexpr (kWide) {
      parts[0] = bits_.x;
      parts[1] = bits_.y;
      if constexpr (sizeof(Value) == 12) parts[2] = bits_.z;
    } else {
      parts[0] = static_cast<std::uint32_t>(bits_);
    }
    Value value;
    memcpy(&value, parts, sizeof(value));
    return value;
  }

 private:
  Bits bits_;
};

}  // namespace cumulus
