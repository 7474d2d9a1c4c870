#pragma once

#include "kernels/recursive_filter/strips/colour_tiles.cuh"
#include "kernels/recursive_filter/strips/load_store.cuh"
#include "kernels/recursive_filter/strips/ring.cuh"
#include "kernels/recursive_filter/strips/runs.cuh"
#include "kernels/recursive_filter/strips/states.cuh"
#include "kernels/recursive_filter/strips/sums.cuh"

// Truncated windows in one pass: a block goes down a strip of the image, one tile wide; each stage is a
// team of two warps that takes tile after tile. Along y a thread has a column: the causal state goes on
// from tile to tile, the anticausal carry comes from as many tiles below as the decay length takes. Along
// x a thread has a row: strips publish the zero-state responses of their rows to their neighbours. Where a
// segment of a strip begins or ends inside the image, it reads a window's tiles more; at the image's
// border too, but where the initial conditions there follow from border pixels.

namespace cumulus::recursive_filter {

template <int Order, int Channels>
class Strip {
 public:
  using Filter = StripFilter<Order, Channels>;
  using Memory = StripMemory<Order, Channels>;

  __device__ Strip(const Filter& f, Memory& memory)
      : f_(f),
        memory_(memory),
        at_(f, Channels == 1 ? f.channels : 1),
        states_(f, at_),
        line_(Teams::line()) {}

  __device__ __forceinline__ void run() {
    memory_.init();
    if constexpr (kIsColour) states_.find_neighbours(memory_);
    __syncthreads();
    switch (Teams::stage()) {
      case StripStage::kLoad:
        if constexpr (kIsColour) load_and_store();
        if constexpr (!kIsColour) load();
        return;
      case StripStage::kCausalColumns:
        return filter_causal_columns();
      case StripStage::kAnticausalColumns:
        return filter_anticausal_columns();
      case StripStage::kRowStates:
        return find_row_states();
      case StripStage::kGather:
        return gather();
      case StripStage::kCausalRows:
        return filter_causal_rows();
      case StripStage::kAnticausalRows:
        return filter_anticausal_rows();
      case StripStage::kStore:
        if constexpr (!kIsColour) store();
        return;
    }
  }

 private:
  using Teams = StripTeams<Channels>;
  using Place = typename Memory::Place;
  using Tile = typename Memory::Tile;
  static constexpr bool kIsColour = Channels > 1;
  static constexpr int kSide = strip_tile_side(Channels);
  static constexpr int kLines = Teams::kLines;
  static constexpr int kSlots = Memory::kSlots;

  __device__ Tile& pixels(const Place& at) const { return memory_.tiles[at.slot]; }
  __device__ float* carries(const Place& at) const { return memory_.carries[at.tile % 2]; }

  /// Does `stage` with each tile, or every `step`-th from `first` on, once `before` is done with it.
  template <class Body>
  __device__ __forceinline__ void each_tile(StripStage before, StripStage stage, const Body& body,
                                            int first = 0, int step = 1) const {
#pragma unroll 1
    for (Place at(first); at.tile < at_.all_tiles(); at.advance(step)) {
      memory_.await(before, at);
      body(at);
      memory_.arrive(stage, at);
    }
  }

  __device__ __forceinline__ void load() const {
#pragma unroll 1
    for (Place at(0); at.tile < at_.all_tiles(); at.advance(1)) {
      if (at.tile >= kSlots) memory_.await(StripStage::kStore, Place(at.tile - kSlots));
      if (!at_.is_closing(at.tile)) load_strip_tile(f_, at_, at.tile, pixels(at));
      __pipeline_commit();
      // The prefetch distance is two tiles.
      if (at.tile > 0) {
        __pipeline_wait_prior(1);
        memory_.arrive(StripStage::kLoad, Place(at.tile - 1));
      }
    }
    __pipeline_wait_prior(0);
    memory_.arrive(StripStage::kLoad, Place(at_.all_tiles() - 1));
  }

  /// Of several channels. A thread stores and loads the same floats of a slot, so that it waits for no other
  /// thread in between.
  __device__ __forceinline__ void load_and_store() const {
    const ColourCopies<Order, Channels> copies(f_, at_);
    const int tiles = at_.all_tiles();
    Place stored(0);
#pragma unroll 1
    for (Place at(0); at.tile < tiles + kSlots; at.advance(1)) {
      const bool loads = at.tile < tiles && !at_.is_closing(at.tile);
      const bool reads_ahead = loads && copies.reads_ahead(at.tile);
      typename ColourCopies<Order, Channels>::Halves halves;
      if (reads_ahead) copies.read(at.tile, halves);
      if (at.tile >= kSlots) {
        memory_.await(StripStage::kAnticausalRows, stored);
        if (at_.stored && at_.has(stored.tile)) copies.store(stored.tile, pixels(stored));
        stored.advance(1);
      }
      if (at.tile >= tiles) continue;
      if (reads_ahead) copies.put(halves, pixels(at));
      if (loads && !reads_ahead && copies.load(at.tile, pixels(at))) {
        memory_.arrive_when_copied(StripStage::kLoad, at);
      } else {
        memory_.arrive(StripStage::kLoad, at);
      }
    }
  }

