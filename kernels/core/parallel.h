#pragma once

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>

#include <cstdint>

#include "kernels/core/cpu_executor.h"

namespace cumulus {

/// Calls body(first, last) on pieces of [0, count) of at least `grain`, on the executor's threads.
/// Exceptions from the body reach the caller.
template <class Body>
void parallel_ranges(CpuExecutor& executor, std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return;
  executor.run([&] {
    oneapi::tbb::parallel_for(
        oneapi::tbb::blocked_range<std::int64_t>(0, count, static_cast<std::size_t>(grain)),
        [&](const auto& range) { body(range.begin(), range.end()); });
  });
}

}  // namespace cumulus
