#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/cuda_error.h"
#include "kernels/core/faulting_kernel.h"

namespace cumulus {
namespace {

/// Owns: nothing. Reads: `unmapped`, which no mapping holds. Writes: what it read, so that the read stays.
/// Waits for: nothing, so that it cannot deadlock. Source: this project.
__global__ void fault(volatile int* unmapped) { *unmapped = *unmapped + 1; }

}  // namespace

void launch_faulting_kernel(CudaExecutor& executor) {
  constexpr std::uintptr_t kUnmapped = 16;  // the first page is nobody's
  fault<<<1, 1, 0, executor.stream()>>>(reinterpret_cast<int*>(kUnmapped));
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus
