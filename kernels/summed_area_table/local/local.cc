#include "kernels/summed_area_table/local.h"

#include <algorithm>
#include <array>

#include "kernels/core/parallel.h"
#include "kernels/core/without_cuda.h"
#include "kernels/summed_area_table/check.h"

namespace cumulus {
namespace {

/// Columns of a piece of work, whole tiles: those of longer rows would take longer than a slice may.
constexpr std::int64_t kPieceColumns = 64 * kLocalTileColumns;

/// Where the sums of a row of the image are.
struct RowSums {
  const float* above;  // the table's row above in the tile; null: the tile begins here
  float* local;
  double* columns;
  double* rows;
};

/// Columns first..end, whole tiles, of one row of the image: local sums on top of the row above, the row's
/// sums by tile into `rows`, its pixels added to `columns`.
template <class Input>
void sum_row(const Input* pixels, std::int64_t first, std::int64_t end, std::int64_t channels,
             const RowSums& sums) {
  const auto [above, local, columns, first_rows] = sums;
  double* rows = first_rows + first / kLocalTileColumns * channels;
  for (std::int64_t left = first; left < end; left += kLocalTileColumns, rows += channels) {
    const std::int64_t right = std::min(left + kLocalTileColumns, end);
    std::array<float, 4> running{};
    std::array<double, 4> sum{};
    for (std::int64_t x = left; x < right; ++x) {
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        const std::int64_t i = x * channels + channel;
        const auto c = static_cast<std::size_t>(channel);
        const auto pixel = static_cast<float>(pixels[i]);
        running[c] += pixel;
        sum[c] += static_cast<double>(pixel);
        columns[i] += static_cast<double>(pixel);
        local[i] = above != nullptr ? above[i] + running[c] : running[c];
      }
    }
    std::copy_n(sum.begin(), channels, rows);
  }
}

}  // namespace

template <class Input>
void build_local_summed_area_table(CpuExecutor& executor, const LocalTableJob<Input, Space::kHost>& job) {
  check_image("summed_area_table", job.image);
  summed_area_table::check_output(job.image, job.local, 0);
  executor.check_interrupt();
  const auto& image = job.image;
  const std::int64_t tile_rows = local_tile_rows(image.height);
  const std::int64_t row_elements = image.width * image.channels;
  const std::int64_t row_sums = local_tile_columns(image.width) * image.channels;
  const auto columns = executor.scratch<double>(static_cast<std::size_t>(tile_rows * row_elements));
  const auto rows = executor.scratch<double>(static_cast<std::size_t>(tile_rows * kLocalTileRows * row_sums));
  const std::int64_t pieces = divide_up(image.width, kPieceColumns);  // of a row of tiles
  const auto sum_piece = [&](std::int64_t tile, std::int64_t first) {
    const std::int64_t right = std::min(first + kPieceColumns, image.width);
    double* sums_of_columns = columns.data() + tile * row_elements;
    double* sums_of_rows = rows.data() + tile * kLocalTileRows * row_sums;
    std::fill(sums_of_columns + first * image.channels, sums_of_columns + right * image.channels, 0.0);
    const std::int64_t top = tile * kLocalTileRows;
    for (std::int64_t y = top; y < std::min(top + kLocalTileRows, image.height); ++y) {
      sum_row(image.row(y), first, right, image.channels,
              {y > top ? job.local.row(y - 1) : nullptr, job.local.row(y), sums_of_columns,
               sums_of_rows + (y - top) * row_sums});
    }
  };
  std::fill(rows.begin() + image.height * row_sums, rows.end(), 0.0);  // of tiles that reach below the image
  parallel_ranges(executor, tile_rows * pieces, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) sum_piece(i / pieces, i % pieces * kPieceColumns);
  });
  const auto sums = summed_area_table::tile_sums(job, columns.data(), rows.data());
  build_summed_area_table(executor, sums.columns);
  build_summed_area_table(executor, sums.rows);
}

#if !CUMULUS_WITH_CUDA
template <>
void CUMULUS_WITHOUT_CUDA(build_local_summed_area_table, const LocalTableJob<Float16, Space::kDevice>&);
template <>
void CUMULUS_WITHOUT_CUDA(build_local_summed_area_table, const LocalTableJob<float, Space::kDevice>&);
#endif

template void build_local_summed_area_table(CpuExecutor&, const LocalTableJob<Float16, Space::kHost>&);
template void build_local_summed_area_table(CpuExecutor&, const LocalTableJob<float, Space::kHost>&);

}  // namespace cumulus