  __device__ __forceinline__ void filter_causal_columns() const {
    float causal[Order] = {};
    float through[Order] = {};
    float border = 0;
    each_tile(StripStage::kLoad, StripStage::kCausalColumns, [&](const Place& at) {
      if (!f_.along_columns) return;
      if (at_.is_closing(at.tile)) {
        close_columns(through, border, pixels(at));
        return;
      }
      if (at.tile == 0 && at_.closed_above && f_.boundary_y == FilterBoundary::kClamp) {
        add_weighted(f_.y.from_first_pixel, pixels(at).column(line_).at(0), causal);
      }
      border = pixels(at).column(line_).at(kSide - 1);
      filter_columns(pixels(at), at.tile > at_.above, causal, through);
    });
  }

  __device__ __forceinline__ void filter_anticausal_columns() const {
    each_tile(StripStage::kCausalColumns, StripStage::kAnticausalColumns, [&](const Place& at) {
      // A window below, or the last tile.
      const Place ahead(min(at.tile + f_.window_y, at_.all_tiles() - 1));
      const bool filters = f_.along_columns && at_.has(at.tile);
      const auto column = pixels(at).column(line_);
      float last[kHalf];
      if (filters) column.load(kSide - kHalf, last);
      memory_.await(StripStage::kCausalColumns, ahead);
      if (!filters) return;
      float state[Order] = {};
      int slot = ahead.slot;
      float response[Order];
      memory_.tiles[slot].load_state(line_, response);
#pragma unroll 1
      for (int tile = ahead.tile; tile > at.tile; --tile) {
        slot = slot == 0 ? kSlots - 1 : slot - 1;
        float next[Order];
        memory_.tiles[slot].load_state(line_, next);
        apply_transition(f_.y.backward, response, state);
#pragma unroll
        for (int k = 0; k < Order; ++k) response[k] = next[k];
      }
      descend_anticausally(f_.y, column, last, state);
    });
  }

  __device__ __forceinline__ void find_row_states() const {
    each_tile(StripStage::kAnticausalColumns, StripStage::kRowStates, [&](const Place& at) {
      if (at.tile >= kStripCarryLatency)
        memory_.await(StripStage::kGather, Place(at.tile - kStripCarryLatency));
      if (f_.along_rows && at_.has(at.tile)) publish_row_states(at.tile - at_.above, pixels(at));
    });
  }

  /// Strips that are not stored gather all the same, so that no block runs ahead of its neighbours, which
  /// need the words of its last few tiles.
  __device__ __forceinline__ void gather() const {
    const auto& neighbours = [&]() -> decltype(auto) {
      if constexpr (kIsColour) {
        return static_cast<const NeighbourTable<Channels>&>(memory_);
      } else {
        return states_.neighbours();
      }
    }();
    const auto gather_one = [&](const Place& at) {
      if (at.tile >= 2) memory_.await(StripStage::kCausalRows, Place(at.tile - 2));
      if (f_.along_rows && at_.has(at.tile))
        gather_rows(neighbours, at.tile - at_.above, pixels(at), carries(at));
    };
    each_tile(StripStage::kRowStates, StripStage::kGather, gather_one, Teams::gather_team(),
              Teams::kGatherTeams);
  }

  __device__ __forceinline__ void filter_causal_rows() const {
    each_tile(StripStage::kGather, StripStage::kCausalRows, [&](const Place& at) {
      if (f_.along_rows && at_.stored && at_.has(at.tile)) filter_rows(pixels(at), carries(at));
    });
  }
  __device__ __forceinline__ void filter_anticausal_rows() const {
    each_tile(StripStage::kCausalRows, StripStage::kAnticausalRows, [&](const Place& at) {
      if (f_.along_rows && at_.stored && at_.has(at.tile)) finish_rows(pixels(at));
    });
  }
  __device__ __forceinline__ void store() const {
    each_tile(StripStage::kAnticausalRows, StripStage::kStore, [&](const Place& at) {
      if (at_.stored && at_.has(at.tile)) store_strip_tile(f_, at_, at.tile, pixels(at));
    });
  }

  static constexpr int kChunk = kStripChunk<Order, kSide>;
  static constexpr int kHalf = kChunk / 2;

  /// The anticausal state over the causal result below the image; `response` is, before, its part that
  /// follows from the causal state of the last pixel.
  __device__ void close_columns(float (&response)[Order], float border, Tile& below) const {
    float anticausal_carry[Order] = {};
    if (f_.boundary_y == FilterBoundary::kClamp) add_weighted(f_.y.from_last_pixel, border, anticausal_carry);
    f_.y.through_anticausal.add_product(anticausal_carry, response);
    below.store_state(line_, response);
  }

