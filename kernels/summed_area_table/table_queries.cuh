#pragma once

#include <cstdint>

#include "kernels/summed_area_table/rectangle_sum.h"

// What is computed on the GPU from a finished table: box filters, and rectangles one by one.

namespace cumulus::summed_area_table {

inline constexpr int kQueryThreads = 256;
inline constexpr std::int64_t kMostQueryBlocks = std::int64_t{1} << 30;

template <class Sum>
struct FilterArguments {
  const Sum* sums;
  std::int64_t height;
  std::int64_t width;
  std::int64_t channels;
  std::int64_t radius;
  std::int64_t stretches_per_row;  // of kQueryThreads elements
  float* filtered;
};

template <class Sum>
__device__ void filter_element(const FilterArguments<Sum>& a, std::int64_t y, std::int64_t element) {
  const std::int64_t row_elements = a.width * a.channels;
  const std::int64_t x = element / a.channels;
  const ClippedRectangle box{max(y - a.radius, std::int64_t{0}), max(x - a.radius, std::int64_t{0}),
                             min(y + a.radius + 1, a.height), min(x + a.radius + 1, a.width)};
  const Sum sum = sum_of(a.sums, row_elements, a.channels, element % a.channels, box);
  a.filtered[y * row_elements + element] =
      static_cast<float>(static_cast<double>(sum) / static_cast<double>(box.pixels()));
}

template <class Sum>
__global__ void __launch_bounds__(kQueryThreads) filter_from_table(const FilterArguments<Sum> a) {
  for (std::int64_t stretch = blockIdx.x; stretch < a.height * a.stretches_per_row; stretch += gridDim.x) {
    const std::int64_t element = stretch % a.stretches_per_row * kQueryThreads + threadIdx.x;
    if (element < a.width * a.channels) filter_element(a, stretch / a.stretches_per_row, element);
  }
}

template <bool kMean, class Result, class Sum>
__global__ void __launch_bounds__(kQueryThreads)
    query_rectangles(ImageView<const Sum, Space::kDevice> table, const Rectangle* rectangles, Result* results,
                     std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kQueryThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kQueryThreads) {
    results[i] = rectangle_result<kMean, Result>(table, rectangles[i / table.channels], i % table.channels);
  }
}

}  // namespace cumulus::summed_area_table
