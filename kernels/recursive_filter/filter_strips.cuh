#pragma once

#include <cooperative_groups.h>

#include "kernels/recursive_filter/line_stretches.cuh"
#include "kernels/recursive_filter/strip_tiles.cuh"
#include "kernels/recursive_filter/tagged_states.cuh"

// The decaying method in one pass: a block walks down a strip of the image, one tile wide, and every stage of
// the filter is a pair of warps with a tile of its own, each a step behind the one before. Along y a thread
// has a column; the causal state goes on from tile to tile, and the anticausal one comes from as many tiles
// ahead as the filter remembers. Along x a thread has a row; strips tell each other the states that their
// rows leave. Where a strip begins or ends, inside the image or at its border, it begins some tiles earlier
// and reads some tiles more, of the image as its boundary continues it.

namespace cumulus::recursive_filter {

/// What a block's pairs of warps do. Every other pair has the same two of the four schedulers: the order
/// divides the work among them.
enum class StripStage {
  kCausalColumns,  // and what anticausal runs over the tile, from nothing, leave
  kRowStates,
  kCausalRows,
  kAnticausalColumns,  // given those of the tiles ahead
  kLoad,
  kAnticausalRows,
  kStore,
  kGather,  // the neighbours' states
};
constexpr int kStripStages = 8;
constexpr int kStripThreads = kStripStages * kTile;

/// A ring of tiles, and behind it the carries of rows on their way from kGather to kCausalRows. The four
/// floats behind a tile's row hold what one stage tells the next: of a column, the anticausal state that its
/// run left; of a row, the one that kAnticausalRows begins with.
extern __shared__ float4 strip_memory[];

template <int Order>
__device__ void tell(TilePixels& pixels, int line, const float (&state)[Order]) {
  float four[kVector] = {};
#pragma unroll
  for (int k = 0; k < Order; ++k) four[k] = state[k];
  vector_at(pixels, line, kTile) = make_float4(four[0], four[1], four[2], four[3]);
}
template <int Order>
__device__ void hear(TilePixels& pixels, int line, float (&state)[Order]) {
  const float4 told = vector_at(pixels, line, kTile);
  const float four[kVector] = {told.x, told.y, told.z, told.w};
#pragma unroll
  for (int k = 0; k < Order; ++k) state[k] = four[k];
}

template <int Order>
class Strip {
 public:
  __device__ explicit Strip(const StripFilter<Order>& f)
      : f_(f),
        at_(f),
        line_(static_cast<int>(threadIdx.x) % kTile),
        lane_(static_cast<int>(threadIdx.x) % 32) {}

