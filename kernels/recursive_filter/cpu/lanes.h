#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/recursive_filter/tuning.h"

namespace cumulus::recursive_filter {

/// 64 bytes of Real side by side, in registers of kBytes: the pixels of as many rows or columns. Enough of
/// them to compute one while another waits for its last result, few enough that the states of all stay in
/// registers.
template <class Real, int kBytes>
class Pack {
  using Register __attribute__((vector_size(kBytes))) = Real;

 public:
  static constexpr int kCount = 64 / static_cast<int>(sizeof(Real));

  /// From kCount elements, which may be of a narrower type.
  template <class T>
  [[gnu::always_inline]] static Pack load(const T* from) {
    using Elements __attribute__((vector_size(kElements * sizeof(T)))) = T;
    Pack pack;
    for (int i = 0; i < kRegisters; ++i) {
      Elements elements;
      std::memcpy(&elements, from + i * kElements, sizeof(elements));
      pack.registers_[i] = __builtin_convertvector(elements, Register);
    }
    return pack;
  }
  template <class T>
  [[gnu::always_inline]] void store(T* to) const {
    using Elements __attribute__((vector_size(kElements * sizeof(T)))) = T;
    for (int i = 0; i < kRegisters; ++i) {
      const Elements elements = __builtin_convertvector(registers_[i], Elements);
      std::memcpy(to + i * kElements, &elements, sizeof(elements));
    }
  }

  [[gnu::always_inline]] Pack& operator+=(const Pack& other) {
    for (int i = 0; i < kRegisters; ++i) registers_[i] += other.registers_[i];
    return *this;
  }
  [[gnu::always_inline]] Pack& operator-=(const Pack& other) {
    for (int i = 0; i < kRegisters; ++i) registers_[i] -= other.registers_[i];
    return *this;
  }
  [[gnu::always_inline]] Pack& operator*=(Real factor) {
    for (Register& one : registers_) one *= factor;
    return *this;
  }
  [[gnu::always_inline]] friend Pack operator+(const Pack& a, const Pack& b) {
    Pack sum = a;
    return sum += b;
  }
  [[gnu::always_inline]] friend Pack operator-(const Pack& a, const Pack& b) {
    Pack difference = a;
    return difference -= b;
  }
  [[gnu::always_inline]] friend Pack operator*(Real factor, const Pack& pack) {
    Pack product = pack;
    return product *= factor;
  }

 private:
  static constexpr int kRegisters = 64 / kBytes;
  static constexpr int kElements = kBytes / static_cast<int>(sizeof(Real));

  Register registers_[kRegisters] = {};
};

// Floats in groups of four, for transposing.
using Quad __attribute__((vector_size(16))) = float;
using TwoQuads __attribute__((vector_size(32))) = float;

/// The four elements at `from` and, in a second group, those `step` further on.
[[gnu::always_inline]] inline void load_groups(const float* from, std::int64_t /*step*/, Quad& quad) {
  std::memcpy(&quad, from, sizeof(quad));
}
[[gnu::always_inline]] inline void load_groups(const float* from, std::int64_t step, TwoQuads& quads) {
  Quad first, second;
  std::memcpy(&first, from, sizeof(first));
  std::memcpy(&second, from + step, sizeof(second));
  quads = __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7);
}
/// a0 b0 a1 b1 of each group.
[[gnu::always_inline]] inline void interleave_low(const Quad& a, const Quad& b, Quad& low) {
  low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
}
[[gnu::always_inline]] inline void interleave_low(const TwoQuads& a, const TwoQuads& b, TwoQuads& low) {
  low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
}
/// a2 b2 a3 b3 of each group.
[[gnu::always_inline]] inline void interleave_high(const Quad& a, const Quad& b, Quad& high) {
  high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
}
[[gnu::always_inline]] inline void interleave_high(const TwoQuads& a, const TwoQuads& b, TwoQuads& high) {
  high = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
}
template <class Quads>
[[gnu::always_inline]] inline void interleave(const Quads& a, const Quads& b, Quads& low, Quads& high) {
  interleave_low(a, b, low);
  interleave_high(a, b, high);
}

/// Turns kLanes rows of kLanes elements, `from_step` apart, into columns, `to_step` apart.
template <int kBytes>
[[gnu::always_inline]] inline void transpose(const float* from, std::int64_t from_step, float* to,
                                             std::int64_t to_step) {
  using Quads = std::conditional_t<kBytes == 16, Quad, TwoQuads>;
  constexpr int kGroups = kBytes / 16;
  for (int row = 0; row < kLanes; row += 4 * kGroups) {
    for (int column = 0; column < kLanes; column += 4) {
      Quads in[4];
      for (int i = 0; i < 4; ++i) load_groups(from + (row + i) * from_step + column, 4 * from_step, in[i]);
      Quads even[2], odd[2], out[4];
      interleave(in[0], in[2], even[0], even[1]);
      interleave(in[1], in[3], odd[0], odd[1]);
      interleave(even[0], odd[0], out[0], out[1]);
      interleave(even[1], odd[1], out[2], out[3]);
      for (int i = 0; i < 4; ++i) std::memcpy(to + (column + i) * to_step + row, &out[i], kBytes);
    }
  }
}
template <int kBytes>
[[gnu::always_inline]] inline void transpose(const double* from, std::int64_t from_step, double* to,
                                             std::int64_t to_step) {
  for (int row = 0; row < kLanes; ++row) {
    for (int column = 0; column < kLanes; ++column)
      to[column * to_step + row] = from[row * from_step + column];
  }
}

}  // namespace cumulus::recursive_filter
