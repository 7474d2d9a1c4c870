#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"
#include "kernels/run_length/check.h"
#include "kernels/run_length/element.h"
#include "kernels/run_length/transpose/transpose.h"

namespace cumulus::run_length {
namespace {

constexpr int kSquare = 32;
constexpr int kRowsAtOnce = 8;

/// owns: a block has a square of 32 x 32 pixels of one image.
/// reads: the square by rows, into shared memory.
/// writes: the transposed square by rows, that is, columns of the shared one.
/// waits for: nothing of other blocks, so that it cannot deadlock.
/// source: the tiled transposition of G. Ruetsch and P. Micikevicius, "Optimizing matrix transpose in CUDA",
/// 2009.
template <class T>
__global__ void __launch_bounds__(kSquare* kRowsAtOnce)
    transpose_squares(ImageBatch batch, std::int64_t squares_down, std::int64_t squares_across, const T* from,
                      T* to) {
  __shared__ T square[kSquare][kSquare + 1];  // one more, so that a column lies in different banks
  const std::int64_t image = blockIdx.x / (squares_down * squares_across);
  const std::int64_t in_image = blockIdx.x % (squares_down * squares_across);
  const std::int64_t y = in_image / squares_across * kSquare;
  const std::int64_t x = in_image % squares_across * kSquare;
  const std::int64_t offset = image * batch.height * batch.width;
  for (int row = static_cast<int>(threadIdx.y); row < kSquare; row += kRowsAtOnce) {
    if (y + row < batch.height && x + threadIdx.x < batch.width) {
      square[row][threadIdx.x] = from[offset + (y + row) * batch.width + x + threadIdx.x];
    }
  }
  __syncthreads();
  for (int column = static_cast<int>(threadIdx.y); column < kSquare; column += kRowsAtOnce) {
    if (x + column < batch.width && y + threadIdx.x < batch.height) {
      to[offset + (x + column) * batch.height + y + threadIdx.x] = square[threadIdx.x][column];
    }
  }
}

}  // namespace
}  // namespace cumulus::run_length

namespace cumulus {

void transpose_images(CudaExecutor& executor, const ImageBatch& batch, DeviceSpan<const std::byte> from,
                      DeviceSpan<std::byte> to) {
  using namespace run_length;
  check_transpose(batch, from, to);
  executor.check_interrupt();
  if (from.empty()) return;
  executor.bind_thread();
  const std::int64_t squares_down = divide_up(batch.height, kSquare);
  const std::int64_t squares_across = divide_up(batch.width, kSquare);
  const auto blocks = static_cast<unsigned int>(batch.images * squares_down * squares_across);
  with_element(batch.element_bytes, [&]<class T>(T) {
    transpose_squares<<<blocks, dim3(kSquare, kRowsAtOnce), 0, executor.stream()>>>(
        batch, squares_down, squares_across, reinterpret_cast<const T*>(from.data()),
        reinterpret_cast<T*>(to.data()));
  });
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus
