#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/float16.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/recursive_filter/fir/gaussian.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/method.h"

namespace cumulus {

/// Exactly what fir_gaussian_blur takes; `device` matters on a GPU only.
template <class T, Space S>
std::size_t fir_gaussian_blur_scratch_bytes(const FilterImages<const T, S>& images, const FirBlur& blur,
                                            const DeviceNumbers& device) {
  using namespace recursive_filter;
  if constexpr (S == Space::kDevice) return choose(blur, images_shape(images), device).scratch_bytes;
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const ImageView<const T, S>& image = images.first;
  const FirExtents extents{image.height, image.width};
  // Batches go image by image.
  const FirScratch scratch =
      fir_scratch(host_stages(blur, extents, image.channels), extents, image.channels, 1);
  ScratchSize size;
  size.add<Real>(static_cast<std::size_t>(scratch.even));
  size.add<Real>(static_cast<std::size_t>(scratch.odd));
  // An image as floats.
  if (std::is_same_v<T, Float16>) size.add<float>(static_cast<std::size_t>(2 * image.elements()));
  return size.bytes();
}

/// Blurs every channel of each of `images` with a Gaussian of positive weights (fir/gaussian.h). T is float,
/// Float16 (in float, rounded once) or double. Views as in recursive_filter.h; throws std::invalid_argument
/// for others and for a blur that check_fir_blur refuses. Takes the scratch bytes above, which the caller
/// reserves.
///
/// The result of what is not negative is not negative. Of such images each pixel is within 2e-6 of itself
/// (float; 1e-6 double) of what the sampled Gaussian without end gives, plus kFirTruncation of the image's
/// peak, which is what the cut-off leaves out. Results do not depend on the number of threads.
///
/// On a CPU it says whether all results are finite, which it sees on the way: each pixel reaches one, so that
/// a NaN or an infinity among them leaves some that are not.
template <class T>
bool fir_gaussian_blur(CpuExecutor& executor, FilterImages<const T, Space::kHost> images, const FirBlur& blur,
                       FilterImages<T, Space::kHost> blurred);
template <class T>
void fir_gaussian_blur(CudaExecutor& executor, FilterImages<const T, Space::kDevice> images,
                       const FirBlur& blur, FilterImages<T, Space::kDevice> blurred);

}  // namespace cumulus
