#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/core/div.h"
#include "kernels/recursive_filter/fir/gaussian.h"
#include "kernels/recursive_filter/fir/weighted_sums.h"

namespace cumulus::recursive_filter {

/// Filters along y, a few rows of the result at once: a row of the input is as far away as the second cache.
template <class Real>
class ColumnFilter {
 public:
  /// Rows at once.
  static constexpr int kRows = WeightedSums<Real>::kResults;

  explicit ColumnFilter(const FirPass& pass)
      : pass_(pass), weights_(pass.weights.begin(), pass.weights.end()), sums_(pass.taps, places(kRows)) {}

  /// The place that the first tap of a row of the result has.
  std::int64_t first_place(std::int64_t row) const {
    return row / pass_.phases * pass_.advance + pass_.first;
  }
  /// That so many rows side by side have within reach, at most.
  std::int64_t places(std::int64_t rows) const {
    return pass_.taps + divide_up(rows - 1, pass_.phases) * pass_.advance;
  }

  /// Numbers 0..count - 1 of `rows` rows of the result from `row` on, to each of `to`. place_at(place) is
  /// where the input's begin, null for zeros.
  template <class PlaceAt>
  void filter(std::int64_t row, std::int64_t rows, const PlaceAt& place_at, std::int64_t count,
              const std::array<Real*, kRows>& to) {
    const std::int64_t first = first_place(row);
    std::array<typename WeightedSums<Real>::Result, kRows> results;
    for (std::int64_t k = 0; k < rows; ++k) {
      const auto at = static_cast<std::size_t>(k);
      results[at] = {first_place(row + k) - first, weights_.data() + (row + k) % pass_.phases * pass_.taps,
                     to[at]};
    }
    const std::int64_t places = first_place(row + rows - 1) - first + pass_.taps;
    for (std::int64_t i = 0; i < places; ++i)
      sums_.sources[static_cast<std::size_t>(i)] = place_at(first + i);
    sums_.compute({results.data(), static_cast<std::size_t>(rows)}, count);
  }

  bool all_finite() const { return sums_.all_finite(); }

 private:
  const FirPass& pass_;
  std::vector<Real> weights_;
  WeightedSums<Real> sums_;
};

}  // namespace cumulus::recursive_filter
