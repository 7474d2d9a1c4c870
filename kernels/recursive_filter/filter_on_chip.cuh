#pragma once

#include <cooperative_groups.h>

#include <type_traits>
#include <utility>

#include "kernels/recursive_filter/filter_windows.cuh"
#include "kernels/recursive_filter/tagged_states.cuh"

// The on-chip method: a block for every tile of the image, all of them on the device at the same time, so that
// the image is read once and written once. A few threads share each column and each row of a tile, a part of
// it each. The tile tells the states that its columns leave and hears those of the tiles above and below;
// with these it filters its columns for good; then the same with rows. States are tagged words, which are
// cleared first: the grid is waited for once, when it has long arrived.

namespace cumulus::recursive_filter {

/// What a pixel leaves in a direction's state after so many more of the line's.
template <int Order, class Real>
struct PixelWeights {
  Real of[kLongestPart][Order];

  explicit PixelWeights(const DirectionPlan& direction) {
    StateVector left = direction.input;
    for (auto& state : of) {
      for (std::size_t k = 0; k < Order; ++k) state[k] = static_cast<Real>(left[k]);
      left = direction.transition * left;
    }
  }
};

template <int Order, class Real>
struct OnChipAxis : WindowAxis<Order, Real> {
  PixelWeights<Order, Real> causal_weights, anticausal_weights;

  explicit OnChipAxis(const AxisPlan& plan)
      : WindowAxis<Order, Real>(plan), causal_weights(plan.causal), anticausal_weights(plan.anticausal) {}
};

template <int Order, class Real>
struct OnChipConstants {
  OnChipAxis<Order, Real> axes[2];  // kAlongY, kAlongX
  WindowMoves<Order> moves[2];

  explicit OnChipConstants(const RecursiveFilterPlan& plan)
      : axes{OnChipAxis<Order, Real>(plan.y), OnChipAxis<Order, Real>(plan.x)},
        moves{{plan.y, plan.windows->y}, {plan.x, plan.windows->x}} {}
};

template <int Order, class Real>
struct OnChipFilter : OnChipConstants<Order, Real> {
  TileImages a;
  uint4* told;  // of each tile OnChipWords' words
};

/// What runs over the parts of a tile's lines leave, line by line.
template <int Order, class Real, int kParts>
struct PartStates {
  Real of[kParts][2 * Order][kTile];
};

/// A block's shared memory.
template <int Order, class Real, int kParts>
struct OnChipMemory {
  alignas(16) TilePixels pixels;
  PartStates<Order, Real, kParts> parts;
  float carries[2 * Order][kTile];  // before the tile's lines, and after them
};
extern __shared__ float4 on_chip_memory[];

/// A part of a line of a whole tile. A warp's threads have the same part.
template <int Order, class Real, int kParts, class Access>
class LinePart {
 public:
  using States = PartStates<Order, Real, kParts>;

  __device__ LinePart(const OnChipAxis<Order, Real>& axis, Access line, int part, int number, States& states)
      : axis_(axis), line_(line), part_(part), number_(number), states_(states) {}

