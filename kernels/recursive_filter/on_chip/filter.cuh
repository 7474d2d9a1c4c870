#pragma once

#include "kernels/recursive_filter/on_chip/published_lines.cuh"

// The on-chip method: a block for every tile of the image, all of them resident, so that the image is read
// once and written once. kParts threads share each column and each row of a tile. All code is run once or
// twice, and an instruction that is run for the first time is waited for: so loops stay loops, and columns
// and rows go through the same code.

namespace cumulus::recursive_filter {

/// Zero-state responses of the parts of a tile's lines.
template <int Order, class Real, int kParts>
struct PartStates {
  Real of[kParts][2][Order][kTile];
};

/// A block's shared memory.
template <int Order, class Real, int kParts>
struct OnChipMemory {
  alignas(16) TilePixels pixels;
  PartStates<Order, Real, kParts> parts;
  float carries[2][Order][kTile];  // causal, before the tile's lines; anticausal, after them
};
extern __shared__ float4 on_chip_memory[];

/// Pixels of a column or a row of a tile in shared memory.
struct LineAccess {
  float* first;
  int step;

  __device__ float& at(int i) const { return first[i * step]; }
  /// Four of them; `i` is a multiple of four.
  __device__ void load_four(int i, float (&v)[kVector]) const {
    if (step == 1) {
      const float4 four = *reinterpret_cast<const float4*>(first + i);
      v[0] = four.x;
      v[1] = four.y;
      v[2] = four.z;
      v[3] = four.w;
    } else {
#pragma unroll
      for (int k = 0; k < kVector; ++k) v[k] = at(i + k);
    }
  }
  __device__ void store_four(int i, const float (&v)[kVector]) const {
    if (step == 1) {
      *reinterpret_cast<float4*>(first + i) = make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
      for (int k = 0; k < kVector; ++k) at(i + k) = v[k];
    }
  }
  __device__ void load(int i, float (&v)[kChunk]) const {
#pragma unroll
    for (int k = 0; k < kChunk; ++k) v[k] = at(i + k);
  }
  __device__ void store(int i, const float (&v)[kChunk]) const {
#pragma unroll
    for (int k = 0; k < kChunk; ++k) at(i + k) = v[k];
  }
};

/// The lines of one axis of a tile: their zero-state responses, their carries, and their filtering.
template <int Order, class Real, int kParts>
class TileLines {
 public:
  using Memory = OnChipMemory<Order, Real, kParts>;

  __device__ TileLines(const OnChipFilter<Order, Real>& f, const Tile& tile, Memory& memory, int axis)
      : axis_(f.axes[axis]),
        tile_(tile),
        memory_(memory),
        along_y_(axis == kAlongY),
        line_(static_cast<int>(threadIdx.x) % kTile),
        part_(static_cast<int>(threadIdx.x) / kTile),
        whole_(tile.plain() && tile.rows == kTile && tile.columns == kTile),
        inside_(line_ < (along_y_ ? tile.columns : tile.rows)),
        pixels_{along_y_ ? &memory.pixels[0][line_] : &memory.pixels[line_][0], along_y_ ? kTilePitch : 1},
        line_states_(f, tile, axis, line_) {}

  __device__ void publish() const {
    if (whole_) {
      run();
      __syncthreads();
      if (part_ > 1) return;
      Real state[Order] = {};
      add_parts(part_, kParts, state);
      line_states_.publish(part_, state);
      if (!along_y_ && part_ == 0) line_states_.publish_border(pixels_.at(0), pixels_.at(kTile - 1));
    } else if (part_ == 0 && inside_) {
      Real states[2][Order] = {};
      const ChunkedLine<LineAccess> line{pixels_};
      const LineRuns runs = along_y_ ? tile_.of_columns() : tile_.of_rows();
      run_both_ways(axis_.line, line, runs, states[0], states[1]);
      line_states_.publish(0, states[0]);
      line_states_.publish(1, states[1]);
      if (!along_y_) line_states_.publish_border(pixels_.at(0), pixels_.at(runs.end - 1));
    }
  }

  /// Waits for the carries of the lines. The block has to synchronize afterwards.
  __device__ void await_carries() const {
    if (part_ > 1 || !inside_) return;
    float state[Order] = {};
    line_states_.await_carry(part_, state);
#pragma unroll
    for (int k = 0; k < Order; ++k) memory_.carries[part_][k][line_] = state[k];
  }

  __device__ void filter() const {
    if (whole_) {
      filter_part();
    } else if (part_ == 0 && inside_) {
      float carries[2][Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        carries[0][k] = memory_.carries[0][k][line_];
        carries[1][k] = memory_.carries[1][k][line_];
      }
      ChunkedLine<LineAccess> line{pixels_};
      filter_between(axis_.line, line, along_y_ ? tile_.rows : tile_.columns, carries[0], carries[1]);
    }
  }

 private:
  static constexpr int kLength = kTile / kParts;

