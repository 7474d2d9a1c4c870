#pragma once

#include "kernels/primitives/async_copy.cuh"
#include "kernels/primitives/tma.cuh"
#include "kernels/recursive_filter/exact_strips/row_carries.cuh"
#include "kernels/recursive_filter/exact_strips/tile.cuh"
#include "kernels/recursive_filter/strips/runs.cuh"
#include "kernels/recursive_filter/strips/sums.cuh"

// The second pass of the tiled method where strips serve: a block walks down a strip of the image, one tile
// wide, or down neighbouring ones in turn, and every stage is a pair of warps that takes tile after tile.
// Along y a thread has a column: the causal state goes on from tile to tile, and what lies below a tile has
// been found before (exact_strips/column_suffixes.cuh). Along x a thread has a row: strips tell what their
// rows leave, and hear what all the others leave. The copy engine brings tiles in and takes them away.

namespace cumulus::recursive_filter {

/// Tiles that a block holds: the shared memory of a multiprocessor.
constexpr int kExactStripSlots = 13;
/// Tiles on their way to it: more come no sooner.
constexpr int kExactStripLoads = 2;
/// Pairs of warps that filter rows, tiles in turn.
constexpr int kRowPairs = 2;

/// What a tile goes through, and who does it: a pair of warps, but that the copy engine's work takes a
/// thread.
enum class ExactStep {
  kCausal,   // columns
  kTold,     // rows' states, from nothing
  kColumns,  // columns, for good
  kHeard,    // rows' states, of all strips
  kFiltered,
  kLoaded,
  kStored,
  kCount,
};
constexpr int kExactSteps = static_cast<int>(ExactStep::kCount);
/// Every other pair has the same two of the four schedulers; the order divides the work among them.
enum class ExactPair { kCausal, kRowStates, kColumns, kRows, kComplete = kRows + kRowPairs, kCopies, kCount };
constexpr int kExactStripThreads = static_cast<int>(ExactPair::kCount) * kTile;

/// A tile of those that a block takes, and its place in the ring.
struct ExactPlace {
  int slot = 0;
  std::uint32_t round = 0;  // of the slot's use
  int tile_row = 0;
  int turn = 0;  // which of the block's strips

  __device__ void advance(int turns) {
    if (++slot == kExactStripSlots) {
      slot = 0;
      ++round;
    }
    if (++turn == turns) {
      turn = 0;
      ++tile_row;
    }
  }
};

/// A block's shared memory.
template <int Order>
struct alignas(1024) ExactStripMemory {
  BoxedTile tiles[kExactStripSlots];
  /// Of columns, below the tile: first the future, then, from kCausal on, what the anticausal run begins
  /// with.
  float states[kExactStripSlots][Order][kTile];
  float causal[kMostStripsOfBlock][Order][kTile];  // of each strip's columns, above the tile
  Mbarrier over[kExactSteps][kExactStripSlots];

  __device__ void init() {
    const int barrier = static_cast<int>(threadIdx.x);
    if (barrier < kExactSteps * kExactStripSlots) {
      const int step = barrier / kExactStripSlots;
      const bool by_copies = step >= static_cast<int>(ExactStep::kLoaded);
      over[step][barrier % kExactStripSlots].init(by_copies ? 1 : kTile);
    }
    fence_async_proxy();
  }
  __device__ void await(ExactStep step, const ExactPlace& at) {
    over[static_cast<int>(step)][at.slot].wait(at.round);
  }
  /// By all threads of the pair, or the one.
  __device__ void tell_over(ExactStep step, const ExactPlace& at) {
    over[static_cast<int>(step)][at.slot].arrive();
  }
};
static_assert(sizeof(ExactStripMemory<kMostExactStripOrder>) <= 227 * 1024);

template <int Order, bool kByOutputs>
class ExactStrip {
 public:
  __device__ ExactStrip(const ExactStripFilter<Order>& f, ExactStripMemory<Order>& memory)
      : f_(f),
        y_(f.axes.y),
        x_(f.axes.x),
        memory_(memory),
        states_(f),
        first_strip_(static_cast<int>(blockIdx.x) * f.strips_of_block),
        turns_(min(f.strips_of_block, f.strips - first_strip_)),
        line_(static_cast<int>(threadIdx.x) % kTile) {}

