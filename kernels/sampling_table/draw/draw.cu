#include <algorithm>

#include "kernels/primitives/multiprocessor.cuh"
#include "kernels/sampling_table/check.h"
#include "kernels/sampling_table/draw/points.h"
#include "kernels/sampling_table/draw/shared_marginal.cuh"
#include "kernels/sampling_table/sampling_table.h"
#include "kernels/sampling_table/tuning.h"

namespace cumulus {
namespace {

constexpr int kThreads = sampling_tuning::kDrawThreads;

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

/// The point of this lane, where lane 0 has number `first`; behind the last one any.
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
constexpr unsigned kNothingNear = 0;
constexpr unsigned kMarginalNear = 1;
constexpr unsigned kRowsOpen = 2;     // of radix forests
constexpr unsigned kColumnsOpen = 3;  // of a radix forest over a single row

/// The blocks of a kernel: their threads, and how many of them a multiprocessor holds. What is mostly found
/// in shared memory gains by as many threads as it can; what is not loses by them what it has in the first
/// cache, and so it does by blocks that have the same rows in shared memory.
struct BlockShape {
  int threads;
  int of_each;
};
CUMULUS_HOST_DEVICE constexpr BlockShape shape_of(unsigned near) {
  switch (near) {
    case kRowsOpen:
      return {sampling_tuning::kOpenRowsThreads, 2};
    case kColumnsOpen:
      return {kThreads, 4};
    default:
      return {kThreads, 3};
  }
}

template <unsigned kNear>
__device__ auto row_search(const sampling::TableView& table, sampling::Method method,
                           const sampling_near::MarginalBytes& bytes, unsigned char* shared) {
  if constexpr (kNear == kMarginalNear) {
    return sampling_near::near_rows(table, method, bytes, shared);
  } else if constexpr (kNear == kRowsOpen) {
    return sampling_near::OpenRows(table, shared);
  } else {
    return sampling_near::far_rows(table, method);
  }
}
template <unsigned kNear>
__device__ auto column_search(const sampling::TableView& table, sampling::Method method,
                              const sampling::detail::Rows& rows, unsigned char* shared) {
  if constexpr (kNear == kColumnsOpen) {
    return sampling_near::OpenColumns(table, shared);
  } else {
    return sampling::detail::ColumnSearch{method, rows};
  }
}

/// Samples of a constant table, of method kMethod unless that is kAnyMethod. Bringing something near pays for
/// many.
template <unsigned kNear, unsigned kMethod, bool kDirections, class Points>
__global__ void __launch_bounds__(shape_of(kNear).threads,
                                  blocks_per_multiprocessor(shape_of(kNear).of_each, shape_of(kNear).threads))
    draw_points(const __grid_constant__ sampling::TableView table,
                const __grid_constant__ sampling::detail::Rows rows,
                const __grid_constant__ sampling::detail::Extents extents,
                const __grid_constant__ Points points, std::uint32_t count, SampleArrays arrays,
                sampling_near::MarginalBytes bytes) {
  constexpr int kOfBlock = shape_of(kNear).threads;
  extern __shared__ uint4 shared_quads[];
  __shared__ float staged[kDirections ? 3 * kOfBlock : 1];
  float* const of_warp = staged + (kDirections ? threadIdx.x / 32 * 96 : 0);
  const auto method = kMethod == kAnyMethod ? table.header.method : sampling::Method{kMethod};
  auto* const shared = reinterpret_cast<unsigned char*>(shared_quads);
  const auto row_of = row_search<kNear>(table, method, bytes, shared);
  const auto column_of = column_search<kNear>(table, method, rows, shared);
  const std::uint32_t stride = gridDim.x * kOfBlock;
  std::uint32_t first = blockIdx.x * kOfBlock + (threadIdx.x & ~31u);
  sampling::FixedPoint2 point = point_at(points, first, count);
  for (; first < count; first += stride) {
    // The next is on its way while this one is looked up.
    const sampling::FixedPoint2 next = point_at(points, first + stride, count);
    sampling::Sample drawn;
    if (first + threadIdx.x % 32 < count) {
      drawn = sampling::detail::sample_constant(table.header, extents, row_of, column_of, point.x, point.y);
    }
    store_warp<kDirections>(drawn, first, count, arrays, of_warp);
    point = next;
  }
}

template <class Points>
__global__ void __launch_bounds__(kThreads)
    draw_bilinear_points(const __grid_constant__ sampling::TableView table,
                         const __grid_constant__ Points points, std::int64_t count, SampleArrays arrays) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const sampling::FixedPoint2 point = points.point(i);
  store_sample(sampling::sample_bilinear(table, point.x, point.y), i, arrays);
}

/// What a call of draw_points is given.
template <class Points>
struct Drawing {
  const sampling::TableView& table;
  Points points;
  std::uint32_t count;
  SampleArrays arrays;
  sampling_near::MarginalBytes marginal_bytes;
};

sampling::detail::Extents extents_of(const sampling::TableView& table) {
  return {sampling::detail::Extent(table.header.width), sampling::detail::Extent(table.header.height)};
}

/// As many blocks as the device is to hold.
template <unsigned kNear, unsigned kMethod, bool kDirections, class Points>
void draw_many(CudaExecutor& executor, const Drawing<Points>& drawing, std::size_t shared_bytes) {
  const auto kernel = draw_points<kNear, kMethod, kDirections, Points>;
  CUMULUS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared_bytes)));
  int of_each = 0;
  constexpr BlockShape kShape = shape_of(kNear);
  CUMULUS_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, kernel, kShape.threads, shared_bytes));
  const auto blocks =
      static_cast<unsigned>(std::clamp(of_each, 1, kShape.of_each) * executor.device().multiprocessors());
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
  const std::uint64_t rows = sampling_near::OpenRows::bytes(header);
  const std::uint64_t columns = sampling_near::OpenColumns::bytes(header);
  if (header.height > 1 && rows <= room) {
    return draw_many<kRowsOpen, kForest, kDirections>(executor, drawing, rows);
  }
  if (header.height == 1 && columns <= room) {
    return draw_many<kColumnsOpen, kForest, kDirections>(executor, drawing, columns);
  }
  draw_many<kMarginalNear, kForest, kDirections>(executor, drawing, drawing.marginal_bytes.all());
}

template <bool kDirections, class Points>
void draw_constant(CudaExecutor& executor, const sampling::TableView& table, const Points& points,
                   std::uint32_t count, const SampleArrays& arrays) {
  using sampling::Method;
  constexpr std::uint32_t kMany = 1 << 20;
  constexpr std::uint32_t kMostNear = 72 * 1024;  // so that three blocks fit into an H200's multiprocessor
  Drawing<Points> drawing{table, points, count, arrays, sampling_near::marginal_bytes(table.header)};
  sampling_near::MarginalBytes& bytes = drawing.marginal_bytes;
  if (bytes.all() > kMostNear) bytes.bands = 0;
  int limit = 0;
  CUMULUS_CUDA(
      cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, executor.device().ordinal()));
  const auto room = std::min(kMostNear, static_cast<std::uint32_t>(limit) - 8192);
  if (count < kMany || bytes.all() > room) {
    draw_points<kNothingNear, kAnyMethod, kDirections><<<blocks_for(count), kThreads, 0, executor.stream()>>>(
        table, rows_of(table), extents_of(table), points, count, arrays, bytes);
    CUMULUS_CUDA(cudaGetLastError());
    return;
  }
  switch (table.header.method) {
    case Method::kRadixForest:
      return draw_many_by_forest<kDirections>(executor, drawing, room);
    case Method::kCutpointBinary:
      return draw_many<kMarginalNear, number_of(Method::kCutpointBinary), kDirections>(executor, drawing,
                                                                                       bytes.all());
    case Method::kAlias:
      return draw_many<kMarginalNear, number_of(Method::kAlias), kDirections>(executor, drawing, bytes.all());
    default:
      return draw_many<kMarginalNear, kAnyMethod, kDirections>(executor, drawing, bytes.all());
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
  constexpr std::int64_t kMostAtOnce = std::int64_t{1} << 30;  // numbers of 32 bits count their words
  for (std::int64_t begin = 0; begin < count; begin += kMostAtOnce) {
    const auto share = static_cast<std::uint32_t>(std::min(count - begin, kMostAtOnce));
    if (arrays.direction != nullptr) {
      draw_constant<true>(executor, table, points.from(begin), share, arrays.from(begin));
    } else {
      draw_constant<false>(executor, table, points.from(begin), share, arrays.from(begin));
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    evaluate_points(const __grid_constant__ sampling::TableView table, const float* coordinates,
                    int dimensions, std::int64_t count, float* pdf) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  pdf[i] = density_at(table, coordinates, dimensions, i);
}

}  // namespace

void draw_samples(CudaExecutor& executor, const sampling::TableHeader& header,
                  DeviceSpan<const std::byte> table, const DrawParameters& parameters,
                  DrawnSamples<Space::kDevice> samples) {
  sampling_check::check_draw(header, table, parameters, samples);
  draw(executor, view_of(header, table, parameters.layer), PointSource(parameters), parameters.count,
       sample_arrays(samples));
}

void sample_points(CudaExecutor& executor, const sampling::TableHeader& header,
                   DeviceSpan<const std::byte> table, DeviceSpan<const sampling::FixedPoint2> points,
                   std::uint32_t layer, DrawnSamples<Space::kDevice> samples) {
  sampling_check::check_points(header, table, points.size(), layer, samples);
  draw(executor, view_of(header, table, layer), GivenPoints{points.data()},
       static_cast<std::int64_t>(points.size()), sample_arrays(samples));
}

void evaluate_density(CudaExecutor& executor, const sampling::TableHeader& header,
                      DeviceSpan<const std::byte> table, DensityPoints<Space::kDevice> points,
                      DeviceSpan<float> pdf) {
  sampling_check::check_density(header, table, points, pdf);
  if (pdf.empty()) return;
  executor.bind_thread();
  const auto count = static_cast<std::int64_t>(pdf.size());
  evaluate_points<<<blocks_for(count), kThreads, 0, executor.stream()>>>(
      view_of(header, table, points.layer), points.coordinates.data(), points.dimensions, count, pdf.data());
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus
