#include <algorithm>

#include "kernels/sampling_table/sampling_table.h"
#include "kernels/sampling_table/sampling_table_check.h"
#include "kernels/sampling_table/sampling_table_points.h"
#include "kernels/sampling_table/sampling_table_tuning.h"

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

unsigned blocks_for(std::int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

/// What every sample of a constant table begins with, copied to where a block has it near.
struct Nearby {
  sampling::detail::Distribution marginal;
  const float2* bands = nullptr;  ///< begin and extent of each row's band; null: to be computed.
};

/// How the shared memory of a block is divided among the parts of Nearby.
struct NearbyBytes {
  std::uint32_t lower = 0;
  std::uint32_t guide = 0;
  std::uint32_t nodes = 0;
  std::uint32_t bands = 0;

  CUMULUS_HOST_DEVICE std::uint32_t all() const { return lower + guide + nodes + bands; }
};

NearbyBytes nearby_bytes(const sampling::TableHeader& header) {
  const auto words = [](std::uint64_t bytes) { return static_cast<std::uint32_t>((bytes + 15) / 16 * 16); };
  const bool lat_long = header.projection == sampling::Projection::kLatLong;
  return {words(sizeof(std::uint32_t) * header.height),
          words(header.marginal_guide_size * sampling::guide_entry_bytes(header.method, header.height)),
          words(sampling::node_bytes(header.method, header.height)),
          lat_long ? words(sizeof(float2) * header.height) : 0};
}

__device__ void copy_near(unsigned char* to, const void* from, std::uint64_t bytes) {
  for (std::uint64_t i = threadIdx.x; i < bytes / 2; i += blockDim.x) {  // an entry may have two bytes
    reinterpret_cast<std::uint16_t*>(to)[i] = static_cast<const std::uint16_t*>(from)[i];
  }
}

/// Fills the block's shared memory, and meets.
__device__ Nearby bring_near(const sampling::TableView& table, const NearbyBytes& bytes,
                             unsigned char* shared) {
  const sampling::TableHeader& header = table.header;
  const sampling::detail::Distribution far = sampling::detail::marginal(table);
  unsigned char* const guide = shared + bytes.lower;
  unsigned char* const nodes = guide + bytes.guide;
  auto* const bands = reinterpret_cast<float2*>(nodes + bytes.nodes);
  copy_near(shared, far.lower, sizeof(std::uint32_t) * header.height);
  copy_near(guide, far.guide,
            header.marginal_guide_size * sampling::guide_entry_bytes(header.method, header.height));
  copy_near(nodes, far.nodes, sampling::node_bytes(header.method, header.height));
  if (bytes.bands > 0) {
    for (std::uint32_t y = threadIdx.x; y < header.height; y += blockDim.x) {
      const sampling::detail::RowBand band = sampling::detail::row_band(y, header.height);
      bands[y] = make_float2(band.begin, band.extent);
    }
  }
  __syncthreads();
  Nearby near;
  near.marginal = far;
  near.marginal.lower = reinterpret_cast<const std::uint32_t*>(shared);
  near.marginal.guide = guide;
  near.marginal.nodes = nodes;
  near.bands = bytes.bands > 0 ? bands : nullptr;
  return near;
}

/// The band of a row, near or computed.
struct NearBand {
  const float2* bands;
  sampling::detail::BandOfRow far;

  __device__ sampling::detail::RowBand operator()(std::uint32_t y) const {
    if (bands == nullptr) return far(y);
    const float2 band = bands[y];
    return {y >= far.height - y, band.x, band.y};
  }
};

/// Stores the samples of a warp, of which lane 0 has number `first`; every lane comes here.
template <bool kDirections>
__device__ void store_warp(const sampling::Sample& drawn, std::int64_t first, std::int64_t count,
                           const SampleArrays& arrays, float* staged) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t i = first + lane;
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
    for (int axis = 0; axis < 3; ++axis) staged[3 * lane + axis] = drawn.direction[axis];
    __syncwarp();
#pragma unroll
    for (int part = 0; part < 3; ++part) {
      const std::int64_t word = 3 * first + 32 * part + lane;
      if (word < 3 * count) arrays.direction[word] = staged[32 * part + lane];
    }
  }
}

/// The point of this lane, where lane 0 has number `first`; behind the last one any.
template <class Points>
__device__ sampling::FixedPoint2 point_at(const Points& points, std::int64_t first, std::int64_t count) {
  const std::int64_t i = first + threadIdx.x % 32;
  return i < count ? points.point(i) : sampling::FixedPoint2{};
}