  __device__ void run() {
    const auto stage = static_cast<StripStage>(threadIdx.x / kTile);
    for (int i = 0; i < f_.state_slots; ++i) {
      uint4* untold = states(static_cast<int>(blockIdx.x), i);
      for (int k = static_cast<int>(stage); k < f_.state_lines; k += kStripStages) {
        untold[k * kTile] = uint4{};
      }
    }
    if (threadIdx.x <= 2 * kMostStripWindow) {
      neighbours()[threadIdx.x] = neighbour(static_cast<int>(threadIdx.x) - kMostStripWindow);
    }
    cooperative_groups::this_grid().sync();
    float causal[Order] = {};
    const int ahead = f_.window_y;
    const int steps = at_.tiles + 2 * ahead + kStripLatency + f_.delay;
    const int delayed = ahead + f_.delay;
    int newest = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      // A stage has the tile that was loaded so many steps ago; tiles are counted from the first.
      const auto slot = [&](int ago) -> TilePixels& {
        const int at = newest - ago;
        return reinterpret_cast<TilePixels*>(strip_memory)[at < 0 ? at + f_.slots : at];
      };
      const auto has = [&](int ago) { return step - ago >= ahead && step - ago < ahead + at_.tiles; };
      switch (stage) {
        case StripStage::kLoad:
          if (step < at_.tiles + 2 * ahead) load_strip_tile(f_, at_, step, slot(0));
          __pipeline_commit();
          __pipeline_wait_prior(1);
          break;
        case StripStage::kCausalColumns:
          if (f_.along_columns && step >= 2 && step < at_.tiles + 2 * ahead + 2) {
            filter_columns(slot(2), step - 2 > ahead, causal);
          }
          break;
        case StripStage::kAnticausalColumns:
          if (f_.along_columns && has(3 + ahead)) {
            float state[Order] = {};
#pragma unroll 1
            for (int ago = 3; ago < 3 + ahead; ++ago) {
              float left[Order];
              hear<Order>(slot(ago), line_, left);
              move_over(f_.y.backward, left, state);
            }
            finish_columns(slot(3 + ahead), state);
          }
          break;
        case StripStage::kRowStates:
          if (f_.along_rows && has(4 + ahead)) publish_rows(step - 4 - ahead, slot(4 + ahead));
          break;
        case StripStage::kGather:
          // Strips that are not stored gather all the same: no block runs away from its neighbours, which
          // ask for its last few tiles alone.
          if (f_.along_rows && has(4 + delayed)) gather(step - 4 - delayed, carries(step));
          break;
        case StripStage::kCausalRows:
          if (f_.along_rows && at_.own && has(5 + delayed)) filter_rows(slot(5 + delayed), carries(step - 1));
          break;
        case StripStage::kAnticausalRows:
          if (f_.along_rows && at_.own && has(6 + delayed)) finish_rows(slot(6 + delayed));
          break;
        case StripStage::kStore:
          if (at_.own && has(7 + delayed))
            store_strip_tile(f_, at_, step - 7 - delayed, f_.x.scale, slot(7 + delayed));
          break;
      }
      newest = newest + 1 == f_.slots ? 0 : newest + 1;
      __syncthreads();
    }
  }

 private:
  static constexpr int kWords = TaggedState<Order>::kWords;
  static constexpr bool kWeighs = Sections<Order, float>::kWeighsState;

  __device__ float* carries(int step) const {
    return reinterpret_cast<float*>(reinterpret_cast<TilePixels*>(strip_memory) + f_.slots) +
           (step & 1) * kStripCarries<Order>;
  }
  __device__ int* neighbours() const {
    return reinterpret_cast<int*>(
        reinterpret_cast<float*>(reinterpret_cast<TilePixels*>(strip_memory) + f_.slots) +
        2 * kStripCarries<Order>);
  }
  /// The words of a tile are tagged with its number, from 1 on.
  __device__ uint4* states(int block, int tile) const {
    return f_.states + (block * f_.state_slots + (tile & (f_.state_slots - 1))) * (f_.state_lines * kTile) +
           line_;
  }

  static __device__ void filter(const Sections<Order, float>& sections, float (&state)[Order], float& pixel) {
    sections.advance_unscaled(state, pixel);
    if constexpr (kWeighs) {
      pixel *= sections.direct;
#pragma unroll
      for (int k = 0; k < Order; ++k) pixel += sections.weights[k] * state[k];
    } else {
      pixel = state[Order - 1];
    }
  }

  __device__ void filter_columns(TilePixels& pixels, bool leaves, float (&causal)[Order]) const {
    const ColumnAccess column{&pixels[0][line_]};
    const Sections<Order, float>& forward = f_.y.causal;
    float last[kStretch];
    column.load(0, last);
#pragma unroll
    for (int k = 0; k < kStretch; ++k) filter(forward, causal, last[k]);
    column.store(0, last);
    float total[Order] = {};
#pragma unroll 1
    for (int j = 1; j < kStretches; ++j) {
      float next[kStretch];
      column.load(j * kStretch, next);
      float left[Order] = {};
#pragma unroll
      for (int k = 0; k < kStretch; ++k) {
        filter(forward, causal, next[k]);
        f_.y.anticausal.advance_unscaled(left, last[kStretch - 1 - k]);
      }
      column.store(j * kStretch, next);
      f_.y.over_stretches[j - 1].add_product(left, total);
#pragma unroll
      for (int k = 0; k < kStretch; ++k) last[k] = next[k];
    }
    if (!leaves) return;
    float left[Order] = {};
#pragma unroll
    for (int k = 0; k < kStretch; ++k) f_.y.anticausal.advance_unscaled(left, last[kStretch - 1 - k]);
    f_.y.over_stretches[kStretches - 1].add_product(left, total);
    tell<Order>(pixels, line_, total);
  }

