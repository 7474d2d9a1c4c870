#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/run_length/run_length_check.h"
#include "kernels/run_length/run_length_element.h"
#include "kernels/run_length/run_length_scratch.h"
#include "kernels/run_length/run_length_transpose.h"

namespace cumulus {
namespace {

using namespace run_length;

constexpr int kSquare = 32;
constexpr int kRowsAtOnce = 8;

/// A block per square of 32 x 32 pixels: read by rows, written by columns.
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

void transpose_images(CudaExecutor& executor, const ImageBatch& batch, DeviceSpan<const std::byte> from,
                      DeviceSpan<std::byte> to) {
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
