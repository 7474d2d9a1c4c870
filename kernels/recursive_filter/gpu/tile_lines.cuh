#pragma once

#include "kernels/recursive_filter/gpu/tile_images.cuh"
#include "kernels/recursive_filter/math/line.h"

// Columns and rows of a tile in shared memory, worked on a stretch at a time: a thread holds a few pixels in
// registers, and the loop over stretches stays a loop. Unrolled over the whole line, the code of a pass is
// longer than the instruction caches.

namespace cumulus::recursive_filter {

/// What tiles need of one axis' plan.
template <int Order, class Real>
struct TileAxis {
  Sections<Order, Real> causal, anticausal;
  SmallMatrix<Order, Real> through_causal, through_future;

  explicit TileAxis(const AxisPlan& plan)
      : causal(sections_of<Order, Real>(plan.causal)),
        anticausal(sections_of<Order, Real>(plan.anticausal)),
        through_causal(small_matrix<Order, Real>(plan.through_causal)),
        through_future(small_matrix<Order, Real>(plan.through_future)) {}

  /// A pixel as the filter takes it in.
  __device__ static Real taken(float pixel) { return static_cast<Real>(pixel); }
};

constexpr int kStretch = 16;
constexpr int kStretches = kTile / kStretch;

struct ColumnAccess {
  float* first;

  __device__ float& at(int i) const { return first[i * kTilePitch]; }
  template <int kCount>
  __device__ void load(int i, float (&v)[kCount]) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) v[k] = at(i + k);
  }
  template <int kCount>
  __device__ void store(int i, const float (&v)[kCount]) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) at(i + k) = v[k];
  }
};

/// Pixels that lie in vectors of four: vector(k) is the one with number k of them.
template <int kCount, class VectorOf>
__device__ void load_vectors(const VectorOf& vector, float (&v)[kCount]) {
#pragma unroll
  for (int k = 0; k < kCount; k += kVector) {
    const float4 four = *vector(k);
    v[k] = four.x;
    v[k + 1] = four.y;
    v[k + 2] = four.z;
    v[k + 3] = four.w;
  }
}
template <int kCount, class VectorOf>
__device__ void store_vectors(const VectorOf& vector, const float (&v)[kCount]) {
#pragma unroll
  for (int k = 0; k < kCount; k += kVector) *vector(k) = make_float4(v[k], v[k + 1], v[k + 2], v[k + 3]);
}

struct RowAccess {
  float* first;

  __device__ float& at(int i) const { return first[i]; }
  /// `i` is a multiple of four.
  template <int kCount>
  __device__ void load(int i, float (&v)[kCount]) const {
    load_vectors([&](int k) { return vector(i + k); }, v);
  }
  template <int kCount>
  __device__ void store(int i, const float (&v)[kCount]) const {
    store_vectors([&](int k) { return vector(i + k); }, v);
  }

 private:
  __device__ float4* vector(int i) const { return reinterpret_cast<float4*>(first + i); }
};

template <class Access>
struct StretchedLine : Access {
  template <class F>
  __device__ void ascending(int end, const F& f) {
    int i = 0;
#pragma unroll 1
    for (; i + kStretch <= end; i += kStretch) {
      float v[kStretch];
      Access::load(i, v);
#pragma unroll
      for (int k = 0; k < kStretch; ++k) f(v[k]);
      Access::store(i, v);
    }
#pragma unroll 1
    for (; i < end; ++i) f(Access::at(i));
  }
  template <class F>
  __device__ void descending(int end, const F& f) {
    int i = end;
#pragma unroll 1
    for (; i % kStretch != 0; --i) f(Access::at(i - 1));
#pragma unroll 1
    for (; i > 0; i -= kStretch) {
      float v[kStretch];
      Access::load(i - kStretch, v);
#pragma unroll
      for (int k = kStretch - 1; k >= 0; --k) f(v[k]);
      Access::store(i - kStretch, v);
    }
  }
};
using TileColumn = StretchedLine<ColumnAccess>;
using TileRow = StretchedLine<RowAccess>;

/// Filters the line's first `length` pixels in place, given the causal state before them and the anticausal
/// state over the image after them. `causal` becomes the causal state of the last pixel.
template <int Order, class Real, class Axis, class Pixels>
__device__ void filter_held_line(const Axis& axis, Pixels& line, int length, Real (&causal)[Order],
                                 const Real (&after)[Order]) {
  const auto filter_with = [](const Sections<Order, Real>& sections, Real(&state)[Order], float& pixel) {
    Real value = Axis::taken(pixel);
    sections.filter(state, value);
    pixel = static_cast<float>(value);
  };
  line.ascending(length, [&](float& pixel) { filter_with(axis.causal, causal, pixel); });
  Real anticausal[Order] = {};
  axis.through_causal.add_product(causal, anticausal);
  axis.through_future.add_product(after, anticausal);
  line.descending(length, [&](float& pixel) { filter_with(axis.anticausal, anticausal, pixel); });
}