  __device__ void finish_columns(TilePixels& pixels, float (&state)[Order]) const {
    const ColumnAccess column{&pixels[0][line_]};
    const float scale = f_.y.scale;
#pragma unroll 1
    for (int j = kStretches - 1; j >= 0; --j) {
      float v[kStretch];
      column.load(j * kStretch, v);
#pragma unroll
      for (int k = kStretch - 1; k >= 0; --k) {
        filter(f_.y.anticausal, state, v[k]);
        v[k] *= scale;
      }
      column.store(j * kStretch, v);
    }
  }

  __device__ void publish_rows(int tile, TilePixels& pixels) const {
    const RowAccess row{&pixels[line_][0]};
    float forward[Order] = {};
    float backward[Order] = {};
    const auto tag = static_cast<std::uint32_t>(tile) + 1;
    uint4* published = states(static_cast<int>(blockIdx.x), tile);
    if (f_.boundary_x == FilterBoundary::kClamp) {
      const float first[1] = {row.at(0)};
      const float last[1] = {row.at(kTile - 1)};
      if (at_.column == 0) tell_tagged(published + 2 * kWords * kTile, kTile, tag, first);
      if (at_.column == f_.tile_columns - 1) {
        tell_tagged(published + (2 * kWords + 1) * kTile, kTile, tag, last);
      }
    }
#pragma unroll 1
    for (int j = 0; j < kStretches; ++j) {
      float v[kStretch];
      row.load(j * kStretch, v);
      float left[Order] = {};
#pragma unroll
      for (int k = 0; k < kStretch; ++k) {
        f_.x.causal.advance_unscaled(forward, v[k]);
        f_.x.anticausal.advance_unscaled(left, v[kStretch - 1 - k]);
      }
      f_.x.over_stretches[j].add_product(left, backward);
    }
    tell_tagged(published, kTile, tag, forward);
    tell_tagged(published + kWords * kTile, kTile, tag, backward);
  }

  __device__ bool is_here(int column) const {
    return column >= f_.first_strip && column < f_.first_strip + f_.strips;
  }
  /// The block of the strip `distance` to the right, twice, and 1 where it is seen in a mirror; -1: none.
  __device__ int neighbour(int distance) const {
    int column = at_.column + distance;
    int mirrored = 0;
    if (abs(distance) > f_.window_x) return -1;
    if (!is_here(column)) {
      if (!at_.own) return -1;
      if (f_.boundary_x == FilterBoundary::kRepeat) {
        column += column < 0 ? f_.tile_columns : -f_.tile_columns;
      } else if (f_.boundary_x == FilterBoundary::kReflect) {
        column = column < 0 ? -1 - column : 2 * f_.tile_columns - 1 - column;
        mirrored = 1;
      } else {
        return -1;
      }
    }
    return (static_cast<int>(blockIdx.x) + (column - at_.column) * f_.channels) * 2 + mirrored;
  }

