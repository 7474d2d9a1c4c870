#pragma once

#include <cstdint>

#include "kernels/core/parallel.h"

namespace cumulus::bracket_match {

/// body(tile) for each of `tiles`, on the executor's threads. Throws Interrupted.
template <class Body>
void for_each_tile(CpuExecutor& executor, std::int64_t tiles, const Body& body) {
  executor.check_interrupt();
  parallel_ranges(executor, tiles, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t tile = first; tile < end; ++tile) body(tile);
  });
}

}  // namespace cumulus::bracket_match