  /// Filters a column causally and, where it `leaves` a response, stores the zero-state response of the
  /// anticausal filter over the result. That follows from the unfiltered pixels and from the causal
  /// states before and after them: `through`.
  __device__ void filter_columns(Tile& tile, bool leaves, float (&causal)[Order],
                                 float (&through)[Order]) const {
    ChunkResponses<Order, kSide> responses;
    float sum[Order];
    const auto take_in = [&](int first, float(&v)[kHalf]) {
#pragma unroll
      for (int k = 0; k < kHalf; ++k) {
        add_weighted(f_.y.anticausal_sums.of[first + k], v[k], sum);
        f_.y.causal.template filter_unit_gain<true>(causal, v[k]);
      }
    };
    ascend<kSide, kHalf>(
        tile.column(line_),
        [&](float(&v)[kHalf]) {
#pragma unroll
          for (int k = 0; k < Order; ++k) sum[k] = 0;
          take_in(0, v);
        },
        [&](float(&v)[kHalf], int first) {
          take_in(kHalf, v);
          responses.add(f_.y, first / kChunk, sum, through);
        });
    responses.finish(f_.y, through);
    float now[Order] = {};
    f_.y.through_causal.add_product(causal, now);
    if (leaves) {
      float behind[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) behind[k] = -now[k];
      f_.y.backward.add_product(behind, through);
      tile.store_state(line_, through);
    }
#pragma unroll
    for (int k = 0; k < Order; ++k) through[k] = now[k];
  }

  /// Whether the initial conditions there follow from border pixels.
  __device__ bool begins_at_border() const {
    return at_.column == 0 && f_.boundary_x == FilterBoundary::kClamp;
  }
  __device__ bool ends_at_border() const {
    return at_.column == f_.tile_columns - 1 && f_.boundary_x == FilterBoundary::kClamp;
  }

  __device__ void publish_row_states(int tile, Tile& pixels) const {
    float forward[Order] = {};
    float backward[Order] = {};
    if (begins_at_border()) add_weighted(f_.x.from_first_pixel, pixels.row(line_).at(0), forward);
    if (ends_at_border()) {
      float border[Order] = {};
      add_weighted(f_.x.from_last_pixel, pixels.row(line_).at(kSide - 1), border);
      f_.x.backward.add_product(border, backward);
    }
    const auto row = pixels.row(line_);
    f_.x.run_alike ? sum_row(f_.x, row, forward, backward) : run_over_row(f_.x, row, forward, backward);
    states_.publish(tile, forward, backward);
  }
  template <class Neighbours>
  __device__ void gather_rows(const Neighbours& neighbours, int tile, Tile& pixels, float* into) const {
    float before[Order] = {};
    float after[Order] = {};
    if (begins_at_border()) add_weighted(f_.x.from_first_pixel, pixels.row(line_).at(0), before);
    if (ends_at_border()) add_weighted(f_.x.from_last_pixel, pixels.row(line_).at(kSide - 1), after);
    states_.gather(neighbours, tile, before, after);
    float anticausal_carry[Order] = {};
    f_.x.through_anticausal.add_product(after, anticausal_carry);
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      into[k * kLines + line_] = before[k];
      into[(Order + k) * kLines + line_] = anticausal_carry[k];
    }
  }

  __device__ void filter_rows(Tile& pixels, const float* from) const {
    float state[Order];
    float anticausal_carry[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      state[k] = from[k * kLines + line_];
      anticausal_carry[k] = from[(Order + k) * kLines + line_];
    }
    ascend_causally(f_.x, pixels.row(line_), state);
    f_.x.through_causal.add_product(state, anticausal_carry);
    pixels.store_state(line_, anticausal_carry);
  }

  __device__ void finish_rows(Tile& pixels) const {
    float state[Order];
    pixels.load_state(line_, state);
    const auto row = pixels.row(line_);
    float last[kHalf];
    row.load(kSide - kHalf, last);
    descend_anticausally(f_.x, row, last, state);
  }

  const Filter& f_;
  Memory& memory_;
  const StripPlace at_;
  const StripStates<Order, Channels> states_;
  const int line_;
};

extern __shared__ float4 strip_memory[];

/// Owns: a block one strip of tiles, of all channels, or a segment of it, and a ring of kSlots tiles.
/// Reads: its pixels, and a window's tiles above and below where the strip goes on there.
/// Writes: its filtered pixels; zero-state responses of rows, in tagged words.
/// Waits for: teams for each other, by an mbarrier for each stage and slot; kGather for the words of window_x
///   neighbours on either side, at most kStripCarryLatency tiles behind kRowStates.
/// No deadlock: all blocks are resident (cooperative launch). Responses depend on the block's own tiles
///   alone; the block with the lowest tile finds its neighbours' words published, for they are at that tile
///   or beyond it. A word is used again after state_slots > 2 kStripCarryLatency tiles, when all neighbours
///   have read it.
/// Source: carries as in Nehab et al. (2011), truncated at the decay length; a ring as in CUTLASS.
template <int Order, int Channels>
__global__ void __launch_bounds__(StripTeams<Channels>::kThreads, 1)
    filter_strips(const __grid_constant__ StripFilter<Order, Channels> f) {
#if __CUDA_ARCH__ >= 900
  Strip<Order, Channels>(f, *reinterpret_cast<StripMemory<Order, Channels>*>(strip_memory)).run();
#endif
}

}  // namespace cumulus::recursive_filter