  /// The states before and after the tile's rows, once the neighbours have told theirs.
  __device__ void gather(int tile, float* into) const {
    const int* near = neighbours() + kMostStripWindow;
    const auto tag = static_cast<std::uint32_t>(tile) + 1;
    // States of two words one side after the other: both at once take too many registers.
    constexpr bool kOneByOne = kWords > 1;
    TaggedState<Order> left[kMostStripWindow];
    TaggedState<Order> right[kMostStripWindow];
    do {
      load_neighbours(near, -1, tile, 0, left);
      if (!kOneByOne) load_neighbours(near, 1, tile, kWords, right);
    } while (!all_told(near, -1, tag, left) || (!kOneByOne && !all_told(near, 1, tag, right)));
    float before[Order] = {};
    float after[Order] = {};
    if (f_.boundary_x == FilterBoundary::kClamp) {
      const int to_last = f_.tile_columns - 1 - at_.column;
      if (at_.column <= f_.window_x)
        add_border(f_.x.from_first_pixel, near[-at_.column] / 2, tile, 0, before);
      if (to_last <= f_.window_x) add_border(f_.x.from_last_pixel, near[to_last] / 2, tile, 1, after);
    }
    add_neighbours(near, -1, left, f_.x.forward, before);
    if constexpr (kOneByOne) {
      do {
        load_neighbours(near, 1, tile, kWords, right);
      } while (!all_told(near, 1, tag, right));
    }
    add_neighbours(near, 1, right, f_.x.backward, after);
    float future[Order] = {};
    f_.x.through_future.add_product(after, future);
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      into[k * kTile + line_] = before[k];
      into[(Order + k) * kTile + line_] = future[k];
    }
  }
  __device__ void add_border(const float (&from_pixel)[Order], int block, int tile, int number,
                             float (&state)[Order]) const {
    TaggedState<1> told;
    do {
      told.load(states(block, tile) + (2 * kWords + number) * kTile, kTile);
    } while (!told.has(static_cast<std::uint32_t>(tile) + 1));
    float pixel[1];
    told.get(pixel);
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] = from_pixel[k] * pixel[0];
  }
  /// Of the neighbours on one side, the next one first.
  __device__ void load_neighbours(const int* near, int side, int tile, int words,
                                  TaggedState<Order> (&told)[kMostStripWindow]) const {
#pragma unroll
    for (int i = 0; i < kMostStripWindow; ++i) {
      const int other = near[side * (i + 1)];
      if (other < 0) continue;
      told[i].load(states(other / 2, tile) + ((other & 1) != 0 ? kWords - words : words) * kTile, kTile);
    }
  }
  static __device__ bool all_told(const int* near, int side, std::uint32_t tag,
                                  const TaggedState<Order> (&told)[kMostStripWindow]) {
    bool all = true;
#pragma unroll
    for (int i = 0; i < kMostStripWindow; ++i) {
      if (near[side * (i + 1)] >= 0) all = all && told[i].has(tag);
    }
    return all;
  }
  __device__ void add_neighbours(const int* near, int side,
                                 const TaggedState<Order> (&told)[kMostStripWindow],
                                 const SmallMatrix<Order, float>& over_tile, float (&state)[Order]) const {
#pragma unroll
    for (int i = kMostStripWindow - 1; i >= 0; --i) {
      if (near[side * (i + 1)] < 0) continue;
      float own[Order];
      told[i].get(own);
      move_over(over_tile, own, state);
    }
  }

  __device__ void filter_rows(TilePixels& pixels, const float* from) const {
    const RowAccess row{&pixels[line_][0]};
    float state[Order];
    float future[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      state[k] = from[k * kTile + line_];
      future[k] = from[(Order + k) * kTile + line_];
    }
#pragma unroll 1
    for (int j = 0; j < kStretches; ++j) {
      float v[kStretch];
      row.load(j * kStretch, v);
#pragma unroll
      for (int k = 0; k < kStretch; ++k) filter(f_.x.causal, state, v[k]);
      row.store(j * kStretch, v);
    }
    f_.x.through_causal.add_product(state, future);
    tell<Order>(pixels, line_, future);
  }

  __device__ void finish_rows(TilePixels& pixels) const {
    const RowAccess row{&pixels[line_][0]};
    float state[Order];
    hear<Order>(pixels, line_, state);
#pragma unroll 1
    for (int j = kStretches - 1; j >= 0; --j) {
      float v[kStretch];
      row.load(j * kStretch, v);
#pragma unroll
      for (int k = kStretch - 1; k >= 0; --k) filter(f_.x.anticausal, state, v[k]);
      row.store(j * kStretch, v);
    }
  }

  const StripFilter<Order>& f_;
  const StripPlace at_;
  const int line_, lane_;
};

template <int Order>
__global__ void __launch_bounds__(kStripThreads, 1)
    filter_strips(const __grid_constant__ StripFilter<Order> f) {
  Strip<Order>(f).run();
}

}  // namespace cumulus::recursive_filter
