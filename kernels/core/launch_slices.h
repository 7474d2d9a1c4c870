#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/slice_size.h"

namespace cumulus {

/// How long a slice is to take on a GPU: short of the 20 ms that it may, because how long its last blocks
/// take is not known before.
inline constexpr std::chrono::milliseconds kGpuSliceLength{8};

/// How many elements slices have: the first, and any.
struct SliceBounds {
  std::int64_t first;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};

/// About as many threads as a GPU holds at a time: fewer elements, a thread each, take it no less time.
inline constexpr std::int64_t kWaveElements = std::int64_t{1} << 17;

/// Calls launch(begin, end), which puts kernels on the executor's stream, for the parts of [0, count), each a
/// slice of the call. At most two are on the stream, one where it takes long, so that a deadline, a
/// cancellation or a shutdown frees the lane after these. Returns, as a launch does, before the last ones are
/// done; a call of at most `bounds.first` elements is one launch and waits for nothing. Throws Interrupted,
/// and CudaError.
template <class Launch>
void launch_slices(CudaExecutor& executor, std::int64_t count, const SliceBounds& bounds,
                   const Launch& launch) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  executor.check_interrupt();
  if (count <= bounds.first) {
    if (count > 0) launch(std::int64_t{0}, count);
    return;
  }
  constexpr std::size_t kMarks = 3;
  std::array<CudaEvent, kMarks> marks;  // the i-th after the i-th slice
  std::array<std::int64_t, kMarks> pieces{};
  marks[0].record(executor.stream());
  SliceSize size(kGpuSliceLength, bounds.first, std::min(bounds.first, kWaveElements));
  std::int64_t begin = 0;
  for (std::size_t slice = 1; begin < count; ++slice) {
    const std::int64_t end = begin + std::min({count - begin, size.pieces(), bounds.most});
    pieces[slice % kMarks] = end - begin;
    launch(begin, end);
    marks[slice % kMarks].record(executor.stream());
    begin = end;
    if (slice == 1) continue;
    const CudaEvent& done = marks[(slice - 1) % kMarks];
    done.wait();
    const Milliseconds taken(done.milliseconds_since(marks[(slice - 2) % kMarks]));
    size.took(pieces[(slice - 1) % kMarks], taken);
    if (taken > 2 * kGpuSliceLength) marks[slice % kMarks].wait();
    executor.check_interrupt();
  }
}

}  // namespace cumulus