  /// From nothing, both ways. The block has to synchronize afterwards.
  __device__ void run() const {
    float pixels[kStep][kStretch];
#pragma unroll
    for (int i = 0; i < kStep; ++i) line_.load(part_ * kLength + i * kStretch, pixels[i]);
    Real forward[Order] = {};
    Real backward[Order] = {};
#pragma unroll
    for (int i = 0; i < kLength; ++i) {
      const auto pixel = static_cast<Real>(pixels[i / kStretch][i % kStretch]);
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        forward[k] += axis_.causal_weights.of[kLength - 1 - i][k] * pixel;
        backward[k] += axis_.anticausal_weights.of[i][k] * pixel;
      }
    }
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      states_.of[part_][k][number_] = forward[k];
      states_.of[part_][Order + k][number_] = backward[k];
    }
  }

  /// What the whole line leaves behind it, and before it.
  __device__ void leave_causal(Real (&state)[Order]) const { add_before(kParts, state); }
  __device__ void leave_anticausal(Real (&state)[Order]) const { add_after(-1, state); }

  /// Filters the part, given what lies before and after the tile's line.
  __device__ void filter(const float (&carries)[2 * Order][kTile]) const {
    Real before[Order];
    Real after[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      before[k] = static_cast<Real>(carries[k][number_]);
      after[k] = static_cast<Real>(carries[Order + k][number_]);
    }
    float pixels[kStep][kStretch];
#pragma unroll
    for (int i = 0; i < kStep; ++i) line_.load(part_ * kLength + i * kStretch, pixels[i]);
    Real causal[Order] = {};
    Real future[Order] = {};
    add_before(part_, causal);
    add_after(part_, future);
    axis_.causal_stretches.of[part_ * kStep].add_product(before, causal);
    axis_.anticausal_stretches.of[(kParts - 1 - part_) * kStep].add_product(after, future);
#pragma unroll
    for (int i = 0; i < kLength; ++i) filter(axis_.line.causal, causal, pixels[i / kStretch][i % kStretch]);
    Real anticausal[Order] = {};
    axis_.line.through_causal.add_product(causal, anticausal);
    axis_.line.through_future.add_product(future, anticausal);
#pragma unroll
    for (int i = kLength - 1; i >= 0; --i) {
      filter(axis_.line.anticausal, anticausal, pixels[i / kStretch][i % kStretch]);
    }
#pragma unroll
    for (int i = 0; i < kStep; ++i) line_.store(part_ * kLength + i * kStretch, pixels[i]);
  }

 private:
  static constexpr int kLength = kTile / kParts;
  static constexpr int kStep = kLength / kStretch;  // stretches of a part

  static __device__ void filter(const Sections<Order, Real>& sections, Real (&state)[Order], float& pixel) {
    auto value = static_cast<Real>(pixel);
    sections.filter(state, value);
    pixel = static_cast<float>(value);
  }
  /// The causal state before a part, of nothing before the tile.
  __device__ void add_before(int part, Real (&state)[Order]) const {
#pragma unroll
    for (int other = 0; other < kParts; ++other) {
      if (other >= part) continue;
      Real own[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) own[k] = states_.of[other][k][number_];
      axis_.causal_stretches.of[(part - 1 - other) * kStep].add_product(own, state);
    }
  }
  /// The anticausal state after it, of nothing after the tile.
  __device__ void add_after(int part, Real (&state)[Order]) const {
#pragma unroll
    for (int other = 0; other < kParts; ++other) {
      if (other <= part) continue;
      Real own[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) own[k] = states_.of[other][Order + k][number_];
      axis_.anticausal_stretches.of[(other - part - 1) * kStep].add_product(own, state);
    }
  }

  const OnChipAxis<Order, Real>& axis_;
  const Access line_;
  const int part_, number_;
  States& states_;
};

/// The lines of one axis of a tile: what they leave, what lies before and after them, and their filtering.
template <int Order, class Real, int kParts, int kAxis>
class TileLines {
 public:
  using Memory = OnChipMemory<Order, Real, kParts>;
  using Access = std::conditional_t<kAxis == kAlongY, ColumnAccess, RowAccess>;

  __device__ TileLines(const OnChipFilter<Order, Real>& f, const Tile& tile, Memory& memory)
      : f_(f),
        tile_(tile),
        memory_(memory),
        line_(static_cast<int>(threadIdx.x) % kTile),
        part_(static_cast<int>(threadIdx.x) / kTile),
        whole_(tile.plain() && tile.rows == kTile && tile.columns == kTile),
        inside_(line_ < (kAxis == kAlongY ? tile.columns : tile.rows)),
        access_{kAxis == kAlongY ? &memory.pixels[0][line_] : &memory.pixels[line_][0]},
        of_line_(f.axes[kAxis], access_, part_, line_, memory.parts) {}

  __device__ void tell() const {
    if (whole_) {
      of_line_.run();
      __syncthreads();
      if (part_ > 1) return;
      Real state[Order] = {};
      if (part_ == 0) {
        of_line_.leave_causal(state);
      } else {
        of_line_.leave_anticausal(state);
      }
      tell(part_, state);
      if (kAxis == kAlongX && part_ == 0) tell_border();
      return;
    }
    if (part_ > 0 || !inside_) return;
    Real causal[Order] = {};
    Real anticausal[Order] = {};
    const StretchedLine<Access> line{access_};
    if constexpr (kAxis == kAlongY) {
      run_both_ways(f_.axes[kAxis].line, line, tile_.causal_rows, tile_.anticausal_row, tile_.rows, causal,
                    anticausal);
    } else {
      run_both_ways(f_.axes[kAxis].line, line, tile_.causal_columns, tile_.anticausal_column, tile_.columns,
                    causal, anticausal);
      tell_border();
    }
    tell(0, causal);
    tell(1, anticausal);
  }

  /// Hears what lies before the lines and after them: once all tiles' words have been cleared. The block has to
  /// synchronize afterwards.
  __device__ void hear() const {
    if (part_ > 1 || !inside_) return;
    float state[Order] = {};
    if (part_ == 0) {
      add_before(state);
    } else {
      add_after(state);
    }
#pragma unroll
    for (int k = 0; k < Order; ++k) memory_.carries[part_ * Order + k][line_] = state[k];
  }

  __device__ void filter() const {
    if (whole_) {
      of_line_.filter(memory_.carries);
    } else if (part_ == 0 && inside_) {
      float before[Order];
      float after[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        before[k] = memory_.carries[k][line_];
        after[k] = memory_.carries[Order + k][line_];
      }
      StretchedLine<Access> line{access_};
      filter_between(f_.axes[kAxis].line, line, kAxis == kAlongY ? tile_.rows : tile_.columns, before, after);
    }
  }

 private:
  using Words = OnChipWords<Order>;

  __device__ int here() const {
    return static_cast<int>(kAxis == kAlongY ? tile_.at.row : tile_.at.column);
  }
  __device__ int last_tile() const { return f_.moves[kAxis].tiles - 1; }
  __device__ uint4* words(int tile) const {
    const CarryMap& c = f_.a.carries;
    const std::int64_t row = kAxis == kAlongY ? tile : tile_.at.row;
    const std::int64_t column = kAxis == kAlongX ? tile : tile_.at.column;
    return f_.told +
           (((tile_.at.image * c.tile_rows + row) * c.tile_columns + column) * c.channels + tile_.at.channel) *
               Words::kCount +
           line_;
  }
  __device__ static constexpr int first_word(int anticausal) {
    return ((kAxis == kAlongY ? 0 : 2) + anticausal) * Words::kOfState * kTile;
  }

  __device__ void tell(int anticausal, const Real (&state)[Order]) const {
    float numbers[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) numbers[k] = static_cast<float>(state[k]);
    tell_tagged(words(here()) + first_word(anticausal), kTile, Words::kTag, numbers);
  }
  /// The first pixel of the row and the last.
  __device__ void tell_border() const {
    if (here() > 0 && here() < last_tile()) return;
    const float pixels[2] = {access_.at(0), access_.at(tile_.columns - 1)};
    tell_tagged(words(here()) + Words::kBorder, kTile, Words::kTag, pixels);
  }
  __device__ float border_pixel(bool last) const {
    if constexpr (kAxis == kAlongX) {
      TaggedState<2> told;
      do {
        told.load(words(last ? last_tile() : 0) + Words::kBorder, kTile);
      } while (!told.has(Words::kTag));
      float pixels[2];
      told.get(pixels);
      return pixels[last ? 1 : 0];
    } else {
      const TileImages& a = f_.a;
      const std::int64_t pixel = tile_.at.image * a.image_stride +
                                 (tile_.at.column * kTile + line_) * a.carries.channels + tile_.at.channel +
                                 (last ? (a.height - 1) * a.row_stride : 0);
      return a.images.kind == ElementKind::kHalf ? __half2float(a.images.as<__half>()[pixel])
                                                 : a.images.as<float>()[pixel];
    }
  }

