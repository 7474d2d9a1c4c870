#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/summed_area_table/check.h"
#include "kernels/summed_area_table/local.h"

namespace cumulus {
namespace {

using namespace summed_area_table;

constexpr int kThreads = static_cast<int>(kLocalTileColumns);  // a column each
constexpr int kWarps = kThreads / 32;
constexpr int kRows = static_cast<int>(kLocalTileRows);
constexpr int kColumns = static_cast<int>(kLocalTileColumns);
constexpr int kLaneColumns = kColumns / 32;

template <class Input>
struct LocalArguments {
  DeviceImage<const Input> image;
  float* local;
  double* columns;
  double* rows;
  std::int64_t row_sums;  // of a row: one for each tile and channel
};

/// Owns: a block one channel of one tile of 64 x 128 pixels: its rows first, a warp for each, then its
///   columns, a thread for each.
/// Reads: the tile's pixels, twice.
/// Writes: the tile's own table in float; its sums by column and by row in double.
/// Waits for: nothing of other blocks, so that it cannot deadlock.
/// Source: this project's; sums by column and row as the aggregates of D. Nehab et al., SIGGRAPH Asia 2011.
template <class Input>
__global__ void __launch_bounds__(kThreads) sum_tiles_locally(const LocalArguments<Input> a) {
  __shared__ float row_scans[kRows][kColumns];
  const DeviceImage<const Input>& image = a.image;
  const std::int64_t channels = image.channels;
  const std::int64_t channel = blockIdx.x % channels;
  const std::int64_t tile_column = blockIdx.x / channels;
  const std::int64_t top = std::int64_t{blockIdx.y} * kRows;
  const std::int64_t first_column = tile_column * kColumns;
  const auto pixel = [&](std::int64_t row, std::int64_t column) {
    const bool exists = top + row < image.height && first_column + column < image.width;
    return exists ? static_cast<float>(image.data[(top + row) * image.row_stride +
                                                  (first_column + column) * channels + channel])
                  : 0.0f;
  };
  for (int row = warp_index(); row < kRows; row += kWarps) {
    float scan[kLaneColumns];
    float running = 0;
    double sum = 0;
#pragma unroll
    for (int i = 0; i < kLaneColumns; ++i) {
      const float value = pixel(row, lane_index() * kLaneColumns + i);
      running += value;
      scan[i] = running;
      sum += static_cast<double>(value);
    }
    const float before = before_lane(warp_inclusive_sum(running));
#pragma unroll
    for (int i = 0; i < kLaneColumns; ++i) row_scans[row][lane_index() * kLaneColumns + i] = before + scan[i];
    sum = warp_sum(sum);
    if (lane_index() == 0) a.rows[(top + row) * a.row_sums + tile_column * channels + channel] = sum;
  }
  __syncthreads();
  const auto column = static_cast<std::int64_t>(threadIdx.x);
  if (first_column + column >= image.width) return;
  const std::int64_t row_elements = image.width * channels;
  const std::int64_t element = (first_column + column) * channels + channel;
  float local = 0;
  double sum = 0;
  for (int row = 0; row < kRows && top + row < image.height; ++row) {
    local += row_scans[row][column];
    sum += static_cast<double>(pixel(row, column));
    a.local[(top + row) * row_elements + element] = local;
  }
  a.columns[blockIdx.y * row_elements + element] = sum;
}

}  // namespace

template <class Input>
void build_local_summed_area_table(CudaExecutor& executor, const LocalTableJob<Input, Space::kDevice>& job) {
  check_image("summed_area_table", job.image);
  check_output(job.image, job.local, 0);
  executor.check_interrupt();
  executor.bind_thread();
  const auto& image = job.image;
  const std::int64_t tile_rows = local_tile_rows(image.height);
  const std::int64_t tile_columns = local_tile_columns(image.width);
  if (tile_rows > 65535) refuse("a tile-local table has at most 65535 x 64 rows");
  const auto columns =
      executor.scratch<double>(static_cast<std::size_t>(tile_rows * image.width * image.channels));
  const auto rows = executor.scratch<double>(
      static_cast<std::size_t>(tile_rows * kLocalTileRows * tile_columns * image.channels));
  const dim3 blocks(static_cast<unsigned int>(tile_columns * image.channels),
                    static_cast<unsigned int>(tile_rows));
  sum_tiles_locally<<<blocks, kThreads, 0, executor.stream()>>>(LocalArguments<Input>{
      image, job.local.data, columns.data(), rows.data(), tile_columns * image.channels});
  CUMULUS_CUDA(cudaGetLastError());
  executor.check_interrupt();
  const auto sums = tile_sums(job, columns.data(), rows.data());
  build_summed_area_table(executor, sums.columns);
  build_summed_area_table(executor, sums.rows);
}

template void build_local_summed_area_table(CudaExecutor&, const LocalTableJob<Float16, Space::kDevice>&);
template void build_local_summed_area_table(CudaExecutor&, const LocalTableJob<float, Space::kDevice>&);

}  // namespace cumulus