  __device__ __forceinline__ void run() {
    memory_.init();
    __syncthreads();
    const int pair = static_cast<int>(threadIdx.x) / kTile;
    constexpr auto kRows = static_cast<int>(ExactPair::kRows);
    if (pair >= kRows && pair < kRows + kRowPairs) return filter_rows(pair - kRows);
    switch (static_cast<ExactPair>(pair)) {
      case ExactPair::kCausal:
        return filter_columns_causally();
      case ExactPair::kRowStates:
        return find_row_states();
      case ExactPair::kColumns:
        return filter_columns_anticausally();
      case ExactPair::kComplete:
        return complete_rows();
      case ExactPair::kCopies:
        if (line_ == 0) load();
        if (line_ == kTile / 2) store();
        return;
      default:
        return;
    }
  }

 private:
  static constexpr int kHalf = kStripStretch<Order> / 2;

  /// Takes each tile, or every `apart`-th from `first` on, through `step` once it has gone through `before`.
  template <class Body>
  __device__ __forceinline__ void each_tile(ExactStep before, ExactStep step, const Body& body, int first = 0,
                                            int apart = 1) {
    ExactPlace at;
    for (int i = 0; i < first; ++i) at.advance(turns_);
#pragma unroll 1
    while (at.tile_row < f_.tile_rows) {
      memory_.await(before, at);
      body(at);
      memory_.tell_over(step, at);
      for (int i = 0; i < apart; ++i) at.advance(turns_);
    }
  }
  __device__ BoxedTile& pixels(const ExactPlace& at) const { return memory_.tiles[at.slot]; }
  __device__ int strip(const ExactPlace& at) const { return first_strip_ + at.turn; }
  __device__ int first_column(const ExactPlace& at) const { return strip(at) * kTile; }
  __device__ int first_row(const ExactPlace& at) const { return at.tile_row * kTile; }
  __device__ bool is_last_row(const ExactPlace& at) const { return at.tile_row == f_.tile_rows - 1; }

  __device__ __forceinline__ void load() {
    const std::uint64_t policy = evict_first();
    // For so many of the block's tiles there are words for states (ExactStripStates).
    const int held = min(kExactStripSlots, f_.state_rows * turns_);
    ExactPlace at;
    ExactPlace stored;
    ExactPlace loaded;
#pragma unroll 1
    for (int tile = 0; at.tile_row < f_.tile_rows; ++tile) {
      if (tile >= held) {
        memory_.await(ExactStep::kStored, stored);
        stored.advance(turns_);
      }
      if (tile >= kExactStripLoads) {
        memory_.await(ExactStep::kLoaded, loaded);
        loaded.advance(turns_);
      }
      load_tile(at, policy);
      at.advance(turns_);
    }
  }
  __device__ __forceinline__ void load_tile(const ExactPlace& at, std::uint64_t policy) {
    Mbarrier& over = memory_.over[static_cast<int>(ExactStep::kLoaded)][at.slot];
    const bool with_futures = f_.along_columns && !is_last_row(at);
    constexpr auto kTileBytes = static_cast<int>(sizeof(BoxedTile));
    constexpr auto kFutureBytes = static_cast<int>(sizeof(memory_.states[0]));
    over.arrive_expect_bytes(kTileBytes + (with_futures ? kFutureBytes : 0));
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) {
      tma_load_tile(pixels(at).boxes[box], f_.image, first_column(at) + box * kBoxColumns, first_row(at),
                    over, policy);
    }
    if (with_futures) {
      tma_load_tile(memory_.states[at.slot], f_.futures, first_column(at), first_row(at), over, policy);
    }
  }
  __device__ __forceinline__ void store() {
    const std::uint64_t policy = evict_first();
    each_tile(ExactStep::kFiltered, ExactStep::kStored, [&](const ExactPlace& at) {
#pragma unroll
      for (int box = 0; box < kBoxes; ++box) {
        tma_store_tile(f_.filtered, first_column(at) + box * kBoxColumns, first_row(at),
                       pixels(at).boxes[box], policy);
      }
      tma_commit_stores();
      tma_wait_for_store_reads();
    });
  }

  __device__ __forceinline__ void filter_columns_causally() {
    float causal[Order] = {};
    each_tile(ExactStep::kLoaded, ExactStep::kCausal, [&](const ExactPlace& at) {
      if (!f_.along_columns) return;
      const auto each_number = [&](const auto& body) {
#pragma unroll
        for (int k = 0; k < Order; ++k) body(k, memory_.states[at.slot][k][line_]);
      };
      auto& kept = memory_.causal[at.turn];
      if (turns_ > 1) {
#pragma unroll
        for (int k = 0; k < Order; ++k) causal[k] = at.tile_row == 0 ? 0 : kept[k][line_];
      }
      float future[Order] = {};
      if (f_.boundary_y == FilterBoundary::kClamp) meet_borders(at, causal, future);
      if (!is_last_row(at)) each_number([&](int k, float number) { future[k] = number; });
      ascend_causally<kByOutputs>(y_, BoxedColumn(pixels(at), line_), causal);
      float state[Order] = {};
      y_.through_future.add_product(future, state);
      y_.through_causal.add_product(causal, state);
      each_number([&](int k, float& number) { number = state[k]; });
      if (turns_ > 1) {
#pragma unroll
        for (int k = 0; k < Order; ++k) kept[k][line_] = causal[k];
      }
    });
  }
  /// Where the image's first and last pixels go on beyond it.
  __device__ void meet_borders(const ExactPlace& at, float (&causal)[Order], float (&future)[Order]) const {
    BoxedTile& tile = pixels(at);
    if (at.tile_row == 0) add_weighted(y_.from_first_pixel, tile.at(0, line_), causal);
    if (!is_last_row(at)) return;
    const int rows = f_.height - first_row(at);
    const float last = tile.at(rows - 1, line_);
    for (int row = rows; row < kTile; ++row) tile.at(row, line_) = last;
    add_weighted(y_.from_last_pixel, last, future);
  }
  __device__ __forceinline__ void filter_columns_anticausally() {
    each_tile(ExactStep::kCausal, ExactStep::kColumns, [&](const ExactPlace& at) {
      if (!f_.along_columns) return;
      const BoxedColumn column(pixels(at), line_);
      float last[kHalf];
      column.load(kTile - kHalf, last);
      float state[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) state[k] = memory_.states[at.slot][k][line_];
      descend_anticausally<kByOutputs>(y_, column, last, state);
    });
  }

  /// Whether the states there follow from the border's pixels.
  __device__ bool begins_at_border(const ExactPlace& at) const {
    return f_.boundary_x == FilterBoundary::kClamp && strip(at) == 0;
  }
  __device__ bool ends_at_border(const ExactPlace& at) const {
    return f_.boundary_x == FilterBoundary::kClamp && strip(at) == f_.strips - 1;
  }
  __device__ __forceinline__ void find_row_states() {
    each_tile(ExactStep::kColumns, ExactStep::kTold, [&](const ExactPlace& at) {
      if (!f_.along_rows) return;
      BoxedTile& tile = pixels(at);
      float forward[Order] = {};
      float backward[Order] = {};
      if (begins_at_border(at)) add_weighted(x_.from_first_pixel, tile.at(line_, 0), forward);
      if (ends_at_border(at)) {
        const int columns = f_.width - first_column(at);
        const float last = tile.at(line_, columns - 1);
        for (int column = columns; column < kTile; ++column) tile.at(line_, column) = last;
        float border[Order] = {};
        add_weighted(x_.from_last_pixel, last, border);
        x_.backward.add_product(border, backward);
      }
      const BoxedRow row(tile, line_);
      x_.run_alike ? sum_row(x_, row, forward, backward) : run_over_row(x_, row, forward, backward);
      states_.tell(at.tile_row, strip(at), line_, forward, backward);
    });
  }

  __device__ __forceinline__ void filter_rows(int first) {
    const auto filter_tile = [&](const ExactPlace& at) {
      const BoxedRow row(pixels(at), line_);
      if (f_.along_rows) {
        filter_row(at, row);
      } else {
        scale_row(row);
      }
      fence_async_proxy();
    };
    each_tile(ExactStep::kTold, ExactStep::kFiltered, filter_tile, first, kRowPairs);
  }
  __device__ __forceinline__ void filter_row(const ExactPlace& at, const BoxedRow& row) {
    float before[Order];
    float after[Order];
    await_turn(at);
    states_.hear(at.tile_row, strip(at), line_, before, after);
    memory_.tell_over(ExactStep::kHeard, at);
    if (begins_at_border(at)) add_weighted(x_.from_first_pixel, pixels(at).at(line_, 0), before);
    if (ends_at_border(at)) add_weighted(x_.from_last_pixel, pixels(at).at(line_, kTile - 1), after);
    float state[Order] = {};
    x_.through_future.add_product(after, state);
    ascend_causally<kByOutputs>(x_, row, before);
    x_.through_causal.add_product(before, state);
    float last[kHalf];
    row.load(kTile - kHalf, last);
    descend_anticausally<kByOutputs>(x_, row, last, state, [&](float(&v)[kHalf]) { scale(v); });
  }
  __device__ void scale(float (&v)[kHalf]) const {
#pragma unroll
    for (int k = 0; k < kHalf; ++k) v[k] *= f_.scale;
  }
  /// One pair asks at a time: words that all ask for reach nobody soon.
  __device__ void await_turn(const ExactPlace& at) {
    if (at.tile_row == 0 && at.turn == 0) return;
    ExactPlace before = at;
    before.slot = at.slot > 0 ? at.slot - 1 : kExactStripSlots - 1;
    before.round = at.slot > 0 ? at.round : at.round - 1;
    memory_.await(ExactStep::kHeard, before);
  }
  __device__ void scale_row(const BoxedRow& row) const {
#pragma unroll 1
    for (int i = 0; i < kTile; i += kHalf) {
      float v[kHalf];
      row.load(i, v);
      scale(v);
      row.store(i, v);
    }
  }

  /// The warp's share of all rows, everyone's.
  __device__ __forceinline__ void complete_rows() {
    if (!f_.along_rows) return;
    constexpr int kPieces = ExactStripStates<Order>::kPieces;
    const int blocks = static_cast<int>(gridDim.x);
    int piece = static_cast<int>(blockIdx.x) + line_ / 32 * blocks;
    ExactPlace last;  // of the row's tiles that the block has
    for (int i = 1; i < turns_; ++i) last.advance(turns_);
#pragma unroll 1
    for (;; piece += kTile / 32 * blocks) {
      for (; piece >= kPieces; piece -= kPieces) {
        for (int i = 0; i < turns_; ++i) last.advance(turns_);
      }
      if (last.tile_row >= f_.tile_rows) return;
      // The others have hardly told of the row before: asking them sooner only slows them. No more depends on
      // this, and the barrier cannot be a use further already, since no block goes on without the row.
      memory_.await(ExactStep::kTold, last);
      states_.complete(last.tile_row, piece);
    }
  }

  const ExactStripFilter<Order>& f_;
  const StripAxis<Order>& y_;
  const StripAxis<Order>& x_;
  ExactStripMemory<Order>& memory_;
  const ExactStripStates<Order> states_;
  const int first_strip_, turns_;
  const int line_;
};

extern __shared__ __align__(1024) float4 exact_strip_memory[];

template <int Order, bool kByOutputs>
__global__ void __launch_bounds__(kExactStripThreads, 1)
    filter_exact_strips(const __grid_constant__ ExactStripFilter<Order> f) {
#if __CUDA_ARCH__ >= 900
  ExactStrip<Order, kByOutputs>(f, *reinterpret_cast<ExactStripMemory<Order>*>(exact_strip_memory)).run();
#endif
}

}  // namespace cumulus::recursive_filter
