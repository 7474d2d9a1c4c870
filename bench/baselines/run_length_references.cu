#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>

#include "bench/baselines/run_length_references.h"
#include "kernels/core/cuda_error.h"

namespace cumulus::bench {
namespace {

// PARLE's passes, a grid-stride loop each.
constexpr int kThreads = 256;
constexpr int kBlocks = 132 * 8;

template <class T>
__global__ void mark_heads(const T* elements, int count, int* mask) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    mask[i] = i == 0 || elements[i] != elements[i - 1] ? 1 : 0;
  }
}

__global__ void compact_heads(const int* ranks, int count, int* heads, int* runs) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    if (i == 0 || ranks[i] != ranks[i - 1]) heads[ranks[i] - 1] = i;
    if (i == count - 1) {
      heads[ranks[i]] = count;
      *runs = ranks[i];
    }
  }
}

template <class T>
__global__ void scatter_runs(const T* elements, const int* heads, const int* runs, T* symbols,
                             std::uint32_t* counts) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < *runs;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    symbols[i] = elements[heads[i]];
    counts[i] = static_cast<std::uint32_t>(heads[i + 1] - heads[i]);
  }
}

template <class T>
cudaError_t encode_cub(void* scratch, std::size_t& bytes, const RunLengthReferenceArrays& a,
                       cudaStream_t stream) {
  return cub::DeviceRunLengthEncode::Encode(scratch, bytes, reinterpret_cast<const T*>(a.elements),
                                            reinterpret_cast<T*>(a.symbols), a.counts, a.runs,
                                            static_cast<int>(a.count), stream);
}

/// Mask and ranks, heads, and CUB's own scratch behind them.
std::size_t parle_array_bytes(const RunLengthReferenceArrays& a) {
  return (static_cast<std::size_t>(a.count) + 1) * sizeof(int) / 256 * 256 + 256;
}

std::size_t scan_bytes(const RunLengthReferenceArrays& a) {
  std::size_t bytes = 0;
  CUMULUS_CUDA(cub::DeviceScan::InclusiveSum(nullptr, bytes, static_cast<int*>(nullptr),
                                             static_cast<int*>(nullptr), static_cast<int>(a.count)));
  return bytes;
}

template <class T>
void encode_parle(CudaExecutor& executor, const RunLengthReferenceArrays& a, DeviceSpan<std::byte> scratch) {
  const auto count = static_cast<int>(a.count);
  const auto stream = executor.stream();
  const auto* elements = reinterpret_cast<const T*>(a.elements);
  auto* mask = reinterpret_cast<int*>(scratch.data());
  auto* ranks = reinterpret_cast<int*>(scratch.data() + parle_array_bytes(a));
  mark_heads<<<kBlocks, kThreads, 0, stream>>>(elements, count, mask);
  std::size_t bytes = scan_bytes(a);
  CUMULUS_CUDA(cub::DeviceScan::InclusiveSum(scratch.data() + 2 * parle_array_bytes(a), bytes, mask, ranks,
                                             count, stream));
  int* heads = mask;  // which nobody needs any more
  compact_heads<<<kBlocks, kThreads, 0, stream>>>(ranks, count, heads, a.runs);
  scatter_runs<<<kBlocks, kThreads, 0, stream>>>(elements, heads, a.runs, reinterpret_cast<T*>(a.symbols),
                                                 a.counts);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace

std::size_t reference_scratch_bytes(RunLengthReference reference, const RunLengthReferenceArrays& arrays) {
  if (reference == RunLengthReference::kParle) return 2 * parle_array_bytes(arrays) + scan_bytes(arrays);
  std::size_t bytes = 0;
  CUMULUS_CUDA(arrays.element_bytes == 1 ? encode_cub<std::uint8_t>(nullptr, bytes, arrays, nullptr)
                                         : encode_cub<std::uint32_t>(nullptr, bytes, arrays, nullptr));
  return bytes;
}

void encode_with_reference(RunLengthReference reference, CudaExecutor& executor,
                           const RunLengthReferenceArrays& arrays, DeviceSpan<std::byte> scratch) {
  if (reference == RunLengthReference::kParle) {
    return arrays.element_bytes == 1 ? encode_parle<std::uint8_t>(executor, arrays, scratch)
                                     : encode_parle<std::uint32_t>(executor, arrays, scratch);
  }
  std::size_t bytes = scratch.size();
  CUMULUS_CUDA(arrays.element_bytes == 1
                   ? encode_cub<std::uint8_t>(scratch.data(), bytes, arrays, executor.stream())
                   : encode_cub<std::uint32_t>(scratch.data(), bytes, arrays, executor.stream()));
}

}  // namespace cumulus::bench
