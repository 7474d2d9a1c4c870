#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <cstdint>
#include <cstring>

#include "kernels/summed_area_table/summed_area_table_types.h"

// Prefix sums of a row of pixels, 32 bytes of sums at a time.

namespace cumulus::summed_area_table {

using UnsignedEight __attribute__((vector_size(32))) = std::uint32_t;
using UnsignedFour __attribute__((vector_size(32))) = std::uint64_t;

// Elements of two groups of 16 bytes each, moved up by some within their group; zeros come in.
[[gnu::always_inline]] inline void shift_by_one(const UnsignedEight& v, UnsignedEight& shifted) {
  shifted = __builtin_shufflevector(v, UnsignedEight{}, 8, 0, 1, 2, 8, 4, 5, 6);
}
[[gnu::always_inline]] inline void shift_by_two(const UnsignedEight& v, UnsignedEight& shifted) {
  shifted = __builtin_shufflevector(v, UnsignedEight{}, 8, 8, 0, 1, 8, 8, 4, 5);
}
[[gnu::always_inline]] inline void shift_by_one(const UnsignedFour& v, UnsignedFour& shifted) {
  shifted = __builtin_shufflevector(v, UnsignedFour{}, 4, 0, 4, 2);
}
// The first group's last element throughout the second group, zeros in the first.
[[gnu::always_inline]] inline void carry_over(const UnsignedEight& v, UnsignedEight& carry) {
  carry = __builtin_shufflevector(v, UnsignedEight{}, 8, 8, 8, 8, 3, 3, 3, 3);
}
[[gnu::always_inline]] inline void carry_over(const UnsignedFour& v, UnsignedFour& carry) {
  carry = __builtin_shufflevector(v, UnsignedFour{}, 4, 4, 1, 1);
}
// The last element throughout.
[[gnu::always_inline]] inline void spread_last(const UnsignedEight& v, UnsignedEight& last) {
  last = __builtin_shufflevector(v, v, 7, 7, 7, 7, 7, 7, 7, 7);
}
[[gnu::always_inline]] inline void spread_last(const UnsignedFour& v, UnsignedFour& last) {
  last = __builtin_shufflevector(v, v, 3, 3, 3, 3);
}

/// 32 bytes of sums side by side; zeros at first.
template <class Sum>
class SumVector {
  using Register __attribute__((vector_size(32))) = Sum;
  using Bits = std::conditional_t<sizeof(Sum) == 4, UnsignedEight, UnsignedFour>;

 public:
  static constexpr int kCount = 32 / static_cast<int>(sizeof(Sum));

  /// What is summed of kCount pixels.
  template <Term kTerm, class Input>
  [[gnu::always_inline]] void load_summands(const Input* pixels, Sum offset) {
    using Pixels __attribute__((vector_size(kCount * sizeof(Input)))) = Input;
    Pixels read;
    std::memcpy(&read, pixels, sizeof(read));
    register_ = __builtin_convertvector(read, Register);
    if constexpr (kTerm == Term::kSquare) register_ *= register_;
    if constexpr (kTerm == Term::kOffset) register_ -= offset;
  }
  [[gnu::always_inline]] void load(const Sum* from) { std::memcpy(&register_, from, sizeof(register_)); }
  [[gnu::always_inline]] void store(Sum* to) const { std::memcpy(to, &register_, sizeof(register_)); }
  /// Past the caches, to an address that is a multiple of 16. Other threads may miss it until
  /// finish_streaming.
  [[gnu::always_inline]] void stream(Sum* to) const {
#if defined(__SSE2__)
    __m128i halves[2];
    std::memcpy(halves, &register_, sizeof(halves));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), halves[0]);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to) + 1, halves[1]);
#else
    store(to);
#endif
  }
  [[gnu::always_inline]] void add(const SumVector& other) { register_ += other.register_; }
  Sum first() const { return register_[0]; }

  /// Each element becomes the sum of itself and those before it, and of `before`, which is the same
  /// throughout; `before` then includes all of them.
  [[gnu::always_inline]] void accumulate(SumVector& before) {
    Register moved;
    move(register_, moved, [](const Bits& from, Bits& to) { shift_by_one(from, to); });
    register_ += moved;
    if constexpr (sizeof(Sum) == 4) {
      move(register_, moved, [](const Bits& from, Bits& to) { shift_by_two(from, to); });
      register_ += moved;
    }
    move(register_, moved, [](const Bits& from, Bits& to) { carry_over(from, to); });
    register_ += moved;
    move(register_, moved, [](const Bits& from, Bits& to) { spread_last(from, to); });
    register_ += before.register_;
    before.register_ += moved;
  }

 private:
  /// Elements as bits, to other places.
  template <class Movement>
  [[gnu::always_inline]] static void move(const Register& from, Register& to, const Movement& movement) {
    Bits bits = (Bits)from;
    Bits moved;
    movement(bits, moved);
    to = (Register)moved;
  }

  Register register_ = {};
};

inline void finish_streaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace cumulus::summed_area_table
