#include <atomic>
#include <thread>
#include <vector>

#include "kernels/primitives/launch.cuh"
#include "tests/kernels/primitives_kernels.h"
#include "tests/kernels/primitives_memory.cuh"

namespace cumulus::testing {
namespace {

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
