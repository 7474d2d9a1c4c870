#include <cuda_runtime.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "bench/service/timed_kernel.h"

namespace cumulus::bench {
namespace {

void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

__global__ void take_time(std::uint64_t nanoseconds, std::uint32_t* ended, std::uint32_t number) {
  std::uint64_t start = 0;
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
  *static_cast<volatile std::uint32_t*>(ended) = number;
  __threadfence_system();
}

}  // namespace

TimedKernels::TimedKernels() {
  require(cudaHostAlloc(&number_, sizeof(*number_), cudaHostAllocDefault), "cudaHostAlloc");
  *number_ = 0;
}

TimedKernels::~TimedKernels() { (void)cudaFreeHost(number_); }

void TimedKernels::launch(CUstream_st* stream, std::chrono::microseconds time, std::uint32_t number) {
  const auto nanoseconds = static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
  take_time<<<1, 1, 0, stream>>>(nanoseconds, number_, number);
  require(cudaGetLastError(), "launching a kernel");
}

std::uint32_t TimedKernels::ended() const {
  return std::atomic_ref(*number_).load(std::memory_order_acquire);
}

}  // namespace cumulus::bench
