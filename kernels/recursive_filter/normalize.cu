#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"
#include "kernels/recursive_filter/check.h"
#include "kernels/recursive_filter/gpu/elements.cuh"
#include "kernels/recursive_filter/normalize.h"
#include "kernels/recursive_filter/tuning.h"

namespace cumulus {
namespace {

using namespace recursive_filter;

constexpr std::int64_t kRowsOfThread = 8;
constexpr std::int64_t kMaxGridRows = 65535;  // blocks along a grid's second axis

struct RowsOfImages {
  std::int64_t rows;      // of all images
  std::int64_t height;    // of each
  std::int64_t elements;  // of a row
  std::int64_t channels;
};

/// Owns: a thread one element of a row, and of those a grid further down. Reads: it, the factors of its row
/// and column. Writes: it.
/// Waits for: nothing of other threads, so that it cannot deadlock.
/// Source: normalized convolution (H. Knutsson and C.-F. Westin, 1993), whose certainties are a row's and a
/// column's.
template <class Real>
__global__ void __launch_bounds__(kAddThreads)
    normalize_elements(SourceElements from, LineFactors<Real> down, LineFactors<Real> across,
                       TargetElements to, RowsOfImages images) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kAddThreads + threadIdx.x;
  if (i >= images.elements) return;
  const Real column = across.at(i / images.channels);
  const std::int64_t step = gridDim.y % images.height;
  std::int64_t y = blockIdx.y % images.height;
  for (std::int64_t row = blockIdx.y; row < images.rows; row += gridDim.y) {
    const std::int64_t at = row * images.elements + i;
    to.store(at, from.template load<Real>(at) * (down.at(y) * column));
    y += step;
    if (y >= images.height) y -= images.height;
  }
}

}  // namespace

template <class From, class To>
void normalize(CudaExecutor& executor, const FilterImages<const From, Space::kDevice>& images,
               const FilteredCertainties& certainties, const FilterImages<To, Space::kDevice>& normalized) {
  using Real = std::conditional_t<std::is_same_v<From, double>, double, float>;
  check_normalized(images, normalized);
  executor.check_interrupt();
  executor.bind_thread();
  const DeviceImage<const From>& image = images.first;
  const auto down = line_factors<Real>(executor, certainties.y, image.height);
  const auto across = line_factors<Real>(executor, certainties.x, image.width);
  const RowsOfImages shape{images.count * image.height, image.height, image.width * image.channels,
                           image.channels};
  const dim3 blocks(static_cast<unsigned int>(divide_up(shape.elements, kAddThreads)),
                    static_cast<unsigned int>(std::min(divide_up(shape.rows, kRowsOfThread), kMaxGridRows)));
  normalize_elements<Real><<<blocks, kAddThreads, 0, executor.stream()>>>(
      source_elements(image.data), down, across, target_elements(normalized.first.data), shape);
  CUMULUS_CUDA(cudaGetLastError());
}

#define CUMULUS_INSTANTIATE(From, To)                                                               \
  template void normalize<From, To>(CudaExecutor&, const FilterImages<const From, Space::kDevice>&, \
                                    const FilteredCertainties&, const FilterImages<To, Space::kDevice>&);
CUMULUS_INSTANTIATE(float, float)
CUMULUS_INSTANTIATE(double, double)
CUMULUS_INSTANTIATE(Float16, float)
CUMULUS_INSTANTIATE(float, Float16)
#undef CUMULUS_INSTANTIATE

}  // namespace cumulus
