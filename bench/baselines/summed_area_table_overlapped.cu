#include <cuda_runtime.h>

#include "bench/baselines/summed_area_table_overlapped.h"
#include "kernels/core/cuda_error.h"

namespace cumulus::bench {
namespace {

constexpr int kBlock = static_cast<int>(kOverlappedBlock);
constexpr int kWarps = 8;
constexpr int kRows = kBlock / kWarps;  // of a warp, one below the other
constexpr unsigned int kAllLanes = 0xffffffff;
constexpr int kAhead = 8;  // loads of a serial step that are under way together

/// What is kept of blocks m, n = row and column of the block: the sums of its columns' pixels, and, for each
/// of its rows, the sum of the pixels of the block's rows down to it. Both first of the block alone, then of
/// all above and all to the left.
struct Borders {
  int down, across;  // blocks
  float* columns;    // [down][across][kBlock]
  float* rows;       // [down][across][kBlock]
  float* above;      // [down][across]: the sum of the completed `columns` of the block above

  __device__ std::size_t at(int m, int n) const { return static_cast<std::size_t>(m) * across + n; }
};

/// A thread's pixels: kRows of its column.
__device__ void load(const float* pixels, std::int64_t width, float (&pixel)[kRows]) {
  const std::int64_t y = std::int64_t{blockIdx.y} * kBlock + threadIdx.y * kRows;
  const std::int64_t x = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kRows; ++i) pixel[i] = pixels[(y + i) * width + x];
}

__device__ float warp_sum(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

__device__ float warp_inclusive_sum(float value) {
  for (int distance = 1; distance < 32; distance *= 2) {
    const float left = __shfl_up_sync(kAllLanes, value, distance);
    if (threadIdx.x >= distance) value += left;
  }
  return value;
}

/// Adds to the pixels what is above them in the block. Synchronizes.
__device__ void sum_columns(float (&pixel)[kRows], float (&warps)[kWarps][kBlock], float before) {
#pragma unroll
  for (int i = 1; i < kRows; ++i) pixel[i] += pixel[i - 1];
  warps[threadIdx.y][threadIdx.x] = pixel[kRows - 1];
  __syncthreads();
  for (int warp = 0; warp < static_cast<int>(threadIdx.y); ++warp) before += warps[warp][threadIdx.x];
#pragma unroll
  for (int i = 0; i < kRows; ++i) pixel[i] += before;
}

/// S.1
__global__ void __launch_bounds__(kBlock* kWarps)
    sum_blocks(const float* pixels, std::int64_t width, const Borders borders) {
  __shared__ float warps[kWarps][kBlock];
  float pixel[kRows];
  load(pixels, width, pixel);
  sum_columns(pixel, warps, 0);
  const std::size_t block = borders.at(static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x));
  if (threadIdx.y == kWarps - 1) borders.columns[block * kBlock + threadIdx.x] = pixel[kRows - 1];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float sum = warp_sum(pixel[i]);
    if (threadIdx.x == 0) borders.rows[block * kBlock + threadIdx.y * kRows + i] = sum;
  }
}

/// S.2: a warp for each column of blocks.
__global__ void __launch_bounds__(kBlock) complete_columns(const Borders borders) {
  const auto n = static_cast<int>(blockIdx.x);
  float sum = 0;
  for (int first = 0; first < borders.down; first += kAhead) {
    float next[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int m = first + i;
      next[i] = m < borders.down ? borders.columns[borders.at(m, n) * kBlock + threadIdx.x] : 0;
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int m = first + i;
      if (m >= borders.down) break;
      const float above = warp_sum(sum);
      if (threadIdx.x == 0) borders.above[borders.at(m, n)] = above;
      sum += next[i];
      borders.columns[borders.at(m, n) * kBlock + threadIdx.x] = sum;
    }
  }
}

/// S.3: a warp for each row of blocks.
__global__ void __launch_bounds__(kBlock) complete_rows(const Borders borders) {
  const auto m = static_cast<int>(blockIdx.x);
  float sum = 0;
  for (int first = 0; first < borders.across; first += kAhead) {
    float next[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int n = first + i;
      next[i] = n < borders.across
                    ? borders.rows[borders.at(m, n) * kBlock + threadIdx.x] + borders.above[borders.at(m, n)]
                    : 0;
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int n = first + i;
      if (n >= borders.across) break;
      sum += next[i];
      borders.rows[borders.at(m, n) * kBlock + threadIdx.x] = sum;
    }
  }
}

/// S.4
__global__ void __launch_bounds__(kBlock* kWarps)
    finish_blocks(const float* pixels, std::int64_t width, const Borders borders, float* sums) {
  __shared__ float warps[kWarps][kBlock];
  const auto m = static_cast<int>(blockIdx.y);
  const auto n = static_cast<int>(blockIdx.x);
  float pixel[kRows];
  load(pixels, width, pixel);
  sum_columns(pixel, warps, m > 0 ? borders.columns[borders.at(m - 1, n) * kBlock + threadIdx.x] : 0);
  const std::int64_t y = std::int64_t{m} * kBlock + threadIdx.y * kRows;
  const std::int64_t x = std::int64_t{n} * kBlock + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float left = n > 0 ? borders.rows[borders.at(m, n - 1) * kBlock + threadIdx.y * kRows + i] : 0;
    sums[(y + i) * width + x] = left + warp_inclusive_sum(pixel[i]);
  }
}

std::size_t blocks_of(std::int64_t height, std::int64_t width) {
  return static_cast<std::size_t>(height / kOverlappedBlock * (width / kOverlappedBlock));
}

}  // namespace

std::size_t overlapped_scratch_bytes(std::int64_t height, std::int64_t width) {
  const std::size_t blocks = blocks_of(height, width);
  return ScratchSize().add<float>(blocks * kBlock).add<float>(blocks * kBlock).add<float>(blocks).bytes();
}

void build_overlapped_table(CudaExecutor& executor, const float* pixels, std::int64_t height,
                            std::int64_t width, float* sums) {
  executor.bind_thread();
  const std::size_t blocks = blocks_of(height, width);
  const Borders borders{
      static_cast<int>(height / kOverlappedBlock), static_cast<int>(width / kOverlappedBlock),
      executor.scratch<float>(blocks * kBlock).data(), executor.scratch<float>(blocks * kBlock).data(),
      executor.scratch<float>(blocks).data()};
  const auto down = static_cast<unsigned int>(borders.down);
  const auto across = static_cast<unsigned int>(borders.across);
  const dim3 grid(across, down);
  const dim3 threads(kBlock, kWarps);
  const auto stream = executor.stream();
  sum_blocks<<<grid, threads, 0, stream>>>(pixels, width, borders);
  complete_columns<<<across, kBlock, 0, stream>>>(borders);
  complete_rows<<<down, kBlock, 0, stream>>>(borders);
  finish_blocks<<<grid, threads, 0, stream>>>(pixels, width, borders, sums);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus::bench
