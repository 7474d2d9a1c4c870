#pragma once

#include <cstddef>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/views.h"
#include "kernels/recursive_filter/recursive_filter_design.h"
#include "kernels/recursive_filter/recursive_filter_scratch.h"

namespace cumulus {

/// Applies `filter` to every channel of `image`, along y and along x (in which order makes no difference but
/// for rounding).
///
/// Images have 1 to 4 interleaved channels and at least one pixel; `image`'s rows may be padded (row_stride),
/// `filtered` is dense and does not overlap `image`. Both lie in the executor's memory space. A view that
/// breaks this, an unstable pole, or a method that does not exist here throws std::invalid_argument before
/// anything runs. The CPU overload returns when the result is there; the CUDA overload puts its work on the
/// executor's stream and returns. Before the call the caller reserves apply_recursive_filter_scratch_bytes;
/// the call takes exactly those. A failing device throws CudaError, a caller who has lost interest
/// Interrupted (checked between kernels).
///
/// The result is that of the signal without end that the boundary makes of each row and column, with no
/// padding and no truncation: states at the borders are solved for in long double. Pixels are filtered in
/// float where all poles lie within 15/16 of the origin, otherwise in double; intermediate images and carries
/// are float. |error| is at most
///
///   (order + 1) m 2^-23 G max|image|,   m = 1 / (1 - max|pole|) in float, 1 in double,
///
/// G the product, over both axes and both directions, of the sum of |impulse response|: a bound that the
/// tests hold it to, not a proven one. NaN and Inf may spread over the whole image. Results do not depend on
/// the number of threads or on timing.
void apply_recursive_filter(CpuExecutor& executor, HostImage<const float> image,
                            const RecursiveFilter& filter, HostImage<float> filtered,
                            RecursiveFilterMethod method = RecursiveFilterMethod::kAutomatic);
void apply_recursive_filter(CudaExecutor& executor, DeviceImage<const float> image,
                            const RecursiveFilter& filter, DeviceImage<float> filtered,
                            RecursiveFilterMethod method = RecursiveFilterMethod::kAutomatic);

}  // namespace cumulus
