#pragma once

#include <cstddef>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/views.h"
#include "kernels/recursive_filter/design.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/method.h"

namespace cumulus {

/// Applies `filter` to every channel of each of `images`, along y and along x (in which order makes no
/// difference but for rounding). T is float, Float16 or double.
///
/// Images have 1 to 4 interleaved channels and at least one pixel; rows of `images` may be padded
/// (row_stride), `filtered` is dense and does not overlap `images`. Both lie in the executor's memory space.
/// A view that breaks this, an unstable pole, or a method that does not exist here throws
/// std::invalid_argument before anything runs. The CPU overload returns when the result is there; the CUDA
/// overload puts its work on the executor's stream and returns. Before the call the caller reserves
/// apply_recursive_filter_scratch_bytes; the call takes exactly those. A failing device throws CudaError, a
/// caller who has lost interest Interrupted (checked between kernels).
///
/// The result is that of the signal without end that the boundary makes of each row and column, with no
/// padding: states at the borders are solved for in long double. Pixels are filtered in
/// float where all poles lie within 15/16 of the origin, otherwise in double; intermediate images and carries
/// are float. |error| is at most
///
///   (order + 1) z m 2^-23 G max|image|,   m = 1 / (1 - max|pole|) in float, 1 in double,
///                                         z = 1; with zeros 2, if a pole is within 1/16 of 0 too, 4,
///
/// G the product, over both axes and both directions, of the sum of |impulse response|: a bound that the
/// tests hold it to, not a proven one, and 2.5 times it for second derivatives with sigma below
/// 0.6. Float16 results are rounded once more, to the nearest. Images of
/// double are double throughout (2^-52 for 2^-23, m = 1 / (1 - max|pole|)) and go by lines. NaN and Inf may
/// spread over the whole image, or, by kTiled in double, become large numbers near by. Results do not depend
/// on the number of threads or on timing.
///
/// Two GPU methods may cut carries off at the decay length; they err by `truncation_bound` times
/// the image's largest magnitude more. The CPU's way is exact and stands in for all of them.
template <class T>
RecursiveFilterRun apply_recursive_filter(CpuExecutor& executor, FilterImages<const T, Space::kHost> images,
                                          const RecursiveFilter& filter,
                                          FilterImages<T, Space::kHost> filtered,
                                          const RecursiveFilterChoice& choice = {});
template <class T>
RecursiveFilterRun apply_recursive_filter(CudaExecutor& executor,
                                          FilterImages<const T, Space::kDevice> images,
                                          const RecursiveFilter& filter,
                                          FilterImages<T, Space::kDevice> filtered,
                                          const RecursiveFilterChoice& choice = {});

/// values = addend + weight values, element by element, in float for Float16 and float, else in double: sums
/// of several filters of an image, one after another. `values` and `addend` have the same size and do not
/// overlap. Takes no scratch memory; asynchronous as apply_recursive_filter is.
template <class T>
void add_scaled(CpuExecutor& executor, HostSpan<const T> addend, double weight, HostSpan<T> values);
template <class T>
void add_scaled(CudaExecutor& executor, DeviceSpan<const T> addend, double weight, DeviceSpan<T> values);

}  // namespace cumulus
