#pragma once

#include "kernels/primitives/warp.cuh"
#include "kernels/recursive_filter/gpu/carries.cuh"

namespace cumulus::recursive_filter {

inline constexpr int kWarp = 32;

template <int Order>
struct CompleteArguments {
  CarryMap carries;
  CarryLines lines;
  BorderPixels border;
  std::int64_t cross_length;  // lines of the axis, in pixels
  unsigned int blocks_of_image;
  bool along_y;
};

/// The lines of an image that a block has.
struct LineBlock {
  std::int64_t image, channel, first_line;
};

/// Where the numbers of a tile's state at one position lie, `line_bytes` apart. In images of halves each
/// is read and written as two 16-bit halves, `high_bytes` apart, even where it is a whole float, so that
/// threads with tiles of either kind do not diverge.
template <int Order>
struct StatePlace {
  std::byte* first;
  std::int64_t line_bytes;
  std::int64_t high_bytes;
  bool in_halves;

  __device__ static StatePlace of(const TileCarries& carries, int line, int position, bool in_halves) {
    const std::int64_t element = carries.split ? sizeof(std::uint16_t) : sizeof(float);
    const std::int64_t line_stride = carries.line_stride * element;
    const std::int64_t line_bytes = carries.split ? 2 * line_stride : line_stride;
    return {carries.first + line * line_bytes + position * carries.position_stride * element, line_bytes,
            carries.split ? line_stride : std::int64_t{sizeof(std::uint16_t)}, in_halves};
  }

  __device__ void load(float (&state)[Order]) const {
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      state[k] = in_halves ? __uint_as_float(__ldcg(low(k)) | std::uint32_t{__ldcg(high(k))} << 16)
                           : __ldcg(number(k));
    }
  }
  __device__ void store(const double (&state)[Order]) const {
    if (in_halves) {
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        const std::uint32_t bits = __float_as_uint(static_cast<float>(state[k]));
        __stcg(low(k), static_cast<unsigned short>(bits));
        __stcg(high(k), static_cast<unsigned short>(bits >> 16));
      }
    } else {
#pragma unroll
      for (int k = 0; k < Order; ++k) __stcg(number(k), static_cast<float>(state[k]));
    }
  }

  __device__ float* number(int k) const { return reinterpret_cast<float*>(first + k * line_bytes); }
  __device__ unsigned short* low(int k) const {
    return reinterpret_cast<unsigned short*>(first + k * line_bytes);
  }
  __device__ unsigned short* high(int k) const {
    return reinterpret_cast<unsigned short*>(first + k * line_bytes + high_bytes);
  }
};

/// One line in one direction. Tiles, and segments of those between the first and the last tile, count in
/// that direction.
template <int Order>
struct LineInDirection {
  const CompleteArguments<Order>& a;
  const LineBlock& block;
  std::int64_t line;
  std::int64_t tiles;
  bool backward;

  __device__ StatePlace<Order> place(std::int64_t tile) const {
    const std::int64_t cross_tile = line / kTile;
    const std::int64_t along = backward ? tiles - 1 - tile : tile;
    const TileIndex index{block.image, a.along_y ? along : cross_tile, a.along_y ? cross_tile : along,
                          block.channel};
    return StatePlace<Order>::of(a.carries.at(index), backward ? a.lines.anticausal : a.lines.causal,
                                 static_cast<int>(line % kTile),
                                 a.carries.filtered.kind == ElementKind::kHalf);
  }
  /// From a tile to the next one, where neither is the first or the last.
  __device__ std::int64_t tile_bytes() const {
    const std::int64_t bytes = a.carries.tile_bytes(line / kTile, a.along_y);
    return backward ? -bytes : bytes;
  }
};

template <int Order>
__device__ void apply_transition(const SmallMatrix<Order, double>& transition,
                                 const float (&aggregate)[Order], double (&state)[Order]) {
  double addend[Order];
#pragma unroll
  for (int k = 0; k < Order; ++k) addend[k] = static_cast<double>(aggregate[k]);
  apply_transition(transition, addend, state);
}

/// One thread: the tiles of one segment. The states of carry_batch(Order) tiles stay in registers, so that
/// those of shorter segments are read once.
template <int Order>
class Segment {
 public:
  static constexpr int kBatch = carry_batch(Order);
  using Matrix = SmallMatrix<Order, double>;

  __device__ Segment(const LineInDirection<Order>& line, int first, int max_count, int count)
      : place_(line.place(first)), tile_bytes_(line.tile_bytes()), max_count_(max_count), count_(count) {
    load(0);
  }

  /// The zero-state response of the segment.
  __device__ void run(const Matrix& tile_transition, double (&state)[Order]) {
    for (int batch = 0; batch < max_count_; batch += kBatch) {
      if (batch > 0) load(batch);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (batch + i >= max_count_) break;
        double next[Order];
#pragma unroll
        for (int k = 0; k < Order; ++k) next[k] = static_cast<double>(aggregates_[i][k]);
        tile_transition.add_product(state, next);
#pragma unroll
        for (int k = 0; k < Order; ++k) state[k] = batch + i < count_ ? next[k] : state[k];
      }
    }
  }

  /// Replaces each tile's response by its carry-in; `state` is the first one's.
  __device__ void complete(const Matrix& tile_transition, double (&state)[Order]) {
    for (int batch = 0; batch < max_count_; batch += kBatch) {
      if (max_count_ > kBatch) load(batch);
      StatePlace<Order> place = place_of(batch);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (batch + i >= max_count_) break;
        if (batch + i < count_) place.store(state);
        place.first += tile_bytes_;
        apply_transition(tile_transition, aggregates_[i], state);
      }
    }
  }

 private:
  /// All loads in flight at once: no branch between them depends on where they lie, none on another.
  __device__ void load(int batch) {
    StatePlace<Order> place = place_of(batch);
    if (place.in_halves) {
#pragma unroll
      for (int i = 0; i < kBatch; i += kHalvesBatch) load_halves(batch, i, place);
      return;
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (batch + i >= max_count_) break;
#pragma unroll
      for (int k = 0; k < Order; ++k) aggregates_[i][k] = batch + i < count_ ? __ldcg(place.number(k)) : 0.0f;
      place.first += tile_bytes_;
    }
  }
  __device__ void load_halves(int batch, int first, StatePlace<Order>& place) {
    unsigned short low[kHalvesBatch][Order];
    unsigned short high[kHalvesBatch][Order];
#pragma unroll
    for (int i = 0; i < kHalvesBatch; ++i) {
      const bool there = batch + first + i < count_;
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        low[i][k] = there ? __ldcg(place.low(k)) : 0;
        high[i][k] = there ? __ldcg(place.high(k)) : 0;
      }
      place.first += tile_bytes_;
    }
#pragma unroll
    for (int i = 0; i < kHalvesBatch; ++i) {
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        aggregates_[first + i][k] = __uint_as_float(low[i][k] | std::uint32_t{high[i][k]} << 16);
      }
    }
  }
  __device__ StatePlace<Order> place_of(int i) const {
    StatePlace<Order> place = place_;
    place.first += i * tile_bytes_;
    return place;
  }

  static constexpr int kHalvesBatch = 2;
  StatePlace<Order> place_;
  std::int64_t tile_bytes_;
  int max_count_;  // tiles of any segment
  int count_;      // of this one
  float aggregates_[kBatch][Order];
};

/// One direction of the lines of a block.
template <int Order>
struct SegmentStates {
  using OfLines = double[Order][kCarryLines];

  OfLines of[carry_segments(Order)];  // zero-state responses of segments; later their carry-ins
  OfLines whole;                      // zero-state responses of lines

  __device__ static void load(const OfLines& from, double (&state)[Order]) {
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] = from[k][threadIdx.x];
  }
  __device__ static void store(const double (&state)[Order], OfLines& to) {
#pragma unroll
    for (int k = 0; k < Order; ++k) to[k][threadIdx.x] = state[k];
  }

  /// Takes `state` through all segments. `Replace`: they are replaced by their carry-ins. Only threads that
  /// lead a line do; the others of their warps stay converged.
  template <bool Replace>
  __device__ void pass(const CarryTransitions<Order>& transitions, int segments, bool leads,
                       double (&state)[Order]) {
    const auto pass_one = [&](int i, const SmallMatrix<Order, double>& transition) {
      double aggregate[Order] = {};
      if (leads) load(of[i], aggregate);
      if (Replace && leads) store(state, of[i]);
      apply_transition(transition, aggregate, state);
    };
#pragma unroll 4
    for (int i = 0; i < segments - 1; ++i) pass_one(i, transitions.segment);
    if (segments > 0) pass_one(segments - 1, transitions.last_segment);
  }
};

/// The ends of a line in one direction; in shared memory, to save registers.
template <int Order>
struct LineEnds {
  StatePlace<Order> first, last;  // tiles
  float pixel;                    // the first
  float aggregate[Order];         // of the first tile
};

/// The zero-state response of the whole line.
template <int Order>
__device__ void find_whole(const CarryPlan<Order>& plan, const CarryTransitions<Order>& transitions,
                           const LineEnds<Order>& ends, bool leads, SegmentStates<Order>& segments) {
  double state[Order] = {};
  apply_transition(transitions.tile, ends.aggregate, state);
  segments.template pass<false>(transitions, plan.segments, leads, state);
  if (plan.tiles > 1) {
    float last[Order] = {};
    if (leads) ends.last.load(last);
    apply_transition(transitions.last_of_whole, last, state);
  }
  if (leads) segments.store(state, segments.whole);
}

