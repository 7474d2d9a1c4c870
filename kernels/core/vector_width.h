#pragma once

// Inner loops for the vectors that the processor at hand has, in a program that is built for every processor
// of its kind. Code is written once, for a `Vectors` type, and its hot parts run inside Vectors::call, which
// compiles what it calls, with all that this inlines, for those vectors.
//
// What `f` calls must inline or take and return vectors by reference only: how vectors are passed by value
// depends on what a function is compiled for.

#if defined(__x86_64__) && !defined(CUMULUS_PLAIN_VECTORS)
#define CUMULUS_WIDE_VECTORS 1
#else
#define CUMULUS_WIDE_VECTORS 0
#endif

namespace cumulus {

/// Vectors that every processor has.
struct PlainVectors {
  static constexpr int kBytes = 16;

  template <class F>
  [[gnu::noinline, gnu::flatten]] static void call(const F& f) {
    f();
  }
};

#if CUMULUS_WIDE_VECTORS
/// AVX2, and multiply-add in one step, which rounds once where PlainVectors round twice.
struct WideVectors {
  static constexpr int kBytes = 32;

  template <class F>
  [[gnu::target("avx2,fma"), gnu::noinline, gnu::flatten]] static void call(const F& f) {
    f();
  }
};

inline bool has_wide_vectors() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

/// AVX-512, which also has conversions and shifts of 64-bit lanes.
struct WidestVectors {
  static constexpr int kBytes = 64;

  template <class F>
  [[gnu::target("avx512f,avx512dq,avx512vl,avx512bw"), gnu::noinline, gnu::flatten]] static void call(
      const F& f) {
    f();
  }
};

inline bool has_widest_vectors() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#else
using WideVectors = PlainVectors;
using WidestVectors = PlainVectors;

inline bool has_wide_vectors() { return false; }
inline bool has_widest_vectors() { return false; }
#endif

/// Calls body.template operator()<Vectors>() with WideVectors where there are some.
template <class Body>
auto with_wide_vectors(const Body& body) {
  if (has_wide_vectors()) return body.template operator()<WideVectors>();
  return body.template operator()<PlainVectors>();
}

/// The same with WidestVectors where there are some.
template <class Body>
auto with_widest_vectors(const Body& body) {
  if (has_widest_vectors()) return body.template operator()<WidestVectors>();
  return with_wide_vectors(body);
}

/// Calls `body`, a loop that the compiler vectorises, compiled for WidestVectors where there are some. For
/// results that must be the same bits on every processor: no product in it may be added to anything unless it
/// is exact, as the two could be fused there and rounded otherwise than elsewhere.
template <class Body>
void run_vectorised(const Body& body) {
  has_widest_vectors() ? WidestVectors::call(body) : PlainVectors::call(body);
}

}  // namespace cumulus
