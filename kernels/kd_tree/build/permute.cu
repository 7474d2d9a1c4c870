#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/kd_tree/build/build.h"
#include "kernels/kd_tree/threads.cuh"

namespace cumulus::kd_tree {
namespace {

/// Brings rows into the trees' order.
/// Owns: thread i the i-th `Word` of the forest's rows.
/// Reads: the row's index; the word of the row that it names.
/// Writes: word i; of an index out of range, 0.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: this project's.
template <class Word>
__global__ void permute_words(std::int64_t words, std::int64_t row_words, std::int64_t points,
                              const std::int64_t* idx_array, const Word* from, Word* to) {
  const std::int64_t i = thread_number();
  if (i >= words) return;
  const std::int64_t row = i / row_words;
  const std::int64_t tree = row / points;
  const std::int64_t index = idx_array[row];
  to[i] = index < 0 || index >= points ? Word{0}
                                       : from[(tree * points + index) * row_words + (i - row * row_words)];
}

template <class Word>
void permute_in(CudaExecutor& executor, const KdTreeShape& shape, DeviceSpan<const std::int64_t> idx_array,
                DeviceSpan<const std::byte> from, std::int64_t row_bytes, DeviceSpan<std::byte> to) {
  const auto words = static_cast<std::int64_t>(to.size() / sizeof(Word));
  const std::int64_t row_words = row_bytes / static_cast<std::int64_t>(sizeof(Word));
  permute_words<<<point_blocks(words), kPointThreads, 0, executor.stream()>>>(
      words, row_words, shape.points, idx_array.data(), reinterpret_cast<const Word*>(from.data()),
      reinterpret_cast<Word*>(to.data()));
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace

void permute(CudaExecutor& executor, const KdTreeShape& shape, DeviceSpan<const std::int64_t> idx_array,
             DeviceSpan<const std::byte> from, std::int64_t row_bytes, DeviceSpan<std::byte> to) {
  if (row_bytes % 8 == 0) return permute_in<std::uint64_t>(executor, shape, idx_array, from, row_bytes, to);
  if (row_bytes % 4 == 0) return permute_in<std::uint32_t>(executor, shape, idx_array, from, row_bytes, to);
  permute_in<std::uint8_t>(executor, shape, idx_array, from, row_bytes, to);
}

}  // namespace cumulus::kd_tree
