#include <atomic>
#include <thread>
#include <vector>

#include "kernels/primitives/async_copy.cuh"
#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/stage_ring.cuh"
#include "kernels/primitives/tma.cuh"
#include "kernels/primitives/tma_map.cuh"
#include "kernels/primitives/warp.cuh"
#include "tests/kernels/primitives_kernels.h"
#include "tests/kernels/primitives_memory.cuh"

namespace cumulus::testing {
namespace {

// ---- stage ring

enum class Stage { kLoaded, kScaled, kSummed };
constexpr int kStages = 3;
constexpr int kSlots = 3;
constexpr int kTileRows = 4;
constexpr int kTileColumns = 32;

struct RingArguments {
  CUtensorMap map;
  int rows, columns;
  float* sums;  // a block's rows
};

struct RingMemory {
  alignas(128) float tiles[kSlots][kTileRows][kTileColumns];
  StageRing<Stage, kStages, kSlots> ring;
};

// owns: a block, the whole array, tile by tile; warp 0 loads, warp 1 doubles, warp 2 sums. reads: the array.
// writes: sums. waits for: nothing of other blocks.
__global__ void sum_through_ring(const __grid_constant__ RingArguments a) {
#if __CUDA_ARCH__ >= 900
  __shared__ RingMemory memory;
  auto& ring = memory.ring;
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread < kSlots) {
    ring.init(Stage::kLoaded, thread, 1);
    ring.init(Stage::kScaled, thread, 32);
    ring.init(Stage::kSummed, thread, 32);
    fence_async_proxy();
  }
  __syncthreads();
  const int tiles_across = a.columns / kTileColumns;
  const int tiles = a.rows / kTileRows * tiles_across;
  RingPlace<kSlots> at(0);
  if (warp_index() == 0) {
    if (lane_index() != 0) return;
    RingPlace<kSlots> summed(0);
    for (; at.item < tiles; at.advance(1)) {
      if (at.item >= kSlots) {
        ring.wait(Stage::kSummed, summed);
        summed.advance(1);
      }
      ring.arrive_expect_bytes(Stage::kLoaded, at, sizeof(memory.tiles[0]));
      tma_load_tile(memory.tiles[at.slot], a.map, at.item % tiles_across * kTileColumns,
                    at.item / tiles_across * kTileRows, ring.barrier(Stage::kLoaded, at), evict_normal());
    }
  } else if (warp_index() == 1) {
    for (; at.item < tiles; at.advance(1)) {
      ring.wait(Stage::kLoaded, at);
      for (int row = 0; row < kTileRows; ++row) memory.tiles[at.slot][row][lane_index()] *= 2;
      fence_async_proxy();  // before TMA fills the slot again
      ring.arrive(Stage::kScaled, at);
    }
  } else {
    for (; at.item < tiles; at.advance(1)) {
      ring.wait(Stage::kScaled, at);
      if (lane_index() < kTileRows) {
        float sum = 0;
        for (int i = 0; i < kTileColumns; ++i) sum += memory.tiles[at.slot][lane_index()][i];
        a.sums[std::int64_t{blockIdx.x} * a.rows + at.item / tiles_across * kTileRows + lane_index()] += sum;
      }
      ring.arrive(Stage::kSummed, at);
    }
  }
#endif
}

// ---- launches

struct Nothing {};
__global__ void wait_for_nobody(const Nothing /*nothing*/) {}

// owns: a block, the dynamic shared memory. reads, writes: that. waits for: nothing of other blocks.
__global__ void touch_shared_memory(int bytes) {
  extern __shared__ unsigned char touched[];
  for (int i = static_cast<int>(threadIdx.x); i < bytes; i += static_cast<int>(blockDim.x)) {
    *const_cast<volatile unsigned char*>(touched + i) = 1;
  }
}

// owns: a block, some words. writes: words, late. waits for: nothing of other blocks.
__global__ void write_slowly(std::uint32_t* words, int count) {
  allow_secondary_kernel();
  for (int i = 0; i < 100; ++i) __nanosleep(10000);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    words[i] = static_cast<std::uint32_t>(i) + 1;
  }
}
// owns: a block, some words. reads: words. waits for: the primary kernel, which does not wait.
__global__ void read_behind(const std::uint32_t* words, int count, unsigned long long* early) {
  wait_for_primary_kernel();
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    count_if(words[i] != static_cast<std::uint32_t>(i) + 1, early);
  }
}

}  // namespace

bool has_stage_rings() {
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, sum_through_ring));
  return compiled.ptxVersion >= 90;
}

std::vector<float> sum_rows_through_ring(CudaExecutor& executor, const std::vector<float>& values, int rows,
                                         int columns, int blocks) {
  const DeviceMemory from = device_copy(executor, values);
  const std::size_t count = static_cast<std::size_t>(blocks) * static_cast<std::size_t>(rows);
  const DeviceMemory sums = zeroed(executor, count * sizeof(float));
  const RingArguments arguments{
      make_tma_map(data_of<float>(from), rows, columns, columns, kTileRows, kTileColumns, TmaSwizzle::kNone),
      rows, columns, data_of<float>(sums)};
  launch(executor.stream(), sum_through_ring, {std::int64_t{blocks}, 96}, arguments);
  return host_copy<float>(executor, sums, count);
}

bool launches_cooperatively_what_fits(CudaExecutor& executor) {
  const std::int64_t blocks = resident_blocks(executor, wait_for_nobody, 1024, 0);
  const bool too_many = launch_cooperative(executor, wait_for_nobody, {blocks + 1, 1024}, Nothing{});
  const bool fitting = launch_cooperative(executor, wait_for_nobody, {blocks, 1024}, Nothing{});
  executor.synchronize();
  return blocks > 0 && fitting && !too_many;
}

int count_refused_launches(CudaExecutor& executor, int threads, int launches) {
  const auto least = static_cast<std::size_t>(1024);
  const std::size_t most = executor.device().numbers().block_shared_bytes;
  std::atomic<int> refused{0};
  std::vector<std::thread> launching;
  for (int thread = 0; thread < threads; ++thread) {
    launching.emplace_back([&, thread] {
      CudaExecutor own(executor.device());
      own.bind_thread();
      for (int i = 0; i < launches; ++i) {
        const std::size_t bytes = (thread + i) % 2 == 0 ? most : least << i % 4;
        try {
          launch(own.stream(), touch_shared_memory, {1, 32, bytes}, static_cast<int>(bytes));
        } catch (const CudaError&) {
          ++refused;
        }
      }
      own.synchronize();
    });
  }
  for (std::thread& thread : launching) thread.join();
  return refused;
}

std::size_t dynamic_shared_limit_after(CudaExecutor& executor, const std::vector<std::size_t>& launched) {
  executor.bind_thread();
  for (const std::size_t bytes : launched) {
    launch(executor.stream(), touch_shared_memory, {1, 32, bytes}, static_cast<int>(bytes));
  }
  executor.synchronize();
  cudaFuncAttributes attributes{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&attributes, touch_shared_memory));
  return static_cast<std::size_t>(attributes.maxDynamicSharedSizeBytes);
}

std::uint64_t count_words_read_too_early(CudaExecutor& executor, int count) {
  const DeviceMemory words = zeroed(executor, static_cast<std::size_t>(count) * sizeof(std::uint32_t));
  const DeviceMemory early = zeroed(executor, sizeof(unsigned long long));
  launch(executor.stream(), write_slowly, {2, 32}, data_of<std::uint32_t>(words), count);
  launch_dependent<read_behind>(executor.stream(), {4, 64}, data_of<std::uint32_t>(words), count,
                                data_of<unsigned long long>(early));
  return host_copy<std::uint64_t>(executor, early, 1)[0];
}

}  // namespace cumulus::testing