  /// Moves `state` over `count` tiles from `first` on, and adds what each has told. The states of kWindowBatch
  /// tiles are on their way at once.
  __device__ void add_walk(int anticausal, int first, int count, int step, float (&state)[Order]) const {
    const TileMoves<Order, float>& over = f_.moves[kAxis].over;
#pragma unroll 1
    for (int i = 0; i < count; i += kWindowBatch) {
      TaggedState<Order> told[kWindowBatch];
      bool all = false;
      while (!all) {
        all = true;
#pragma unroll
        for (int j = 0; j < kWindowBatch; ++j) {
          told[j].load(words(first + step * min(i + j, count - 1)) + first_word(anticausal), kTile);
        }
#pragma unroll
        for (int j = 0; j < kWindowBatch; ++j) all = all && told[j].has(Words::kTag);
      }
#pragma unroll
      for (int j = 0; j < kWindowBatch; ++j) {
        if (i + j >= count) continue;
        const int tile = first + step * (i + j);
        float own[Order];
        told[j].get(own);
        if (step > 0) {
          move_over(tile == last_tile() ? over.forward_last : over.forward, own, state);
        } else {
          // Into tile 0 only runs over the whole image go.
          move_over(tile == 0             ? over.backward_first
                    : tile == last_tile() ? over.backward_last
                                          : over.backward,
                    own, state);
        }
      }
    }
  }
  /// What runs over the image leave, as much of it as the filter remembers.
  __device__ void run_over_image(float (&forward)[Order], float (&backward)[Order]) const {
    const WindowMoves<Order>& axis = f_.moves[kAxis];
    if (!axis.over.needs_runs) return;
    const int seen = min(axis.window + 1, axis.tiles);
    add_walk(0, axis.tiles - seen, seen, 1, forward);
    add_walk(1, seen - 1, seen, -1, backward);
  }
  __device__ void add_before(float (&state)[Order]) const {
    const WindowMoves<Order>& axis = f_.moves[kAxis];
    const int first = max(here() - axis.window, 0);
    if (first == 0) {
      float forward[Order] = {};
      float backward[Order] = {};
      run_over_image(forward, backward);
      const float pixel = border_pixel(false);
#pragma unroll
      for (int k = 0; k < Order; ++k) state[k] = axis.over.start_from_first_pixel[k] * pixel;
      axis.over.start_from_forward.add_product(forward, state);
      axis.over.start_from_backward.add_product(backward, state);
    }
    add_walk(0, first, here() - first, 1, state);
  }
  __device__ void add_after(float (&state)[Order]) const {
    const WindowMoves<Order>& axis = f_.moves[kAxis];
    const int last = min(here() + axis.window, last_tile());
    if (last == last_tile()) {
      float forward[Order] = {};
      float backward[Order] = {};
      run_over_image(forward, backward);
      const float pixel = border_pixel(true);
#pragma unroll
      for (int k = 0; k < Order; ++k) state[k] = axis.over.end_from_last_pixel[k] * pixel;
      axis.over.end_from_forward.add_product(forward, state);
      axis.over.end_from_backward.add_product(backward, state);
    }
    add_walk(1, last, last - here(), -1, state);
  }

  const OnChipFilter<Order, Real>& f_;
  const Tile& tile_;
  Memory& memory_;
  const int line_, part_;
  const bool whole_, inside_;
  const Access access_;
  const LinePart<Order, Real, kParts, Access> of_line_;
};

template <int Order, class Real, int kParts>
__global__ void __launch_bounds__(kParts* kTile, on_chip_blocks<Real>(Order, kParts))
    filter_on_chip(const __grid_constant__ OnChipFilter<Order, Real> f) {
  constexpr int kThreads = kParts * kTile;
  using Memory = OnChipMemory<Order, Real, kParts>;
  Memory& memory = *reinterpret_cast<Memory*>(on_chip_memory);
  const Tile tile = tile_of(f.a, blockIdx.x);
  begin_loading<kThreads>(f.a, tile, memory.pixels);
  uint4* own = f.told + std::int64_t{blockIdx.x} * OnChipWords<Order>::kCount;
  for (int i = static_cast<int>(threadIdx.x); i < OnChipWords<Order>::kCount; i += kThreads) own[i] = uint4{};
  const auto grid = cooperative_groups::this_grid();
  auto cleared = grid.barrier_arrive();
  finish_loading();
  if (f.a.along_columns) {
    const TileLines<Order, Real, kParts, kAlongY> columns(f, tile, memory);
    columns.tell();
    grid.barrier_wait(std::move(cleared));
    columns.hear();
    __syncthreads();
    columns.filter();
    __syncthreads();
  }
  if (f.a.along_rows) {
    const TileLines<Order, Real, kParts, kAlongX> rows(f, tile, memory);
    rows.tell();
    if (!f.a.along_columns) grid.barrier_wait(std::move(cleared));
    rows.hear();
    __syncthreads();
    rows.filter();
    __syncthreads();
  }
  store_tile<kThreads>(f.a, tile, memory.pixels);
}

}  // namespace cumulus::recursive_filter
