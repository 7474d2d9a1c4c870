#pragma once

// The arithmetic of trees and queries, shared by both backends so that their results are the same bytes.
// Every floating-point step is a single correctly rounded operation that no compiler can contract.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__CUDACC__)
#define CUMULUS_KD_TREE_INLINE __host__ __device__ __forceinline__
#else
#define CUMULUS_KD_TREE_INLINE inline
#endif

namespace cumulus::kd_tree {

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// Unsigned integers in the order of the numbers; of -0 the key of 0.
template <class T>
CUMULUS_KD_TREE_INLINE KeyOf<T> ordered_key(T x) {
  using Key = KeyOf<T>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  const T positive_zero = x + T{0};
  Key bits;
  std::memcpy(&bits, &positive_zero, sizeof(bits));
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

/// The number of an ordered_key.
template <class T>
CUMULUS_KD_TREE_INLINE T from_ordered_key(KeyOf<T> key) {
  using Key = KeyOf<T>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  const Key bits = (key & kSign) != 0 ? key & ~kSign : ~key;
  T x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

CUMULUS_KD_TREE_INLINE float multiply(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
CUMULUS_KD_TREE_INLINE double multiply(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}
CUMULUS_KD_TREE_INLINE float add(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
CUMULUS_KD_TREE_INLINE double add(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

/// A box's extent along one axis. In double, so that close extents of floats differ as in
/// scikit-learn.
template <class T>
CUMULUS_KD_TREE_INLINE double spread(T lower, T upper) {
  return static_cast<double>(upper) - static_cast<double>(lower);
}

/// The first axis of the greatest extent; `lower(axis)` and `upper(axis)` give the box.
template <class Lower, class Upper>
CUMULUS_KD_TREE_INLINE int widest_axis(int dimensions, const Lower& lower, const Upper& upper) {
  int widest = 0;
  double greatest = 0;
  for (int axis = 0; axis < dimensions; ++axis) {
    const double extent = spread(lower(axis), upper(axis));
    if (extent > greatest) {
      greatest = extent;
      widest = axis;
    }
  }
  return widest;
}

/// Half a box's diagonal, or 0 of an empty box.
template <class Lower, class Upper>
CUMULUS_KD_TREE_INLINE double box_radius(int dimensions, const Lower& lower, const Upper& upper) {
  double sum = 0;
  for (int axis = 0; axis < dimensions; ++axis) {
    if (upper(axis) < lower(axis)) return 0;
    if (upper(axis) == lower(axis)) continue;
    const double half = multiply(0.5, spread(lower(axis), upper(axis)));
    sum = add(sum, multiply(half, half));
  }
  return std::sqrt(sum);
}

/// The middle of an extent: NaN from -Inf to +Inf.
template <class T>
CUMULUS_KD_TREE_INLINE T middle(T lower, T upper) {
  const double sum =
      add(multiply(0.5, static_cast<double>(lower)), multiply(0.5, static_cast<double>(upper)));
  return static_cast<T>(sum);
}

/// Points that go left of `count`, where `up_to_middle` of them lie up to the middle of the extent and a
/// child has room for `capacity`.
CUMULUS_KD_TREE_INLINE std::int64_t midpoint_position(std::int64_t count, std::int64_t up_to_middle,
                                                      std::int64_t capacity) {
  if (up_to_middle == 0 || up_to_middle == count) return count / 2;
  if (up_to_middle > capacity) return capacity;
  return count - up_to_middle > capacity ? count - capacity : up_to_middle;
}

/// The distance of `x` from [lower, upper] along an axis. Infinities are at distance 0 from themselves.
/// Rounding is monotone: a box is never farther than a point inside it.
template <class T>
CUMULUS_KD_TREE_INLINE T axis_distance(T x, T lower, T upper) {
  // Without branches; a NaN, from infinities, loses each comparison. From -Inf a box without points may seem
  // near, which costs a look at no points.
#if defined(__CUDA_ARCH__)
  return fmax(fmax(lower - x, x - upper), T{0});
#else
  const T below = lower - x;
  const T above = x - upper;
  const T greater = below > above ? below : above;
  return greater > T{0} ? greater : T{0};
#endif
}

/// Likewise of `x` from a point's coordinate: the same as from [p, p].
template <class T>
CUMULUS_KD_TREE_INLINE T axis_distance(T x, T p) {
#if defined(__CUDA_ARCH__)
  return fmax(fabs(x - p), T{0});
#else
  const T distance = std::abs(x - p);
  return distance > T{0} ? distance : T{0};
#endif
}

/// Likewise where the axis closes on itself after `period`, and x and [lower, upper] lie in [0, period].
template <class T>
CUMULUS_KD_TREE_INLINE T periodic_axis_distance(T x, T lower, T upper, T period) {
  const T direct = axis_distance(x, lower, upper);
  const T below = x - lower;
  const T above = upper - x;
  const T around = period - (below > above ? below : above);
  return around < direct ? (around > T{0} ? around : T{0}) : direct;
}

}  // namespace cumulus::kd_tree
