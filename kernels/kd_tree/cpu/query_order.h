#pragma once

#include <oneapi/tbb/parallel_sort.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/core/parallel.h"
#include "kernels/kd_tree/math/arithmetic.h"
#include "kernels/kd_tree/query/layout.h"

namespace cumulus::kd_tree {

/// Where queries of one tree lie on a Morton curve through its root's box: those that follow each other on it
/// see the same nodes, which are still in the caches.
template <class T>
class MortonCurve {
 public:
  /// `lower` and `upper` are the box, [dimensions].
  MortonCurve(const T* lower, const T* upper, int dimensions)
      : lower_(lower), upper_(upper), dimensions_(dimensions), bits_(kMaxBits / dimensions) {}

  std::uint64_t code(const T* query) const {
    std::uint64_t cells[kMaxKdTreeDimensions];
    for (int axis = 0; axis < dimensions_; ++axis)
      cells[axis] = cell(query[axis], lower_[axis], upper_[axis]);
    std::uint64_t code = 0;
    for (int bit = bits_ - 1; bit >= 0; --bit) {
      for (int axis = 0; axis < dimensions_; ++axis) code = code << 1 | (cells[axis] >> bit & 1u);
    }
    return code;
  }

 private:
  static constexpr int kMaxBits = 62;

  /// 0 where the box has no extent to measure by: finite, and more than nothing.
  std::uint64_t cell(T x, T lower, T upper) const {
    const double extent = spread(lower, upper);
    const double place = (static_cast<double>(x) - static_cast<double>(lower)) / extent;
    if (!(extent > 0 && std::isfinite(extent) && place > 0)) return 0;
    const std::uint64_t cells = std::uint64_t{1} << bits_;
    return place < 1 ? static_cast<std::uint64_t>(place * static_cast<double>(cells)) : cells - 1;
  }

  const T* lower_;
  const T* upper_;
  const int dimensions_;
  const int bits_;
};

/// Sorts `order`, [trees, queries], each tree's queries along its curve; `code(tree, query)` gives the place.
template <class Code>
void order_queries(CpuExecutor& executor, std::int64_t trees, std::int64_t queries, OrderedQuery* order,
                   const Code& code) {
  parallel_ranges(executor, trees * queries, 4096, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) order[i] = {code(i / queries, i), i};
  });
  // A sort cannot end early, so that many queries are sorted part by part, each a slice.
  constexpr std::int64_t kSortedAtOnce = std::int64_t{1} << 16;
  for (std::int64_t tree = 0; tree < trees; ++tree) {
    for (std::int64_t first = 0; first < queries; first += kSortedAtOnce) {
      const Slice slice(executor);
      OrderedQuery* const part = order + tree * queries + first;
      executor.run(
          [&] { oneapi::tbb::parallel_sort(part, part + std::min(kSortedAtOnce, queries - first)); });
    }
  }
}

}  // namespace cumulus::kd_tree
