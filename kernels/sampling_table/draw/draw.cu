#include <algorithm>

#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/multiprocessor.cuh"
#include "kernels/sampling_table/draw/draw.h"
#include "kernels/sampling_table/draw/shared_marginal.cuh"
#include "kernels/sampling_table/tuning.h"

namespace cumulus::sampling_table {
namespace {

constexpr int kThreads = kDrawThreads;

unsigned blocks_for(std::int64_t count, int threads = kThreads) {
  return static_cast<unsigned>((count + threads - 1) / threads);
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

// Numbers, since nvcc 13.0 writes code that does not compile where a kernel has an enumerator for an
// argument.
constexpr unsigned number_of(sampling::Method method) { return static_cast<unsigned>(method); }
constexpr unsigned kAnyMethod = 0;

// What a block has in shared memory.
constexpr unsigned kGlobalTable = 0;
constexpr unsigned kSharedMarginal = 1;
constexpr unsigned kRefinedRows = 2;     // of radix forests
constexpr unsigned kRefinedColumns = 3;  // of a radix forest over a single row

/// The blocks of a kernel: their threads, and how many of them a multiprocessor holds. What is mostly found
/// in shared memory gains by as many threads as it can; what is not loses by them what it has in the first
/// cache, and so it does by blocks that have the same rows in shared memory.
struct BlockShape {
  int threads;
  int per_multiprocessor;
};
CUMULUS_HOST_DEVICE constexpr BlockShape shape_of(unsigned shared) {
  switch (shared) {
    case kRefinedRows:
      return {kRefinedRowsThreads, 2};
    case kRefinedColumns:
      return {kThreads, 4};
    default:
      return {kThreads, 3};
  }
}

template <unsigned kShared>
__device__ auto row_search(const sampling::TableView& table, sampling::Method method,
                           const MarginalBytes& bytes, unsigned char* shared) {
  if constexpr (kShared == kSharedMarginal) {
    return shared_rows(table, method, bytes, shared);
  } else if constexpr (kShared == kRefinedRows) {
    return RefinedRows(table, shared);
  } else {
    return global_rows(table, method);
  }
}
template <unsigned kShared>
__device__ auto column_search(const sampling::TableView& table, sampling::Method method,
                              const sampling::detail::Rows& rows, unsigned char* shared) {
  if constexpr (kShared == kRefinedColumns) {
    return RefinedColumns(table, shared);
  } else {
    return sampling::detail::ColumnSearch{method, rows};
  }
}

/// Samples of a constant table, of method kMethod unless that is kAnyMethod.
/// owns: a warp has 32 neighbouring samples, and then those a grid further.
/// reads: its points; the table; what kShared says from the block's shared memory, which each block fills
/// first: that pays for many samples.
/// writes: its samples, directions by way of shared memory in whole sectors.
/// waits for: nothing of other blocks, so that there is no deadlock.
/// source: inversion by cutpoints (Chen and Asau, 1974), radix forests (Binder and Keller, 2020) or alias
/// tables (Walker, 1977).
/// Seven arguments: in structs, the compiler makes other code of them.
template <unsigned kShared, unsigned kMethod, bool kDirections, class Points>
__global__ void __launch_bounds__(shape_of(kShared).threads,
                                  blocks_per_multiprocessor(shape_of(kShared).per_multiprocessor,
                                                            shape_of(kShared).threads))
    draw_points(const __grid_constant__ sampling::TableView table,
                const __grid_constant__ sampling::detail::Rows rows,
                const __grid_constant__ sampling::detail::Extents extents,
                const __grid_constant__ Points points, std::uint32_t count, SampleArrays arrays,
                MarginalBytes bytes) {
  constexpr int kOfBlock = shape_of(kShared).threads;
  extern __shared__ uint4 shared_quads[];
  __shared__ float staged[kDirections ? 3 * kOfBlock : 1];
  float* const of_warp = staged + (kDirections ? threadIdx.x / 32 * 96 : 0);
  const auto method = kMethod == kAnyMethod ? table.header.method : sampling::Method{kMethod};
  auto* const shared = reinterpret_cast<unsigned char*>(shared_quads);
  const auto row_of = row_search<kShared>(table, method, bytes, shared);
  const auto column_of = column_search<kShared>(table, method, rows, shared);
  const std::uint32_t stride = gridDim.x * kOfBlock;
  std::uint32_t first = blockIdx.x * kOfBlock + (threadIdx.x & ~31u);
  sampling::FixedPoint2 point = point_at(points, first, count);
  for (; first < count; first += stride) {
    // The load of the next is in flight while this one is looked up.
    const sampling::FixedPoint2 next = point_at(points, first + stride, count);
    sampling::Sample drawn;
    if (first + threadIdx.x % 32 < count) {
      drawn = sampling::detail::sample_constant(table.header, extents, row_of, column_of, point.x, point.y);
    }
    store_warp<kDirections>(drawn, first, count, arrays, of_warp);
    point = next;
  }
}

/// Samples of a bilinear table.
/// owns: a thread has one sample.
/// reads: its point; the table.
/// writes: its sample.
/// waits for: nothing of other blocks, so that there is no deadlock.
template <class Points>
__global__ void __launch_bounds__(kThreads)
    draw_bilinear_points(const __grid_constant__ sampling::TableView table,
                         const __grid_constant__ Points points, std::int64_t count, SampleArrays arrays) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const sampling::FixedPoint2 point = points.point(i);
  store_sample(sampling::sample_bilinear(table, point.x, point.y), i, arrays);
}

sampling::detail::Rows rows_of(const sampling::TableView& table) {
  return sampling::detail::rows_of(table, table.header.method);
}
sampling::detail::Extents extents_of(const sampling::TableView& table) {
  return {sampling::detail::Extent(table.header.width), sampling::detail::Extent(table.header.height)};
}

/// As many blocks as the device is to hold.
template <unsigned kShared, unsigned kMethod, bool kDirections, class Points>
void draw_many(CudaExecutor& executor, const DrawLaunch<Points>& draw, std::size_t shared_bytes,
               const MarginalBytes& bytes = {}) {
  constexpr BlockShape kShape = shape_of(kShared);
  const auto kernel = draw_points<kShared, kMethod, kDirections, Points>;
  const std::int64_t multiprocessors = executor.device().multiprocessors();
  const std::int64_t resident = resident_blocks(executor, kernel, kShape.threads, shared_bytes);
  const std::int64_t blocks =
      std::clamp(resident, multiprocessors, multiprocessors * kShape.per_multiprocessor);
  launch(
      executor.stream(), kernel,
      {std::min(blocks, std::int64_t{blocks_for(draw.count, kShape.threads)}), kShape.threads, shared_bytes},
      draw.table, rows_of(draw.table), extents_of(draw.table), draw.points, draw.count, draw.arrays, bytes);
}

/// The kernels of one plan each.
template <bool kDirections, class Points>
struct DrawByPlan {
  CudaExecutor& executor;
  const DrawLaunch<Points>& draw;

