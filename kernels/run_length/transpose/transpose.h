#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/views.h"

namespace cumulus {

/// A batch of images of equal size, one behind the other.
struct ImageBatch {
  /// 1, 2, 3, 4, 6, 8, 12 or 16: a pixel.
  int element_bytes = 1;
  std::int64_t images = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::size_t bytes() const {
    return static_cast<std::size_t>(images * height * width) * static_cast<std::size_t>(element_bytes);
  }
};

/// Turns rows into columns: pixel (y, x) of each image of `from` becomes pixel (x, y) of the same image of
/// `to`, whose images are batch.width high and batch.height wide. Both have batch.bytes() bytes, begin at a
/// multiple of 16 and do not overlap; std::invalid_argument otherwise. No scratch memory. The CUDA overload
/// puts its work on the executor's stream; it throws CudaError.
void transpose_images(CpuExecutor& executor, const ImageBatch& batch, HostSpan<const std::byte> from,
                      HostSpan<std::byte> to);
void transpose_images(CudaExecutor& executor, const ImageBatch& batch, DeviceSpan<const std::byte> from,
                      DeviceSpan<std::byte> to);

}  // namespace cumulus