// Numbers, since nvcc 13.0 writes code that does not compile where a kernel has an enumerator for an
// argument.
constexpr unsigned number_of(sampling::Method method) { return static_cast<unsigned>(method); }
constexpr unsigned kAnyMethod = 0;

/// Samples of a constant table, of method kMethod unless that is kAnyMethod. With kNear what all begin with
/// is in shared memory, which pays for many.
template <bool kNear, unsigned kMethod, bool kDirections, class Points>
__global__ void __launch_bounds__(kThreads)
    draw_points(const __grid_constant__ sampling::TableView table,
                const __grid_constant__ sampling::detail::Rows rows, const __grid_constant__ Points points,
                std::int64_t count, SampleArrays arrays, NearbyBytes bytes) {
  extern __shared__ uint4 shared_quads[];
  __shared__ float staged[kDirections ? 3 * kThreads : 1];
  float* const of_warp = staged + (kDirections ? threadIdx.x / 32 * 96 : 0);
  Nearby near;
  if constexpr (kNear) {
    near = bring_near(table, bytes, reinterpret_cast<unsigned char*>(shared_quads));
  } else {
    near.marginal = sampling::detail::marginal(table);
  }
  const auto method = kMethod == kAnyMethod ? table.header.method : sampling::Method{kMethod};
  const NearBand band_at{near.bands, {table.header.projection, table.header.height}};
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads + (threadIdx.x & ~31u);
  sampling::FixedPoint2 point = point_at(points, first, count);
  for (; first < count; first += stride) {
    // The next is on its way while this one is looked up.
    const sampling::FixedPoint2 next = point_at(points, first + stride, count);
    sampling::Sample drawn;
    if (first + threadIdx.x % 32 < count) {
      drawn =
          sampling::detail::sample_constant(table, method, near.marginal, rows, band_at, point.x, point.y);
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

/// As many blocks as the device holds.
template <unsigned kMethod, bool kDirections, class Points>
void draw_many(CudaExecutor& executor, const sampling::TableView& table, const Points& points,
               std::int64_t count, const SampleArrays& arrays, const NearbyBytes& bytes) {
  const auto kernel = draw_points<true, kMethod, kDirections, Points>;
  CUMULUS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes.all())));
  int of_each = 0;
  CUMULUS_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, kernel, kThreads, bytes.all()));
  const auto blocks = static_cast<unsigned>(std::max(of_each, 1) * executor.device().multiprocessors());
  kernel<<<std::min(blocks, blocks_for(count)), kThreads, bytes.all(), executor.stream()>>>(
      table, rows_of(table), points, count, arrays, bytes);
  CUMULUS_CUDA(cudaGetLastError());
}

template <bool kDirections, class Points>
void draw_constant(CudaExecutor& executor, const sampling::TableView& table, const Points& points,
                   std::int64_t count, const SampleArrays& arrays) {
  using sampling::Method;
  constexpr std::int64_t kMany = 1 << 20;
  constexpr std::uint32_t kMostNear = 72 * 1024;  // so that three blocks fit into an H200's multiprocessor
  NearbyBytes bytes = nearby_bytes(table.header);
  if (bytes.all() > kMostNear) bytes.bands = 0;
  int limit = 0;
  CUMULUS_CUDA(
      cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, executor.device().ordinal()));
  const auto room = std::min(kMostNear, static_cast<std::uint32_t>(limit) - 8192);
  if (count < kMany || bytes.all() > room) {
    draw_points<false, kAnyMethod, kDirections><<<blocks_for(count), kThreads, 0, executor.stream()>>>(
        table, rows_of(table), points, count, arrays, bytes);
    CUMULUS_CUDA(cudaGetLastError());
    return;
  }
  switch (table.header.method) {
    case Method::kRadixForest:
      return draw_many<number_of(Method::kRadixForest), kDirections>(executor, table, points, count, arrays,
                                                                     bytes);
    case Method::kCutpointBinary:
      return draw_many<number_of(Method::kCutpointBinary), kDirections>(executor, table, points, count,
                                                                        arrays, bytes);
    case Method::kAlias:
      return draw_many<number_of(Method::kAlias), kDirections>(executor, table, points, count, arrays, bytes);
    default:
      return draw_many<kAnyMethod, kDirections>(executor, table, points, count, arrays, bytes);
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
  } else if (arrays.direction != nullptr) {
    draw_constant<true>(executor, table, points, count, arrays);
  } else {
    draw_constant<false>(executor, table, points, count, arrays);
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
