#pragma once

#include "kernels/primitives/async_copy.cuh"
#include "kernels/primitives/tma.cuh"
#include "kernels/recursive_filter/exact_strips/row_carries.cuh"
#include "kernels/recursive_filter/exact_strips/tile.cuh"
#include "kernels/recursive_filter/strips/runs.cuh"
#include "kernels/recursive_filter/strips/sums.cuh"

// The second kernel of the tiled method where exact strips serve: a block goes down a strip of the image,
// one tile wide, or down neighbouring strips alternately. Each stage is a team of two consumer warps that
// takes tile after tile; one thread loads tiles by TMA, one stores them.

namespace cumulus::recursive_filter {

/// Tiles that a block holds: the shared memory of a multiprocessor.
constexpr int kExactStripSlots = 13;
/// The prefetch distance: more do not come sooner.
constexpr int kExactStripLoads = 2;
/// Teams that filter rows, alternate tiles.
constexpr int kRowTeams = 2;

/// The stages of a tile: teams do them, but for loading and storing, which a thread does.
enum class ExactStep {
  kCausal,      // columns
  kRowStates,   // zero-state responses of rows
  kColumns,     // columns, anticausally
  kRowCarries,  // carries of rows, from all strips
  kFiltered,
  kLoaded,
  kStored,
  kCount,
};
constexpr int kExactSteps = static_cast<int>(ExactStep::kCount);
/// Every other team has the same two of the four schedulers; the order divides the work among them.
enum class ExactRole { kCausal, kRowStates, kColumns, kRows, kScanRows = kRows + kRowTeams, kCopies, kCount };
constexpr int kExactStripThreads = static_cast<int>(ExactRole::kCount) * kTile;

/// A tile of the block, and its place in the ring.
struct ExactPlace {
  int slot = 0;
  std::uint32_t round = 0;  // how often the slot has been used
  int tile_row = 0;
  int strip = 0;  // of the block's

  __device__ void advance(int strips_of_block) {
    if (++slot == kExactStripSlots) {
      slot = 0;
      ++round;
    }
    if (++strip == strips_of_block) {
      strip = 0;
      ++tile_row;
    }
  }
};

/// A block's shared memory.
template <int Order>
struct alignas(1024) ExactStripMemory {
  SwizzledTile tiles[kExactStripSlots];
  /// Of columns, below the tile: first the anticausal carry, then, from kCausal on, the initial state
  /// of the anticausal filter over the causal result.
  float states[kExactStripSlots][Order][kTile];
  float causal[kMaxStripsOfBlock][Order][kTile];  // of each strip's columns, above the tile
  Mbarrier done[kExactSteps][kExactStripSlots];

  __device__ void init() {
    const int barrier = static_cast<int>(threadIdx.x);
    if (barrier < kExactSteps * kExactStripSlots) {
      const int step = barrier / kExactStripSlots;
      const bool by_copies = step >= static_cast<int>(ExactStep::kLoaded);
      done[step][barrier % kExactStripSlots].init(by_copies ? 1 : kTile);
    }
    fence_async_proxy();
  }
  __device__ void await(ExactStep step, const ExactPlace& at) {
    done[static_cast<int>(step)][at.slot].wait(at.round);
  }
  /// By all threads of the team, or the one.
  __device__ void arrive(ExactStep step, const ExactPlace& at) {
    done[static_cast<int>(step)][at.slot].arrive();
  }
};
static_assert(sizeof(ExactStripMemory<kMaxExactStripOrder>) <= 227 * 1024);

template <int Order, bool kDirectForm>
class ExactStrip {
 public:
  __device__ ExactStrip(const ExactStripFilter<Order>& f, ExactStripMemory<Order>& memory)
      : f_(f),
        y_(f.axes.y),
        x_(f.axes.x),
        memory_(memory),
        states_(f),
        first_strip_(static_cast<int>(blockIdx.x) * f.strips_of_block),
        strips_of_block_(min(f.strips_of_block, f.strips - first_strip_)),
        line_(static_cast<int>(threadIdx.x) % kTile) {}

  __device__ __forceinline__ void run() {
    memory_.init();
    __syncthreads();
    const int team = static_cast<int>(threadIdx.x) / kTile;
    constexpr auto kRows = static_cast<int>(ExactRole::kRows);
    if (team >= kRows && team < kRows + kRowTeams) return filter_rows(team - kRows);
    switch (static_cast<ExactRole>(team)) {
      case ExactRole::kCausal:
        return filter_columns_causally();
      case ExactRole::kRowStates:
        return find_row_states();
      case ExactRole::kColumns:
        return filter_columns_anticausally();
      case ExactRole::kScanRows:
        return scan_rows();
      case ExactRole::kCopies:
        if (line_ == 0) load();
        if (line_ == kTile / 2) store();
        return;
      default:
        return;
    }
  }

 private:
  static constexpr int kHalf = kStripChunk<Order> / 2;

  /// Does `step` with each tile, or every `apart`-th from `first` on, once `before` is done with it.
  template <class Body>
  __device__ __forceinline__ void each_tile(ExactStep before, ExactStep step, const Body& body, int first = 0,
                                            int apart = 1) {
    ExactPlace at;
    for (int i = 0; i < first; ++i) at.advance(strips_of_block_);
#pragma unroll 1
    while (at.tile_row < f_.tile_rows) {
      memory_.await(before, at);
      body(at);
      memory_.arrive(step, at);
      for (int i = 0; i < apart; ++i) at.advance(strips_of_block_);
    }
  }
  __device__ SwizzledTile& pixels(const ExactPlace& at) const { return memory_.tiles[at.slot]; }
  __device__ int strip(const ExactPlace& at) const { return first_strip_ + at.strip; }
  __device__ int first_column(const ExactPlace& at) const { return strip(at) * kTile; }
  __device__ int first_row(const ExactPlace& at) const { return at.tile_row * kTile; }
  __device__ bool is_last_row(const ExactPlace& at) const { return at.tile_row == f_.tile_rows - 1; }

  __device__ __forceinline__ void load() {
    const std::uint64_t policy = evict_first();
    // ExactStripStates has words for so many of the block's tiles.
    const int slots = min(kExactStripSlots, f_.state_rows * strips_of_block_);
    ExactPlace at;
    ExactPlace stored;
    ExactPlace loaded;
#pragma unroll 1
    for (int tile = 0; at.tile_row < f_.tile_rows; ++tile) {
      if (tile >= slots) {
        memory_.await(ExactStep::kStored, stored);
        stored.advance(strips_of_block_);
      }
      if (tile >= kExactStripLoads) {
        memory_.await(ExactStep::kLoaded, loaded);
        loaded.advance(strips_of_block_);
      }
      load_tile(at, policy);
      at.advance(strips_of_block_);
    }
  }
  __device__ __forceinline__ void load_tile(const ExactPlace& at, std::uint64_t policy) {
    Mbarrier& loaded = memory_.done[static_cast<int>(ExactStep::kLoaded)][at.slot];
    const bool with_suffixes = f_.along_columns && !is_last_row(at);
    constexpr auto kTileBytes = static_cast<int>(sizeof(SwizzledTile));
    constexpr auto kSuffixBytes = static_cast<int>(sizeof(memory_.states[0]));
    loaded.arrive_expect_bytes(kTileBytes + (with_suffixes ? kSuffixBytes : 0));
#pragma unroll
    for (int tma_tile = 0; tma_tile < kTmaTiles; ++tma_tile) {
      tma_load_tile(pixels(at).tma_tiles[tma_tile], f_.image, first_column(at) + tma_tile * kTmaColumns,
                    first_row(at), loaded, policy);
    }
    if (with_suffixes) {
      tma_load_tile(memory_.states[at.slot], f_.suffixes, first_column(at), first_row(at), loaded, policy);
    }
  }
  __device__ __forceinline__ void store() {
    const std::uint64_t policy = evict_first();
    each_tile(ExactStep::kFiltered, ExactStep::kStored, [&](const ExactPlace& at) {
#pragma unroll
      for (int tma_tile = 0; tma_tile < kTmaTiles; ++tma_tile) {
        tma_store_tile(f_.filtered, first_column(at) + tma_tile * kTmaColumns, first_row(at),
                       pixels(at).tma_tiles[tma_tile], policy);
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
      auto& kept = memory_.causal[at.strip];
      if (strips_of_block_ > 1) {
#pragma unroll
        for (int k = 0; k < Order; ++k) causal[k] = at.tile_row == 0 ? 0 : kept[k][line_];
      }
      float anticausal_carry[Order] = {};
      if (f_.boundary_y == FilterBoundary::kClamp) add_borders(at, causal, anticausal_carry);
      if (!is_last_row(at)) each_number([&](int k, float number) { anticausal_carry[k] = number; });
      ascend_causally<kDirectForm>(y_, SwizzledColumn(pixels(at), line_), causal);
      float state[Order] = {};
      y_.through_anticausal.add_product(anticausal_carry, state);
      y_.through_causal.add_product(causal, state);
      each_number([&](int k, float& number) { number = state[k]; });
      if (strips_of_block_ > 1) {
#pragma unroll
        for (int k = 0; k < Order; ++k) kept[k][line_] = causal[k];
      }
    });
  }
  /// kClamp: the border pixels' states, and pixels below the image.
  __device__ void add_borders(const ExactPlace& at, float (&causal)[Order],
                              float (&anticausal_carry)[Order]) const {
    SwizzledTile& tile = pixels(at);
    if (at.tile_row == 0) add_weighted(y_.from_first_pixel, tile.at(0, line_), causal);
    if (!is_last_row(at)) return;
    const int rows = f_.height - first_row(at);
    const float last = tile.at(rows - 1, line_);
    for (int row = rows; row < kTile; ++row) tile.at(row, line_) = last;
    add_weighted(y_.from_last_pixel, last, anticausal_carry);
  }
  __device__ __forceinline__ void filter_columns_anticausally() {
    each_tile(ExactStep::kCausal, ExactStep::kColumns, [&](const ExactPlace& at) {
      if (!f_.along_columns) return;
      const SwizzledColumn column(pixels(at), line_);
      float last[kHalf];
      column.load(kTile - kHalf, last);
      float state[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) state[k] = memory_.states[at.slot][k][line_];
      descend_anticausally<kDirectForm>(y_, column, last, state);
    });
  }

  /// Whether the initial conditions there follow from border pixels.
  __device__ bool begins_at_border(const ExactPlace& at) const {
    return f_.boundary_x == FilterBoundary::kClamp && strip(at) == 0;
  }
  __device__ bool ends_at_border(const ExactPlace& at) const {
    return f_.boundary_x == FilterBoundary::kClamp && strip(at) == f_.strips - 1;
  }
  __device__ __forceinline__ void find_row_states() {
    each_tile(ExactStep::kColumns, ExactStep::kRowStates, [&](const ExactPlace& at) {
      if (!f_.along_rows) return;
      SwizzledTile& tile = pixels(at);
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
      const SwizzledRow row(tile, line_);
      x_.run_alike ? sum_row(x_, row, forward, backward) : run_over_row(x_, row, forward, backward);
      states_.publish(at.tile_row, strip(at), line_, forward, backward);
    });
  }

  __device__ __forceinline__ void filter_rows(int first) {
    const auto filter_tile = [&](const ExactPlace& at) {
      const SwizzledRow row(pixels(at), line_);
      if (f_.along_rows) {
        filter_row(at, row);
      } else {
        scale_row(row);
      }
      fence_async_proxy();
    };
    each_tile(ExactStep::kRowStates, ExactStep::kFiltered, filter_tile, first, kRowTeams);
  }
  __device__ __forceinline__ void filter_row(const ExactPlace& at, const SwizzledRow& row) {
    float before[Order];
    float after[Order];
    await_tile_before(at);
    states_.await_carries(at.tile_row, strip(at), line_, before, after);
    memory_.arrive(ExactStep::kRowCarries, at);
    if (begins_at_border(at)) add_weighted(x_.from_first_pixel, pixels(at).at(line_, 0), before);
    if (ends_at_border(at)) add_weighted(x_.from_last_pixel, pixels(at).at(line_, kTile - 1), after);
    float state[Order] = {};
    x_.through_anticausal.add_product(after, state);
    ascend_causally<kDirectForm>(x_, row, before);
    x_.through_causal.add_product(before, state);
    float last[kHalf];
    row.load(kTile - kHalf, last);
    descend_anticausally<kDirectForm>(x_, row, last, state, [&](float(&v)[kHalf]) { scale(v); });
  }
  __device__ void scale(float (&v)[kHalf]) const {
#pragma unroll
    for (int k = 0; k < kHalf; ++k) v[k] *= f_.scale;
  }
  /// One team polls at a time: words that many poll arrive later.
  __device__ void await_tile_before(const ExactPlace& at) {
    if (at.tile_row == 0 && at.strip == 0) return;
    ExactPlace before = at;
    before.slot = at.slot > 0 ? at.slot - 1 : kExactStripSlots - 1;
    before.round = at.slot > 0 ? at.round : at.round - 1;
    memory_.await(ExactStep::kRowCarries, before);
  }
  __device__ void scale_row(const SwizzledRow& row) const {
#pragma unroll 1
    for (int i = 0; i < kTile; i += kHalf) {
      float v[kHalf];
      row.load(i, v);
      scale(v);
      row.store(i, v);
    }
  }

  /// The carry scanner: scans the rows that are the warp's among all blocks.
  __device__ __forceinline__ void scan_rows() {
    if (!f_.along_rows) return;
    constexpr int kPieces = ExactStripStates<Order>::kPieces;
    const int blocks = static_cast<int>(gridDim.x);
    int piece = static_cast<int>(blockIdx.x) + line_ / 32 * blocks;
    ExactPlace last;  // of the block's tiles in the row
    for (int i = 1; i < strips_of_block_; ++i) last.advance(strips_of_block_);
#pragma unroll 1
    for (;; piece += kTile / 32 * blocks) {
      for (; piece >= kPieces; piece -= kPieces) {
        for (int i = 0; i < strips_of_block_; ++i) last.advance(strips_of_block_);
      }
      if (last.tile_row >= f_.tile_rows) return;
      // Other blocks have hardly published the row by then: polling sooner only slows them. Nothing else
      // depends on this, and the barrier cannot be a use further already, since no block goes on without the
      // row.
      memory_.await(ExactStep::kRowStates, last);
      states_.scan(last.tile_row, piece);
    }
  }

  const ExactStripFilter<Order>& f_;
  const StripAxis<Order>& y_;
  const StripAxis<Order>& x_;
  ExactStripMemory<Order>& memory_;
  const ExactStripStates<Order> states_;
  const int first_strip_, strips_of_block_;
  const int line_;
};

extern __shared__ __align__(1024) float4 exact_strip_memory[];

/// Owns: a block one strip of tiles, or two neighbouring ones, and a ring of kExactStripSlots tiles.
/// Reads: each pixel once, and the column suffix states, by TMA.
/// Writes: each filtered pixel once, by TMA; zero-state responses and carries of rows, in tagged words.
/// Waits for: teams for each other, by an mbarrier for each stage and slot; row filters for their carries,
///   carry scanners for the responses of all strips.
/// No deadlock: all blocks are resident (cooperative launch). A row's responses depend on the rows of tiles
///   above alone, its carries on its responses alone, and a slot is loaded again once it is stored; so the
///   highest row that is not stored can always go on.
/// Source: the tiles and carries of Nehab et al. (2011), algorithm 5; the scan across blocks replaces its
///   passes over carries.
template <int Order, bool kDirectForm>
__global__ void __launch_bounds__(kExactStripThreads, 1)
    filter_exact_strips(const __grid_constant__ ExactStripFilter<Order> f) {
#if __CUDA_ARCH__ >= 900
  ExactStrip<Order, kDirectForm>(f, *reinterpret_cast<ExactStripMemory<Order>*>(exact_strip_memory)).run();
#endif
}

}  // namespace cumulus::recursive_filter
