#pragma once

// The kernels that draw samples, whatever finds a point's cell: a Locate is constructed of a TableView, and
// locate(cells, x) is the Located of x in a Distribution.

#include <algorithm>
#include <stdexcept>

#include "kernels/core/div.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/multiprocessor.cuh"
#include "kernels/sampling_table/draw/draw.h"
#include "kernels/sampling_table/draw/shared_guide.cuh"
#include "kernels/sampling_table/tuning.h"

namespace cumulus::sampling_table {

inline unsigned blocks_for(std::int64_t count, int threads = kDrawThreads) {
  return static_cast<unsigned>(divide_up(count, threads));
}

/// Stores the samples of a warp, of which lane 0 has number `first`; every lane comes here.
template <bool kDirections>
__device__ void store_warp(const sampling::Sample& drawn, std::uint32_t first, std::uint32_t count,
                           const SampleArrays& arrays, float* staged) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t i = first + lane;
  if (i < count) {
    if (reinterpret_cast<std::uintptr_t>(arrays.position) % sizeof(float2) == 0) {
      reinterpret_cast<float2*>(arrays.position)[i] = make_float2(drawn.u, drawn.v);
    } else {
      arrays.position[2 * i] = drawn.u;
      arrays.position[2 * i + 1] = drawn.v;
    }
    arrays.pdf[i] = drawn.pdf;
  }
  if constexpr (kDirections) {  // three words a lane: in the order of memory they are whole sectors
    __syncwarp();
#pragma unroll
    for (std::uint32_t axis = 0; axis < 3; ++axis) staged[3 * lane + axis] = drawn.direction[axis];
    __syncwarp();
#pragma unroll
    for (std::uint32_t part = 0; part < 3; ++part) {
      const std::uint32_t word = 3 * first + 32 * part + lane;
      if (word < 3 * count) arrays.direction[word] = staged[32 * part + lane];
    }
  }
}

/// The point of this lane, where lane 0 has number `first`; after the last one any.
template <class Points>
__device__ sampling::FixedPoint2 point_at(const Points& points, std::uint32_t first, std::uint32_t count) {
  const std::uint32_t i = first + threadIdx.x % 32;
  return i < count ? points.point(i) : sampling::FixedPoint2{};
}

// What a block has in shared memory. Numbers, since nvcc 13.0 writes code that does not compile where a
// kernel has an enumerator for an argument.
inline constexpr unsigned kNothingShared = 0;
inline constexpr unsigned kReadyRows = 1;
inline constexpr unsigned kRefinedRows = 2;
inline constexpr unsigned kSingleRow = 3;
inline constexpr unsigned kReadyColumns = 4;
inline constexpr unsigned kAliasRows = 5;

/// The blocks of a kernel: their threads, and how many of them a multiprocessor holds. What is mostly found
/// in shared memory gains by as many threads as it can; what is not loses by them what it has in the first
/// cache, and so it does by blocks that have the same rows in shared memory.
struct BlockShape {
  int threads;
  int per_multiprocessor;
};
CUMULUS_HOST_DEVICE constexpr BlockShape shape_of(unsigned shared) {
  switch (shared) {
    case kReadyRows:
      return {kReadyRowsThreads, 2};
    case kReadyColumns:
      return {kDrawThreads, 4};
    default:
      return {kDrawThreads, 3};
  }
}

/// A table, and what follows from its header alone.
struct DrawnTable {
  sampling::TableView view;
  sampling::detail::Rows rows;
  sampling::detail::Extents extents;
};

template <unsigned kShared, class Locate>
__device__ auto row_search(const sampling::TableView& table, const RefinedGuideShape& guide,
                           unsigned char* shared) {
  if constexpr (kShared == kReadyRows) {
    return ReadyRows(table, shared);
  } else if constexpr (kShared == kRefinedRows) {
    return RefinedRows(table, guide, shared);
  } else if constexpr (kShared == kAliasRows) {
    return AliasRows(table, shared);
  } else if constexpr (kShared == kNothingShared) {
    return sampling::detail::RowSearch<Locate, sampling::detail::BandOfRow>{
        Locate(table), sampling::detail::marginal(table), {table.header.projection, table.header.height}};
  } else {
    return SingleRow(table);
  }
}
template <unsigned kShared, class Locate>
__device__ auto column_search(const DrawnTable& table, unsigned char* shared) {
  if constexpr (kShared == kReadyColumns) {
    return ReadyColumns(table.view, shared);
  } else {
    return sampling::detail::ColumnSearch<Locate>{Locate(table.view), table.rows};
  }
}