/// Filters the line's first `length` pixels in place, given what lies before and after them. Returns the
/// causal state of the last pixel in `last`.
template <int Order, class Real, class Pixels>
__device__ void filter_between(const TileAxis<Order, Real>& axis, Pixels& line, int length,
                               const float (&before)[Order], const float (&after)[Order],
                               float (&last)[Order]) {
  Real causal[Order];
  Real anticausal[Order];
#pragma unroll
  for (int k = 0; k < Order; ++k) {
    causal[k] = static_cast<Real>(before[k]);
    anticausal[k] = static_cast<Real>(after[k]);
  }
  filter_held_line(axis, line, length, causal, anticausal);
#pragma unroll
  for (int k = 0; k < Order; ++k) last[k] = static_cast<float>(causal[k]);
}
template <int Order, class Real, class Pixels>
__device__ void filter_between(const TileAxis<Order, Real>& axis, Pixels& line, int length,
                               const float (&before)[Order], const float (&after)[Order]) {
  float last[Order];
  filter_between(axis, line, length, before, after, last);
}

/// How states move over stretches: `of[j]` over j of them.
template <int Order, class Real>
struct StretchMoves {
  SmallMatrix<Order, Real> of[kStretches];

  explicit StretchMoves(const DirectionPlan& direction) {
    for (int j = 0; j < kStretches; ++j) {
      of[j] = small_matrix<Order, Real>(power(direction.transition, j * kStretch));
    }
  }
};

/// Runs over pixels from nothing.
template <int Order, class Real, class Line>
__device__ void run_ascending(const Sections<Order, Real>& sections, const Line& line, int first, int end,
                              Real (&state)[Order]) {
#pragma unroll 1
  for (int i = first; i < end; ++i) sections.advance(state, static_cast<Real>(line.at(i)));
}
template <int Order, class Real, class Line>
__device__ void run_descending(const Sections<Order, Real>& sections, const Line& line, int first, int end,
                               Real (&state)[Order]) {
#pragma unroll 1
  for (int i = end - 1; i >= first; --i) sections.advance(state, static_cast<Real>(line.at(i)));
}

/// Runs from nothing may leave the gain to the end.
template <int Order, class Real>
__device__ void scale(Real gain, Real (&state)[Order]) {
#pragma unroll
  for (int k = 0; k < Order; ++k) state[k] *= gain;
}

/// The states that runs over a line from nothing leave: over its pixels before `causal_end`, and backwards
/// over those from `anticausal_first` to before `end`.
template <int Order, class Real, class Line>
__device__ void run_both_ways(const TileAxis<Order, Real>& axis, const Line& line, int causal_end,
                              int anticausal_first, int end, Real (&causal)[Order],
                              Real (&anticausal)[Order]) {
  if (causal_end < kTile || anticausal_first > 0) {
    run_ascending(axis.causal, line, 0, causal_end, causal);
    run_descending(axis.anticausal, line, anticausal_first, end, anticausal);
    return;
  }
#pragma unroll 1
  for (int i = 0; i < kTile; i += kStretch) {
    float ahead[kStretch];
    float behind[kStretch];
    line.load(i, ahead);
    line.load(kTile - kStretch - i, behind);
#pragma unroll
    for (int k = 0; k < kStretch; ++k) {
      axis.causal.advance_unscaled(causal, static_cast<Real>(ahead[k]));
      axis.anticausal.advance_unscaled(anticausal, static_cast<Real>(behind[kStretch - 1 - k]));
    }
  }
  scale(axis.causal.gain, causal);
  scale(axis.anticausal.gain, anticausal);
}

/// Filters a whole column as if nothing lay above and below, and finds the states that it leaves.
template <int Order, class Real>
__device__ void filter_alone(const TileAxis<Order, Real>& axis,
                             const StretchMoves<Order, Real>& anticausal_moves, TileColumn& column,
                             Real (&causal)[Order], Real (&anticausal)[Order]) {
#pragma unroll 1
  for (int j = 0; j < kStretches; ++j) {
    float pixels[kStretch];
    column.load(j * kStretch, pixels);
    Real backward[Order] = {};
    float filtered[kStretch];
#pragma unroll
    for (int k = 0; k < kStretch; ++k) {
      axis.anticausal.advance_unscaled(backward, static_cast<Real>(pixels[kStretch - 1 - k]));
      Real value = static_cast<Real>(pixels[k]);
      axis.causal.filter(causal, value);
      filtered[k] = static_cast<float>(value);
    }
    column.store(j * kStretch, filtered);
    anticausal_moves.of[j].add_product(backward, anticausal);
  }
  scale(axis.anticausal.gain, anticausal);
  Real state[Order] = {};
  axis.through_causal.add_product(causal, state);
  column.descending(kTile, [&](float& pixel) {
    Real value = static_cast<Real>(pixel);
    axis.anticausal.filter(state, value);
    pixel = static_cast<float>(value);
  });
}

}  // namespace cumulus::recursive_filter