  /// The zero-state responses of the thread's part.
  __device__ void run() const {
    Real causal[Order] = {};
    Real anticausal[Order] = {};
    const int first = part_ * kLength;
#pragma unroll 1
    for (int i = 0; i < kLength; i += kVector) {
      float ahead[kVector];
      float behind[kVector];
      pixels_.load_four(first + i, ahead);
      pixels_.load_four(first + kLength - kVector - i, behind);
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        axis_.line.causal.advance_unit_gain(causal, static_cast<Real>(ahead[k]));
        axis_.line.anticausal.advance_unit_gain(anticausal, static_cast<Real>(behind[kVector - 1 - k]));
      }
    }
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      memory_.parts.of[part_][0][k][line_] = axis_.line.causal.gain * causal[k];
      memory_.parts.of[part_][1][k][line_] = axis_.line.anticausal.gain * anticausal[k];
    }
  }

  /// Takes a state through the first `count` parts of the line, or the last ones, by their responses.
  __device__ void add_parts(int anticausal, int count, Real (&state)[Order]) const {
    const SmallMatrix<Order, Real>& over = axis_.part_transitions[anticausal];
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      Real aggregate[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        aggregate[k] = memory_.parts.of[anticausal != 0 ? kParts - 1 - i : i][anticausal][k][line_];
      }
      apply_transition(over, aggregate, state);
    }
  }

  /// The carry of the thread's part, from that of the line.
  __device__ void find(int anticausal, int count, Real (&state)[Order]) const {
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] = static_cast<Real>(memory_.carries[anticausal][k][line_]);
    add_parts(anticausal, count, state);
  }

  __device__ void filter_part() const {
    Real causal[Order];
    Real anticausal_carry[Order];
    find(0, part_, causal);
    find(1, kParts - 1 - part_, anticausal_carry);
    const int first = part_ * kLength;
#pragma unroll 1
    for (int i = 0; i < kLength; i += kVector) {
      float v[kVector];
      pixels_.load_four(first + i, v);
#pragma unroll
      for (int k = 0; k < kVector; ++k) filter(axis_.line.causal, causal, v[k]);
      pixels_.store_four(first + i, v);
    }
    Real anticausal[Order] = {};
    axis_.line.through_causal.add_product(causal, anticausal);
    axis_.line.through_anticausal.add_product(anticausal_carry, anticausal);
#pragma unroll 1
    for (int i = kLength - kVector; i >= 0; i -= kVector) {
      float v[kVector];
      pixels_.load_four(first + i, v);
#pragma unroll
      for (int k = kVector - 1; k >= 0; --k) filter(axis_.line.anticausal, anticausal, v[k]);
      pixels_.store_four(first + i, v);
    }
  }
  static __device__ void filter(const Sections<Order, Real>& sections, Real (&state)[Order], float& pixel) {
    auto value = static_cast<Real>(pixel);
    sections.filter(state, value);
    pixel = static_cast<float>(value);
  }

  const OnChipAxis<Order, Real>& axis_;
  const Tile& tile_;
  Memory& memory_;
  const bool along_y_;
  const int line_, part_;
  const bool whole_, inside_;
  const LineAccess pixels_;
  const PublishedLines<Order, Real> line_states_;
};

/// Owns: a block one tile of one channel, in shared memory.
/// Reads: its pixels once. Writes: its filtered pixels once; zero-state responses of its columns, then of
///   its rows, in tagged words.
/// Waits for: the words of the tiles in its window, and, where the boundary needs runs over the image, of
///   those at its borders: first along y, then along x.
/// No deadlock: all blocks are resident (cooperative launch). A tile's column words depend on its pixels
///   alone, its row words on column words alone.
/// Source: the tiles and carries of Nehab et al. (2011), kept on the chip between their passes.
template <int Order, class Real, int kParts>
__global__ void __launch_bounds__(kParts* kTile, on_chip_blocks<Real>(Order, kParts))
    filter_on_chip(const __grid_constant__ OnChipFilter<Order, Real> f) {
  constexpr int kThreads = kParts * kTile;
  using Memory = OnChipMemory<Order, Real, kParts>;
  Memory& memory = *reinterpret_cast<Memory*>(on_chip_memory);
  const Tile tile = tile_of(f.a, blockIdx.x);
  begin_loading<kThreads>(f.a, tile, memory.pixels);
  finish_loading();
#pragma unroll 1
  for (int axis = kAlongY; axis <= kAlongX; ++axis) {
    if (!(axis == kAlongY ? f.a.along_columns : f.a.along_rows)) continue;
    const TileLines<Order, Real, kParts> lines(f, tile, memory, axis);
    lines.publish();
    lines.await_carries();
    __syncthreads();
    lines.filter();
    __syncthreads();
  }
  store_tile<kThreads>(f.a, tile, memory.pixels);
}

}  // namespace cumulus::recursive_filter
