#pragma once

// From the weights of a row to its lower bounds, on the CPU: loops without branches, for vectors.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/core/vector_width.h"
#include "kernels/sampling_table/weights/arithmetic.h"

namespace cumulus::sampling_table {

/// The largest of a row's weights, and of their guards.
struct RowExtremes {
  std::uint32_t largest = 0;
  std::uint32_t guard = 0;

  void add(const RowExtremes& others) {
    largest = std::max(largest, others.largest);
    guard = std::max(guard, others.guard);
  }
};

/// With `kAsTheyAre` no weight is adjusted.
template <bool kAsTheyAre, class T>
RowExtremes stage_weights_by(const T* texels, std::int64_t channels, std::uint32_t width, WeightRule rule,
                             const WeightAdjustment& adjustment, std::uint32_t* cells) {
  std::uint32_t largest = 0;
  std::uint32_t guard = 0;
  for (std::uint32_t x = 0; x < width; ++x) {
    const Weight weight = load_weight(texels + x * channels, rule);
    const std::uint32_t bits = kAsTheyAre ? weight.bits : adjusted(weight.bits, adjustment);
    cells[x] = bits;
    largest = std::max(largest, bits);
    guard = std::max(guard, weight.guard);
  }
  return {largest, guard};
}

/// Writes the bits of a row's weights, 0 for invalid ones. What most maps have are loops of their own.
template <class T>
RowExtremes stage_weights(const T* texels, std::int64_t channels, std::uint32_t width, const WeightRule& rule,
                          const WeightAdjustment& adjustment, std::uint32_t* cells) {
  const bool as_they_are = adjustment.taken_off == 0 && adjustment.otherwise == 0;
  RowExtremes extremes;
  run_vectorised([&] {
    const auto stage = [&](std::int64_t step, WeightRule known) {
      return as_they_are ? stage_weights_by<true>(texels, step, width, known, adjustment, cells)
                         : stage_weights_by<false>(texels, step, width, known, adjustment, cells);
    };
    if (channels == 1) {
      extremes = rule.clamp ? stage(1, {1, true, {}}) : stage(1, {1, false, {}});
    } else if (channels == 3) {
      extremes = rule.clamp ? stage(3, {3, true, rule.luminance}) : stage(3, {3, false, rule.luminance});
    } else {
      extremes = stage(channels, rule);
    }
  });
  return extremes;
}

///  integer_weight of one row, by one product, which is exact in double.
class IntegerWeight {
 public:
  explicit IntegerWeight(std::uint32_t exponent)
      : scale_(std::ldexp(1.0, 174 - static_cast<int>(exponent))) {}
  std::uint64_t operator()(std::uint32_t bits) const {
    float weight = 0;
    std::memcpy(&weight, &bits, sizeof(weight));
    const auto whole = static_cast<std::int64_t>(static_cast<double>(weight) * scale_);
    return static_cast<std::uint64_t>(whole + (whole == 0 && bits != 0 ? 1 : 0));
  }

 private:
  double scale_;
};

/// Cells that are worked on at a time.
inline constexpr std::uint32_t kBlockCells = 256;

/// The masses of up to kBlockCells cells, which hold the bits of weights, and whether they are positive.
struct BlockMasses {
  std::uint64_t masses[kBlockCells];
  std::uint32_t positive[kBlockCells];

  void load(const std::uint32_t* cells, std::uint32_t count, IntegerWeight weight) {
    for (std::uint32_t i = 0; i < count; ++i) {
      masses[i] = weight(cells[i]);
      positive[i] = cells[i] != 0 ? 1 : 0;
    }
  }
  Tally tally(std::uint32_t count) const {
    Tally all;
    for (std::uint32_t i = 0; i < count; ++i) all.sum += masses[i];
    for (std::uint32_t i = 0; i < count; ++i) all.positive += positive[i];
    return all;
  }
  /// Each cell's becomes that of the cells before it, beginning with `before`, which becomes that of all.
  void add_up(std::uint32_t count, Tally& before) {
    Tally sum = before;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Tally cell{masses[i], positive[i]};
      masses[i] = sum.sum;
      positive[i] = sum.positive;
      sum = {sum.sum + cell.sum, sum.positive + cell.positive};
    }
    before = sum;
  }
};

/// BoundScale::lower_bound of the tallies before each cell, without branches.
inline void write_bounds_of(const BlockMasses& before, std::uint32_t count, Tally all, std::uint32_t* lower) {
  const std::uint32_t share = sampling::kEmptyTail - all.positive;
  const double factor =
      all.sum > 0 ? static_cast<double>(share) / static_cast<double>(static_cast<std::int64_t>(all.sum))
                  : 0.0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const double exact = static_cast<double>(static_cast<std::int64_t>(before.masses[i])) * factor;
    const auto of_share =
        static_cast<std::uint32_t>(std::min(static_cast<std::int64_t>(exact), std::int64_t{share}));
    const std::uint32_t tail = before.positive[i] == all.positive ? sampling::kEmptyTail : 0;
    lower[i] = (before.positive[i] + of_share) | tail;
  }
}

template <class Visit>
void for_each_block(std::uint32_t count, const Visit& visit) {
  for (std::uint32_t first = 0; first < count; first += kBlockCells)
    visit(first, std::min(kBlockCells, count - first));
}

/// Adds the masses of cells, which hold the bits of weights, to `all`.
inline void tally_masses(const std::uint32_t* cells, std::uint32_t count, const IntegerWeight& weight,
                         Tally& all) {
  run_vectorised([&] {
    BlockMasses block;
    for_each_block(count, [&](std::uint32_t first, std::uint32_t size) {
      block.load(cells + first, size, weight);
      const Tally of_block = block.tally(size);
      all = {all.sum + of_block.sum, all.positive + of_block.positive};
    });
  });
}

/// Turns the bits of weights into lower bounds, in their place. `before` is of the row's cells before these,
/// then of these too; `all` of the whole row.
inline void write_row_bounds(std::uint32_t* cells, std::uint32_t count, const IntegerWeight& weight,
                             const Tally& all, Tally& before) {
  run_vectorised([&] {
    BlockMasses block;
    for_each_block(count, [&](std::uint32_t first, std::uint32_t size) {
      block.load(cells + first, size, weight);
      block.add_up(size, before);
      write_bounds_of(block, size, all, cells + first);
    });
  });
}

}  // namespace cumulus::sampling_table
