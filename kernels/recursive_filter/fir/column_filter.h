#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/core/div.h"
#include "kernels/primitives/vector_width.h"
#include "kernels/recursive_filter/cpu/lanes.h"
#include "kernels/recursive_filter/fir/gaussian.h"
#include "kernels/recursive_filter/fir/weighted_sums.h"

namespace cumulus::recursive_filter {

/// Filters along y, a few rows of the result at once, which share what they load: a row of the input is as
/// far away as the second cache. Sums of many taps are added up in parts, as WeightedSums are.
template <class Real>
class ColumnFilter {
 public:
  /// Rows at once.
  static constexpr int kRows = 4;

  explicit ColumnFilter(const FirPass& pass)
      : pass_(pass),
        weights_(pass.weights.begin(), pass.weights.end()),
        sources_(static_cast<std::size_t>(places(kRows))),
        part_(part_of(pass.taps)) {}

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
    std::array<Tapped, kRows> tapped;
    for (std::int64_t k = 0; k < rows; ++k) {
      const auto at = static_cast<std::size_t>(k);
      tapped[at].first = first_place(row + k) - first;
      tapped[at].weights = weights_.data() + (row + k) % pass_.phases * pass_.taps;
      tapped[at].to = to[at];
    }
    const std::int64_t places = tapped[static_cast<std::size_t>(rows - 1)].first + pass_.taps;
    for (std::int64_t i = 0; i < places; ++i) sources_[static_cast<std::size_t>(i)] = place_at(first + i);
    with_widest_vectors([&]<class Vectors>() {
      Vectors::call([&] {
        if (rows == kRows) return add_up<Vectors, kRows>(tapped.data(), places, count);
        for (std::int64_t k = 0; k < rows; ++k)
          add_up<Vectors, 1>(&tapped[static_cast<std::size_t>(k)], places, count);
      });
    });
  }

 private:
  /// A row of the result: its taps begin at place `first` of those that are within reach of all.
  struct Tapped {
    std::int64_t first;
    const Real* weights;
    Real* to;
  };

  template <class Vectors, int kCount>
  [[gnu::always_inline]] void add_up(const Tapped* rows, std::int64_t places, std::int64_t count) const {
    using Value = Pack<Real, Vectors::kBytes>;
    // All sums in registers, of which 32 are there for 64 bytes, and half as many for fewer.
    constexpr int kPacks = Vectors::kBytes == 64 ? 16 / kRows : 1;
    std::int64_t at = 0;
    for (; at + kPacks * Value::kCount <= count; at += kPacks * Value::kCount) {
      block<Value, kCount, kPacks>(rows, places, at);
    }
    for (; at + Value::kCount <= count; at += Value::kCount) block<Value, kCount, 1>(rows, places, at);
    for (; at < count; ++at) {
      for (int k = 0; k < kCount; ++k) rows[k].to[at] = single(rows[k], places, at);
    }
  }

  template <class Value, int kCount, int kPacks>
  [[gnu::always_inline]] void block(const Tapped* rows, std::int64_t places, std::int64_t at) const {
    for (std::int64_t first = 0; first < places; first += part_) {
      Value sums[kCount][kPacks];
      add_part<Value>(rows, {first, std::min(first + part_, places)}, at, sums);
      for (int k = 0; k < kCount; ++k) {
        for (int p = 0; p < kPacks; ++p) {
          Real* to = rows[k].to + at + p * Value::kCount;
          if (first > 0) sums[k][p] += Value::load(to);
          sums[k][p].store(to);
        }
      }
    }
  }

  struct Part {
    std::int64_t begin, end;  // places
  };

  template <class Value, int kCount, int kPacks>
  [[gnu::always_inline]] void add_part(const Tapped* rows, const Part& part, std::int64_t at,
                                       Value (&sums)[kCount][kPacks]) const {
    const auto add = [&](std::int64_t place, auto reaches) {
      const Real* from = sources_[static_cast<std::size_t>(place)];
      if (from == nullptr) return;
      Value values[kPacks];
      for (int p = 0; p < kPacks; ++p) values[p] = Value::load(from + at + p * Value::kCount);
      for (int k = 0; k < kCount; ++k) {
        const std::int64_t tap = place - rows[k].first;
        if (!reaches(tap)) continue;
        for (int p = 0; p < kPacks; ++p) sums[k][p] += rows[k].weights[tap] * values[p];
      }
    };
    const auto some = [&](std::int64_t tap) { return tap >= 0 && tap < pass_.taps; };
    const auto all = [](std::int64_t) { return true; };
    // Places that all rows reach, between those that some do.
    const std::int64_t begin = std::clamp(rows[kCount - 1].first, part.begin, part.end);
    const std::int64_t end = std::clamp(rows[0].first + pass_.taps, begin, part.end);
    for (std::int64_t place = part.begin; place < begin; ++place) add(place, some);
    for (std::int64_t place = begin; place < end; ++place) add(place, all);
    for (std::int64_t place = end; place < part.end; ++place) add(place, some);
  }

  [[gnu::always_inline]] Real single(const Tapped& row, std::int64_t places, std::int64_t at) const {
    Real total = 0;
    for (std::int64_t first = 0; first < places; first += part_) {
      Real sum = 0;
      const std::int64_t end = std::min({first + part_, places, row.first + pass_.taps});
      for (std::int64_t place = std::max(first, row.first); place < end; ++place) {
        const Real* from = sources_[static_cast<std::size_t>(place)];
        if (from != nullptr) sum += row.weights[place - row.first] * from[at];
      }
      total += sum;
    }
    return total;
  }

  const FirPass& pass_;
  std::vector<Real> weights_;
  std::vector<const Real*> sources_;
  std::int64_t part_;
};

}  // namespace cumulus::recursive_filter
