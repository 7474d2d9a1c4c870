#pragma once

#include "kernels/recursive_filter/gpu/tile_images.cuh"
#include "kernels/recursive_filter/math/line.h"

// Columns and rows of a tile in shared memory, worked on a chunk at a time: a thread holds a few pixels in
// registers, and the loop over chunks stays a loop. Unrolled over the whole line, the code of a pass is
// longer than the instruction caches.

namespace cumulus::recursive_filter {

/// One axis' plan, for tiles.
template <int Order, class Real>
struct TileAxis {
  Sections<Order, Real> causal, anticausal;
  SmallMatrix<Order, Real> through_causal, through_anticausal;

  explicit TileAxis(const AxisPlan& plan)
      : causal(sections_of<Order, Real>(plan.causal)),
        anticausal(sections_of<Order, Real>(plan.anticausal)),
        through_causal(small_matrix<Order, Real>(plan.through_causal)),
        through_anticausal(small_matrix<Order, Real>(plan.through_anticausal)) {}

  /// A pixel as the filter takes it in.
  __device__ static Real taken(float pixel) { return static_cast<Real>(pixel); }
};

constexpr int kChunk = 16;

/// A line whose pixels lie `kStride` floats apart.
template <int kStride>
struct StridedAccess {
  float* first;

  __device__ float& at(int i) const { return first[i * kStride]; }
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

using ColumnAccess = StridedAccess<kTilePitch>;

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
struct ChunkedLine : Access {
  template <class F>
  __device__ void ascending(int end, const F& f) {
    int i = 0;
#pragma unroll 1
    for (; i + kChunk <= end; i += kChunk) {
      float v[kChunk];
      Access::load(i, v);
#pragma unroll
      for (int k = 0; k < kChunk; ++k) f(v[k]);
      Access::store(i, v);
    }
#pragma unroll 1
    for (; i < end; ++i) f(Access::at(i));
  }
  template <class F>
  __device__ void descending(int end, const F& f) {
    int i = end;
#pragma unroll 1
    for (; i % kChunk != 0; --i) f(Access::at(i - 1));
#pragma unroll 1
    for (; i > 0; i -= kChunk) {
      float v[kChunk];
      Access::load(i - kChunk, v);
#pragma unroll
      for (int k = kChunk - 1; k >= 0; --k) f(v[k]);
      Access::store(i - kChunk, v);
    }
  }
};
using TileRow = ChunkedLine<RowAccess>;

/// Filters the line's first `length` pixels in place, given the causal state before them and the anticausal
/// state over the image after them. `causal` becomes the causal state of the last pixel.
template <int Order, class Real, class Axis, class Pixels>
__device__ void filter_line_in_tile(const Axis& axis, Pixels& line, int length, Real (&causal)[Order],
                                    const Real (&after)[Order]) {
  const auto filter_with = [](const Sections<Order, Real>& sections, Real(&state)[Order], float& pixel) {
    Real value = Axis::taken(pixel);
    sections.filter(state, value);
    pixel = static_cast<float>(value);
  };
  line.ascending(length, [&](float& pixel) { filter_with(axis.causal, causal, pixel); });
  Real anticausal[Order] = {};
  axis.through_causal.add_product(causal, anticausal);
  axis.through_anticausal.add_product(after, anticausal);
  line.descending(length, [&](float& pixel) { filter_with(axis.anticausal, anticausal, pixel); });
}

/// Filters the line's first `length` pixels in place, given its carries.
template <int Order, class Real, class Pixels>
__device__ void filter_between(const TileAxis<Order, Real>& axis, Pixels& line, int length,
                               const float (&before)[Order], const float (&after)[Order]) {
  Real causal[Order];
  Real anticausal[Order];
#pragma unroll
  for (int k = 0; k < Order; ++k) {
    causal[k] = static_cast<Real>(before[k]);
    anticausal[k] = static_cast<Real>(after[k]);
  }
  filter_line_in_tile(axis, line, length, causal, anticausal);
}

/// Runs over pixels from a zero state.
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

/// Zero-state responses may leave the gain to the end.
template <int Order, class Real>
__device__ void scale(Real gain, Real (&state)[Order]) {
#pragma unroll
  for (int k = 0; k < Order; ++k) state[k] *= gain;
}

/// The zero-state responses of a line.
template <int Order, class Real, class Line>
__device__ void run_both_ways(const TileAxis<Order, Real>& axis, const Line& line, const LineRuns& runs,
                              Real (&causal)[Order], Real (&anticausal)[Order]) {
  if (runs.causal_end < kTile || runs.anticausal_first > 0) {
    run_ascending(axis.causal, line, 0, runs.causal_end, causal);
    run_descending(axis.anticausal, line, runs.anticausal_first, runs.end, anticausal);
    return;
  }
#pragma unroll 1
  for (int i = 0; i < kTile; i += kChunk) {
    float ahead[kChunk];
    float behind[kChunk];
    line.load(i, ahead);
    line.load(kTile - kChunk - i, behind);
#pragma unroll
    for (int k = 0; k < kChunk; ++k) {
      axis.causal.advance_unit_gain(causal, static_cast<Real>(ahead[k]));
      axis.anticausal.advance_unit_gain(anticausal, static_cast<Real>(behind[kChunk - 1 - k]));
    }
  }
  scale(axis.causal.gain, causal);
  scale(axis.anticausal.gain, anticausal);
}

}  // namespace cumulus::recursive_filter