  void operator()(const BilinearPlan& /*plan*/) const {
    launch(executor.stream(), draw_bilinear_points<Points>, {blocks_for(draw.count), kThreads}, draw.table,
           draw.points, std::int64_t{draw.count}, draw.arrays);
  }
  void operator()(const GlobalTablePlan& /*plan*/) const {
    launch(executor.stream(), draw_points<kGlobalTable, kAnyMethod, kDirections, Points>,
           {blocks_for(draw.count), kThreads}, draw.table, rows_of(draw.table), extents_of(draw.table),
           draw.points, draw.count, draw.arrays, MarginalBytes{});
  }
  void operator()(const SharedMarginalPlan& plan) const {
    switch (draw.table.header.method) {
      case sampling::Method::kRadixForest:
        return with_marginal<number_of(sampling::Method::kRadixForest)>(plan.bytes);
      case sampling::Method::kCutpointBinary:
        return with_marginal<number_of(sampling::Method::kCutpointBinary)>(plan.bytes);
      case sampling::Method::kAlias:
        return with_marginal<number_of(sampling::Method::kAlias)>(plan.bytes);
      default:
        return with_marginal<kAnyMethod>(plan.bytes);
    }
  }
  void operator()(const RefinedRowsPlan& plan) const {
    draw_many<kRefinedRows, number_of(sampling::Method::kRadixForest), kDirections>(executor, draw,
                                                                                    plan.shared_bytes);
  }
  void operator()(const RefinedColumnsPlan& plan) const {
    draw_many<kRefinedColumns, number_of(sampling::Method::kRadixForest), kDirections>(executor, draw,
                                                                                       plan.shared_bytes);
  }

 private:
  template <unsigned kMethod>
  void with_marginal(const MarginalBytes& bytes) const {
    draw_many<kSharedMarginal, kMethod, kDirections>(executor, draw, bytes.all(), bytes);
  }
};

/// Densities at points.
/// owns: a thread has one point.
/// reads: its point; the table.
/// writes: its density.
/// waits for: nothing of other blocks, so that there is no deadlock.
__global__ void __launch_bounds__(kThreads)
    evaluate_points(const __grid_constant__ sampling::TableView table, const float* coordinates,
                    int dimensions, std::int64_t count, float* pdf) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  pdf[i] = density_at(table, coordinates, dimensions, i);
}

}  // namespace

template <class Points>
void draw_by(CudaExecutor& executor, const DrawPlan& plan, const DrawLaunch<Points>& draw) {
  if (draw.arrays.direction != nullptr) {
    std::visit(DrawByPlan<true, Points>{executor, draw}, plan);
  } else {
    std::visit(DrawByPlan<false, Points>{executor, draw}, plan);
  }
}

template void draw_by(CudaExecutor&, const DrawPlan&, const DrawLaunch<PointSource>&);
template void draw_by(CudaExecutor&, const DrawPlan&, const DrawLaunch<GivenPoints>&);

void evaluate(CudaExecutor& executor, const sampling::TableView& table, const float* coordinates,
              int dimensions, DeviceSpan<float> pdf) {
  const auto count = static_cast<std::int64_t>(pdf.size());
  launch(executor.stream(), evaluate_points, {blocks_for(count), kThreads}, table, coordinates, dimensions,
         count, pdf.data());
}

}  // namespace cumulus::sampling_table
