#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>

#include "kernels/core/parallel.h"
#include "kernels/kd_tree/kd_tree.h"

namespace cumulus::kd_tree {

/// Where the first NaN is.
template <class T>
KdTreeReport find_nan(CpuExecutor& executor, HostSpan<const T> points, const KdTreeShape& shape) {
  constexpr std::int64_t kGrain = std::int64_t{1} << 15;
  const auto count = static_cast<std::int64_t>(points.size());
  std::atomic<std::int64_t> first_nan = count;
  parallel_ranges(executor, count, kGrain, [&](std::int64_t first, std::int64_t end) {
    bool found = false;
    for (std::int64_t i = first; i < end; ++i) found |= std::isnan(points.data()[i]);
    if (!found) return;
    while (!std::isnan(points.data()[first])) ++first;
    std::int64_t known = first_nan;
    while (first < known && !first_nan.compare_exchange_weak(known, first)) {
    }
  });
  if (first_nan == count) return {};
  const std::int64_t point = first_nan / shape.dimensions;
  return {point / shape.points, point % shape.points, first_nan % shape.dimensions};
}

}  // namespace cumulus::kd_tree
