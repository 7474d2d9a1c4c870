#include <algorithm>

#include "kernels/primitives/multiprocessor.cuh"
#include "kernels/sampling_table/check.h"
#include "kernels/sampling_table/draw/points.h"
#include "kernels/sampling_table/draw/shared_marginal.cuh"
#include "kernels/sampling_table/sampling_table.h"
#include "kernels/sampling_table/tuning.h"

namespace cumulus::sampling_table {
namespace {

constexpr int kThreads = kDrawThreads;

sampling::TableView view_of(const sampling::TableHeader& header, DeviceSpan<const std::byte> table,
                            std::uint32_t layer) {
  return {header, reinterpret_cast<const unsigned char*>(table.data()), layer};
}

sampling::detail::Rows rows_of(const sampling::TableView& table) {
  return sampling::detail::rows_of(table, table.header.method);
}

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

/// The arguments of draw_points.
template <class Points>
struct Drawing {
  const sampling::TableView& table;
  Points points;
  std::uint32_t count;
  SampleArrays arrays;
  MarginalBytes marginal_bytes;
};

sampling::detail::Extents extents_of(const sampling::TableView& table) {
  return {sampling::detail::Extent(table.header.width), sampling::detail::Extent(table.header.height)};
}

/// As many blocks as the device is to hold.
template <unsigned kShared, unsigned kMethod, bool kDirections, class Points>
void draw_many(CudaExecutor& executor, const Drawing<Points>& drawing, std::size_t shared_bytes) {
  const auto kernel = draw_points<kShared, kMethod, kDirections, Points>;
  CUMULUS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared_bytes)));
  int per_multiprocessor = 0;
  constexpr BlockShape kShape = shape_of(kShared);
  CUMULUS_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, kShape.threads,
                                                             shared_bytes));
  const auto blocks = static_cast<unsigned>(std::clamp(per_multiprocessor, 1, kShape.per_multiprocessor) *
                                            executor.device().multiprocessors());
  kernel<<<std::min(blocks, blocks_for(drawing.count, kShape.threads)), kShape.threads, shared_bytes,
           executor.stream()>>>(drawing.table, rows_of(drawing.table), extents_of(drawing.table),
                                drawing.points, drawing.count, drawing.arrays, drawing.marginal_bytes);
  CUMULUS_CUDA(cudaGetLastError());
}

/// By a radix forest, with up to `room` bytes in shared memory.
template <bool kDirections, class Points>
void draw_many_by_forest(CudaExecutor& executor, const Drawing<Points>& drawing, std::size_t room) {
  constexpr unsigned kForest = number_of(sampling::Method::kRadixForest);
  const sampling::TableHeader& header = drawing.table.header;
  const std::uint64_t rows = RefinedRows::bytes(header);
  const std::uint64_t columns = RefinedColumns::bytes(header);
  if (header.height > 1 && rows <= room) {
    return draw_many<kRefinedRows, kForest, kDirections>(executor, drawing, rows);
  }
  if (header.height == 1 && columns <= room) {
    return draw_many<kRefinedColumns, kForest, kDirections>(executor, drawing, columns);
  }
  draw_many<kSharedMarginal, kForest, kDirections>(executor, drawing, drawing.marginal_bytes.all());
}