/// Stores the carry-ins of the first and the last tile, and replaces segments by theirs; `state` is the first
/// tile's.
template <int Order>
__device__ void pass_on(const CarryPlan<Order>& plan, const CarryTransitions<Order>& transitions,
                        const LineEnds<Order>& ends, bool leads, double (&state)[Order],
                        SegmentStates<Order>& segments) {
  if (leads) ends.first.store(state);
  if (plan.tiles == 1) return;
  apply_transition(transitions.first_tile, ends.aggregate, state);
  segments.template pass<true>(transitions, plan.segments, leads, state);
  if (leads) ends.last.store(state);
}

/// The initial condition that the boundary gives: the carry-in of the line's first tile.
template <int Order>
__device__ void find_boundary_state(const CarryPlan<Order>& plan,
                                    const BoundaryTransitions<Order>& transitions, float pixel,
                                    const SegmentStates<Order> (&segments)[2], double (&state)[Order]) {
#pragma unroll
  for (int k = 0; k < Order; ++k) state[k] = transitions.from_pixel[k] * pixel;
  if (!plan.needs_runs) return;
  double whole[Order];
  segments[0].load(segments[0].whole, whole);
  transitions.from_forward.add_product(whole, state);
  segments[1].load(segments[1].whole, whole);
  transitions.from_backward.add_product(whole, state);
}

template <int Order>
inline constexpr int kCarryThreads = carry_threads(Order);

/// Completes the carries of one axis, in both directions.
/// Owns: a block kCarryLines lines of one channel; a thread one segment of tiles of a line in one direction.
/// Reads: the zero-state responses of their tiles, and border pixels. Writes: the tiles' carry-ins, in place.
/// Waits for: nothing of other blocks, so that it cannot deadlock; the block's barrier.
/// Source: steps (2) and (4) of tiled/tiled.cu; segments as in a reduce-then-scan.
template <int Order>
__global__ void __launch_bounds__(kCarryThreads<Order>, kCarryBlocks)
    complete_carries(const __grid_constant__ CompleteArguments<Order> a,
                     const __grid_constant__ CarryPlan<Order> plan) {
  static_assert(kCarryThreads<Order> % (2 * kWarp) == 0, "a warp has one direction");
  __shared__ SegmentStates<Order> states[2];
  __shared__ LineEnds<Order> line_ends[2][kCarryLines];
  const int index = static_cast<int>(threadIdx.y);
  // Shuffled from the first lane, values are uniform for the compiler too: warps do not diverge, and matrices
  // lie in uniform registers.
  const bool backward = __shfl_sync(kFullWarp, static_cast<int>(threadIdx.z), 0) == 1;
  const bool warp_leads = __shfl_sync(kFullWarp, index, 0) == 0;
  SegmentStates<Order>& direction_states = states[threadIdx.z];
  LineEnds<Order>& ends = line_ends[threadIdx.z][threadIdx.x];
  const auto channels = static_cast<unsigned int>(a.carries.channels);
  const unsigned int block_of_image = blockIdx.x % a.blocks_of_image;
  const LineBlock block{blockIdx.x / a.blocks_of_image, block_of_image % channels,
                        std::int64_t{block_of_image / channels} * kCarryLines};
  const LineInDirection<Order> line{a, block, block.first_line + threadIdx.x, plan.tiles, backward};
  const bool inside = line.line < a.cross_length;
  const bool leads = inside && index == 0;  // of its line's threads
  const int first = index * plan.segment_tiles;
  const int inner_tiles = static_cast<int>(plan.tiles) - 2;
  Segment<Order> segment(line, 1 + first, plan.segment_tiles,
                         inside ? min(plan.segment_tiles, inner_tiles - first) : 0);
  if (leads) {
    // Both loads in flight before either is used.
    LineEnds<Order> found{line.place(0), line.place(plan.tiles - 1)};
    found.first.load(found.aggregate);
    const std::int64_t pixel =
        block.image * a.border.image_stride + line.line * a.carries.channels + block.channel;
    found.pixel = (backward ? a.border.last : a.border.first).template load<float>(pixel);
    ends = found;
  }

  double state[Order] = {};
  backward ? segment.run(plan.backward.tile, state) : segment.run(plan.forward.tile, state);
  direction_states.store(state, direction_states.of[index]);
  __syncthreads();
  if (plan.needs_runs) {
    if (warp_leads) {
      backward ? find_whole(plan, plan.backward, ends, leads, direction_states)
               : find_whole(plan, plan.forward, ends, leads, direction_states);
    }
    __syncthreads();
  }
  if (warp_leads) {
    if (backward) {
      find_boundary_state(plan, plan.end, ends.pixel, states, state);
      pass_on(plan, plan.backward, ends, leads, state, direction_states);
    } else {
      find_boundary_state(plan, plan.start, ends.pixel, states, state);
      pass_on(plan, plan.forward, ends, leads, state, direction_states);
    }
  }
  __syncthreads();
  direction_states.load(direction_states.of[index], state);
  backward ? segment.complete(plan.backward.tile, state) : segment.complete(plan.forward.tile, state);
}

}  // namespace cumulus::recursive_filter
