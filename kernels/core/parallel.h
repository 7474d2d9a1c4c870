#pragma once

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <cstdint>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/slice.h"
#include "kernels/core/slice_size.h"

namespace cumulus {

/// Calls body(first, last) on pieces of [0, count) of at least `grain`, on the executor's threads, in slices.
/// Exceptions from the body reach the caller; throws Interrupted.
template <class Body>
void parallel_ranges(CpuExecutor& executor, std::int64_t count, std::int64_t grain, const Body& body) {
  constexpr std::int64_t kFirstGrains = 4;  // of each thread
  constexpr std::int64_t kChecks = 16;      // by each thread, in a slice that takes longer than foreseen
  const std::int64_t threads = executor.threads();
  SliceSize size(kCpuSliceLength, kFirstGrains * grain * threads, grain);
  for (std::int64_t begin = 0; begin < count;) {
    const Slice slice(executor);
    const std::int64_t end = slice.ends() ? std::min(count, begin + size.pieces()) : count;
    const std::int64_t step = std::max(grain, (end - begin) / (kChecks * threads));
    executor.run([&] {
      oneapi::tbb::parallel_for(
          oneapi::tbb::blocked_range<std::int64_t>(begin, end, static_cast<std::size_t>(grain)),
          [&](const auto& range) {
            if (!slice.ends()) return body(range.begin(), range.end());
            for (std::int64_t first = range.begin(); first < range.end(); first += step) {
              executor.check_interrupt();
              body(first, std::min(first + step, range.end()));
            }
          });
    });
    size.took(end - begin, slice.elapsed());
    begin = end;
  }
}

}  // namespace cumulus
