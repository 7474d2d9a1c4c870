#include <algorithm>

#include "bench/baselines/direct_box.h"
#include "kernels/core/parallel.h"

namespace cumulus::bench {
namespace {

void sum_along_row(const float* row, std::int64_t width, std::int64_t radius, float* sums) {
  for (std::int64_t x = 0; x < width; ++x) {
    float sum = 0;
    const std::int64_t end = std::min(x + radius + 1, width);
    for (std::int64_t u = std::max<std::int64_t>(x - radius, 0); u < end; ++u) sum += row[u];
    sums[x] = sum;
  }
}

}  // namespace

void filter_box_directly(CpuExecutor& executor, const HostImage<const float>& image, std::int64_t radius,
                         float* row_sums, float* means) {
  const std::int64_t width = image.width;
  parallel_ranges(executor, image.height, 4, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t y = first; y < end; ++y)
      sum_along_row(image.row(y), width, radius, row_sums + y * width);
  });
  parallel_ranges(executor, image.height, 4, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t y = first; y < end; ++y) {
      float* out = means + y * width;
      std::fill_n(out, width, 0.0f);
      const std::int64_t top = std::max<std::int64_t>(y - radius, 0);
      const std::int64_t bottom = std::min(y + radius + 1, image.height);
      for (std::int64_t v = top; v < bottom; ++v) {
        for (std::int64_t x = 0; x < width; ++x) out[x] += row_sums[v * width + x];
      }
      for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t columns = std::min(x + radius + 1, width) - std::max<std::int64_t>(x - radius, 0);
        out[x] /= static_cast<float>((bottom - top) * columns);
      }
    }
  });
}

}  // namespace cumulus::bench
