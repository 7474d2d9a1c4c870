#pragma once

#include <cstdint>

#include "kernels/recursive_filter/math/line.h"
#include "kernels/recursive_filter/tuning.h"

namespace cumulus::recursive_filter {

/// Responses of the pixels of a tile's column to the column's carries: `of[y][k]` to the k-th number of the
/// causal carry, then of the anticausal one.
template <int Order>
struct TileResponses {
  float of[kTile][2 * Order];

  TileResponses(const AxisPlan& plan, std::int64_t rows) : of{} {
    const auto causal = sections_of<Order, long double>(plan.causal);
    const auto anticausal = sections_of<Order, long double>(plan.anticausal);
    const auto through_causal = small_matrix<Order, long double>(plan.through_causal);
    const auto through_anticausal = small_matrix<Order, long double>(plan.through_anticausal);
    for (int k = 0; k < 2 * Order; ++k) {
      long double before[Order] = {};
      long double after[Order] = {};
      (k < Order ? before[k] : after[k - Order]) = 1;
      long double line[kTile] = {};
      for (std::int64_t y = 0; y < rows; ++y) causal.filter(before, line[y]);
      long double state[Order] = {};
      through_causal.add_product(before, state);
      through_anticausal.add_product(after, state);
      for (std::int64_t y = rows - 1; y >= 0; --y) anticausal.filter(state, line[y]);
      for (std::int64_t y = 0; y < rows; ++y) of[y][k] = static_cast<float>(line[y]);
    }
  }
};

}  // namespace cumulus::recursive_filter