/// Samples of a constant table.
/// owns: a warp has 32 neighbouring samples, and then those a grid further.
/// reads: its points; the table; what kShared says from the block's shared memory, which each block fills
/// first: that pays for many samples.
/// writes: its samples, directions by way of shared memory in whole sectors.
/// waits for: nothing of other blocks, so that there is no deadlock.
/// source: inversion by cutpoints (Chen and Asau, 1974), radix forests (Binder and Keller, 2020) or alias
/// tables (Walker, 1977).
template <unsigned kShared, class Locate, bool kDirections, class Points>
__global__ void __launch_bounds__(shape_of(kShared).threads,
                                  blocks_per_multiprocessor(shape_of(kShared).per_multiprocessor,
                                                            shape_of(kShared).threads))
    draw_points(const __grid_constant__ DrawnTable table, const __grid_constant__ Points points,
                std::uint32_t count, SampleArrays arrays, RefinedGuideShape guide) {
  constexpr int kOfBlock = shape_of(kShared).threads;
  extern __shared__ uint4 shared_quads[];
  __shared__ float staged[kDirections ? 3 * kOfBlock : 1];
  float* const of_warp = staged + (kDirections ? threadIdx.x / 32 * 96 : 0);
  auto* const shared = reinterpret_cast<unsigned char*>(shared_quads);
  const auto row_of = row_search<kShared, Locate>(table.view, guide, shared);
  const auto column_of = column_search<kShared, Locate>(table, shared);
  const std::uint32_t stride = gridDim.x * kOfBlock;
  std::uint32_t first = blockIdx.x * kOfBlock + (threadIdx.x & ~31u);
  sampling::FixedPoint2 point = point_at(points, first, count);
  for (; first < count; first += stride) {
    // The load of the next is in flight while this one is looked up.
    const sampling::FixedPoint2 next = point_at(points, first + stride, count);
    sampling::Sample drawn;
    if (first + threadIdx.x % 32 < count) {
      drawn = sampling::detail::sample_constant(table.view.header, table.extents, row_of, column_of, point.x,
                                                point.y);
    }
    store_warp<kDirections>(drawn, first, count, arrays, of_warp);
    point = next;
  }
}

/// Launches what a plan for a constant table says. Samples whose columns are found by Locate.
template <class Locate, bool kDirections, class Points>
class ConstantDraws {
 public:
  ConstantDraws(CudaExecutor& executor, const DrawLaunch<Points>& draw, const sampling::detail::Rows& rows)
      : executor_(executor),
        draw_(draw),
        table_{draw.table,
               rows,
               {sampling::detail::Extent(draw.table.header.width),
                sampling::detail::Extent(draw.table.header.height)}} {}

  /// A sample a thread.
  void draw_few() const {
    launch(executor_.stream(), draw_points<kNothingShared, Locate, kDirections, Points>,
           {blocks_for(draw_.count), kDrawThreads}, table_, draw_.points, draw_.count, draw_.arrays,
           RefinedGuideShape{});
  }

  /// As many blocks as the device is to hold.
  template <unsigned kShared>
  void draw_many(std::size_t shared_bytes, const RefinedGuideShape& guide = {}) const {
    constexpr BlockShape kShape = shape_of(kShared);
    const auto kernel = draw_points<kShared, Locate, kDirections, Points>;
    const std::int64_t multiprocessors = executor_.device().multiprocessors();
    const std::int64_t resident = resident_blocks(executor_, kernel, kShape.threads, shared_bytes);
    const std::int64_t blocks =
        std::clamp(resident, multiprocessors, multiprocessors * kShape.per_multiprocessor);
    launch(executor_.stream(), kernel,
           {std::min(blocks, std::int64_t{blocks_for(draw_.count, kShape.threads)}), kShape.threads,
            shared_bytes},
           table_, draw_.points, draw_.count, draw_.arrays, guide);
  }

 private:
  CudaExecutor& executor_;
  const DrawLaunch<Points>& draw_;
  DrawnTable table_;
};

}  // namespace cumulus::sampling_table
