#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/core/cuda_error.h"
#include "kernels/core/cuda_executor.h"

// What the kernels that test kernels/primitives share: memory, values, launches.

namespace cumulus::testing {

template <class T>
DeviceMemory device_copy(CudaExecutor& executor, const std::vector<T>& values) {
  DeviceMemory memory = executor.allocate(values.size() * sizeof(T));
  executor.upload({reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)},
                  {memory.data(), memory.bytes()});
  return memory;
}

inline DeviceMemory zeroed(CudaExecutor& executor, std::size_t bytes) {
  DeviceMemory memory = executor.allocate(bytes);
  CUMULUS_CUDA(cudaMemsetAsync(memory.data(), 0, bytes, executor.stream()));
  return memory;
}

template <class T>
std::vector<T> host_copy(CudaExecutor& executor, const DeviceMemory& memory, std::size_t count) {
  std::vector<T> values(count);
  executor.download({memory.data(), count * sizeof(T)},
                    {reinterpret_cast<std::byte*>(values.data()), count * sizeof(T)});
  executor.synchronize();
  return values;
}

template <class T>
T* data_of(const DeviceMemory& memory) {
  return reinterpret_cast<T*>(memory.data());
}

inline void require(bool launched) {
  if (!launched) CUMULUS_CUDA(cudaErrorCooperativeLaunchTooLarge);
}

__host__ __device__ inline std::uint32_t hashed(std::uint32_t a, std::uint32_t b) {
  std::uint32_t x = a * 2654435761U ^ (b + 0x9E3779B9U) * 2246822519U;
  x = (x ^ x >> 15) * 3266489917U;
  return x ^ x >> 13;
}

__device__ inline void count_if(bool wrong, unsigned long long* count) {
  if (wrong) atomicAdd(count, 1ULL);
}

}  // namespace cumulus::testing