template <bool kDirections, class Points>
void draw_constant(CudaExecutor& executor, const sampling::TableView& table, const Points& points,
                   std::uint32_t count, const SampleArrays& arrays) {
  using sampling::Method;
  constexpr std::uint32_t kMinSharedPoints = 1 << 20;
  constexpr std::uint32_t kMaxSharedBytes =
      72 * 1024;  // so that three blocks fit into an H200's multiprocessor
  Drawing<Points> drawing{table, points, count, arrays, marginal_bytes(table.header)};
  MarginalBytes& bytes = drawing.marginal_bytes;
  if (bytes.all() > kMaxSharedBytes) bytes.bands = 0;
  int limit = 0;
  CUMULUS_CUDA(
      cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, executor.device().ordinal()));
  const auto room = std::min(kMaxSharedBytes, static_cast<std::uint32_t>(limit) - 8192);
  if (count < kMinSharedPoints || bytes.all() > room) {
    draw_points<kGlobalTable, kAnyMethod, kDirections><<<blocks_for(count), kThreads, 0, executor.stream()>>>(
        table, rows_of(table), extents_of(table), points, count, arrays, bytes);
    CUMULUS_CUDA(cudaGetLastError());
    return;
  }
  switch (table.header.method) {
    case Method::kRadixForest:
      return draw_many_by_forest<kDirections>(executor, drawing, room);
    case Method::kCutpointBinary:
      return draw_many<kSharedMarginal, number_of(Method::kCutpointBinary), kDirections>(executor, drawing,
                                                                                         bytes.all());
    case Method::kAlias:
      return draw_many<kSharedMarginal, number_of(Method::kAlias), kDirections>(executor, drawing,
                                                                                bytes.all());
    default:
      return draw_many<kSharedMarginal, kAnyMethod, kDirections>(executor, drawing, bytes.all());
  }
}

template <class Points>
void draw(CudaExecutor& executor, const sampling::TableView& table, const Points& points, std::int64_t count,
          const SampleArrays& arrays) {
  if (count == 0) return;
  executor.bind_thread();
  if (table.header.interpolation == sampling::Interpolation::kBilinear) {
    draw_bilinear_points<<<blocks_for(count), kThreads, 0, executor.stream()>>>(table, points, count, arrays);
    CUMULUS_CUDA(cudaGetLastError());
    return;
  }
  constexpr std::int64_t kMaxLaunchPoints = std::int64_t{1} << 30;  // numbers of 32 bits count their words
  for (std::int64_t begin = 0; begin < count; begin += kMaxLaunchPoints) {
    const auto share = static_cast<std::uint32_t>(std::min(count - begin, kMaxLaunchPoints));
    if (arrays.direction != nullptr) {
      draw_constant<true>(executor, table, points.from(begin), share, arrays.from(begin));
    } else {
      draw_constant<false>(executor, table, points.from(begin), share, arrays.from(begin));
    }
  }
}

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
}  // namespace cumulus::sampling_table

namespace cumulus {

void draw_samples(CudaExecutor& executor, const sampling::TableHeader& header,
                  DeviceSpan<const std::byte> table, const DrawParameters& parameters,
                  DrawnSamples<Space::kDevice> samples) {
  using namespace sampling_table;
  check_draw(header, table, parameters, samples);
  draw(executor, view_of(header, table, parameters.layer), PointSource(parameters), parameters.count,
       sample_arrays(samples));
}

void sample_points(CudaExecutor& executor, const sampling::TableHeader& header,
                   DeviceSpan<const std::byte> table, DeviceSpan<const sampling::FixedPoint2> points,
                   std::uint32_t layer, DrawnSamples<Space::kDevice> samples) {
  using namespace sampling_table;
  check_points(header, table, points.size(), layer, samples);
  draw(executor, view_of(header, table, layer), GivenPoints{points.data()},
       static_cast<std::int64_t>(points.size()), sample_arrays(samples));
}

void evaluate_density(CudaExecutor& executor, const sampling::TableHeader& header,
                      DeviceSpan<const std::byte> table, DensityPoints<Space::kDevice> points,
                      DeviceSpan<float> pdf) {
  using namespace sampling_table;
  check_density(header, table, points, pdf);
  if (pdf.empty()) return;
  executor.bind_thread();
  const auto count = static_cast<std::int64_t>(pdf.size());

  evaluate_points<<<blocks_for(count), kThreads, 0, executor.stream()>>>(
      view_of(header, table, points.layer), points.coordinates.data(), points.dimensions, count, pdf.data());
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus
