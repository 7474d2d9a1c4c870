#include <cuda_runtime.h>

#include <stdexcept>

#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"
#include "kernels/core/non_finite.h"

namespace cumulus {
namespace {

using namespace non_finite;

constexpr int kThreads = 256;
constexpr int kLoads = 4;  // vectors that a thread has on their way at once
constexpr int kBlocksOfMultiprocessor = 8;

template <class T>
constexpr int kOfVector = static_cast<int>(sizeof(uint4) / sizeof(T));

/// The word of the first of a vector's elements that is not finite.
template <class T>
__device__ std::uint64_t word_in(const uint4& vector, std::int64_t first) {
  const std::uint32_t words[4] = {vector.x, vector.y, vector.z, vector.w};
  std::uint64_t word = NonFinite::kNone;
#pragma unroll
  for (int i = kOfVector<T> - 1; i >= 0; --i) {
    Bits<T> bits;
    if constexpr (sizeof(T) == 8) {
      bits = std::uint64_t{words[2 * i + 1]} << 32 | words[2 * i];
    } else if constexpr (sizeof(T) == 4) {
      bits = words[i];
    } else {
      bits = static_cast<Bits<T>>(words[i / 2] >> (i % 2 * 16));
    }
    if (!is_finite<T>(bits)) word = NonFinite::word_of(first + i, kind_of<T>(bits));
  }
  return word;
}

__device__ std::uint64_t least(std::uint64_t a, std::uint64_t b) { return a < b ? a : b; }

/// Owns: a block, vectors and, in what is no whole vector, elements, those of all blocks by turns. Reads:
/// each once. Writes: `found`, the least word, once a block that has one. Waits for: its block's threads, so
/// that it cannot deadlock. Source: a block's reduction and an atomic minimum.
template <class T>
__global__ void __launch_bounds__(kThreads)
    find_first(const T* elements, std::int64_t count, std::int64_t vectors, std::uint64_t* found) {
  __shared__ unsigned long long of_block;
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t own = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const auto* const loads = reinterpret_cast<const uint4*>(elements);
  std::uint64_t word = NonFinite::kNone;
  for (std::int64_t i = own; i < vectors; i += kLoads * stride) {
    uint4 loaded[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k)
      loaded[k] = i + k * stride < vectors ? __ldg(loads + i + k * stride) : uint4{};
#pragma unroll
    for (int k = 0; k < kLoads; ++k)
      word = least(word, word_in<T>(loaded[k], (i + k * stride) * kOfVector<T>));
  }
  for (std::int64_t i = vectors * kOfVector<T> + own; i < count; i += stride) {
    const Bits<T> bits = reinterpret_cast<const Bits<T>*>(elements)[i];
    if (!is_finite<T>(bits)) word = least(word, NonFinite::word_of(i, kind_of<T>(bits)));
  }
  if (__syncthreads_or(word != NonFinite::kNone) == 0) return;
  if (threadIdx.x == 0) of_block = NonFinite::kNone;
  __syncthreads();
  if (word != NonFinite::kNone) atomicMin(&of_block, static_cast<unsigned long long>(word));
  __syncthreads();
  // One kernel of one GPU writes there, and the host reads when it has ended.
  if (threadIdx.x == 0) atomicMin(reinterpret_cast<unsigned long long*>(found), of_block);
}

/// Owns: a block, elements by turns. Reads: each once. Writes: `largest`, the largest finite magnitude, once
/// a block. Waits for: its block's threads, so that it cannot deadlock. Source: as above.
template <class T>
__global__ void __launch_bounds__(kThreads)
    find_largest(const Bits<T>* elements, std::int64_t count, unsigned long long* largest) {
  __shared__ unsigned long long of_block;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  unsigned long long most = largest_half_bits<T>();
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride) {
    const Bits<T> bits = elements[i];
    const unsigned long long own = magnitude<T>(bits);
    if (is_finite<T>(bits) && own > most) most = own;
  }
  atomicMax(&of_block, most);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(largest, of_block);
}

/// Owns: a thread, elements by turns. Reads: each once, and `largest`, which the kernel before has written.
/// Writes: their clamped values. Waits for: nothing of other threads, so that it cannot deadlock.
/// Source: none, a map.
template <class T>
__global__ void __launch_bounds__(kThreads)
    clamp_elements(const Bits<T>* elements, std::int64_t count, const unsigned long long* largest,
                   Bits<T>* clamp) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  const auto most = static_cast<Bits<T>>(*largest);
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride)
    clamp[i] = clamped<T>(elements[i], most);
}

unsigned int blocks_for(const CudaExecutor& executor, std::int64_t items) {
  const std::int64_t most = std::int64_t{executor.device().multiprocessors()} * kBlocksOfMultiprocessor;
  const std::int64_t blocks = divide_up(items, std::int64_t{kThreads});
  return static_cast<unsigned int>(blocks < most ? blocks : most);
}

}  // namespace

template <class T>
void find_non_finite(CudaExecutor& executor, DeviceSpan<const T> elements, NonFinite& found) {
  executor.check_interrupt();
  executor.bind_thread();
  auto* const word = static_cast<std::uint64_t*>(executor.device_view(&found.word));
  if (word == nullptr) throw std::invalid_argument("find_non_finite: `found` does not lie in pinned memory");
  found.word = NonFinite::kNone;
  const auto count = static_cast<std::int64_t>(elements.size());
  if (count == 0) return;
  const bool aligned = reinterpret_cast<std::uintptr_t>(elements.data()) % sizeof(uint4) == 0;
  const std::int64_t vectors = aligned ? count / kOfVector<T> : 0;
  find_first<T>
      <<<blocks_for(executor, aligned ? vectors + kOfVector<T> : count), kThreads, 0, executor.stream()>>>(
          elements.data(), count, vectors, word);
  CUMULUS_CUDA(cudaGetLastError());
}

template <class T>
DeviceSpan<const T> clamp_non_finite(CudaExecutor& executor, DeviceSpan<const T> elements) {
  executor.check_interrupt();
  executor.bind_thread();
  const auto count = static_cast<std::int64_t>(elements.size());
  const DeviceSpan<T> copy = executor.scratch<T>(elements.size());
  auto* const largest = reinterpret_cast<unsigned long long*>(executor.scratch<std::uint64_t>(1).data());
  if (count == 0) return copy;
  CUMULUS_CUDA(cudaMemsetAsync(largest, 0, sizeof(*largest), executor.stream()));
  const auto* const bits = reinterpret_cast<const Bits<T>*>(elements.data());
  const unsigned int blocks = blocks_for(executor, count);
  find_largest<T><<<blocks, kThreads, 0, executor.stream()>>>(bits, count, largest);
  CUMULUS_CUDA(cudaGetLastError());
  clamp_elements<T><<<blocks, kThreads, 0, executor.stream()>>>(bits, count, largest,
                                                                reinterpret_cast<Bits<T>*>(copy.data()));
  CUMULUS_CUDA(cudaGetLastError());
  return copy;
}

#define CUMULUS_INSTANTIATE(T)                                                      \
  template void find_non_finite<T>(CudaExecutor&, DeviceSpan<const T>, NonFinite&); \
  template DeviceSpan<const T> clamp_non_finite<T>(CudaExecutor&, DeviceSpan<const T>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

}  // namespace cumulus
