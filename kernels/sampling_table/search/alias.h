#pragma once

// The columns of an alias table, each a function of prefix sums, so that all can be found at once.

#include <cstdint>

#include "cumulus/sampling.h"
#include "kernels/core/div.h"

namespace cumulus::sampling_table {

using sampling::kEmptyTail;
using sampling::kWholeMass;
using sampling::detail::AliasEntry;

/// Where column k of `count` begins; its capacity is where the next begins, less that. Capacities differ by
/// one unit at most.
CUMULUS_HOST_DEVICE inline std::uint64_t column_begin(std::uint32_t k, std::uint32_t count) {
  return divide_up(std::uint64_t{k} << 32, count);
}

/// The alias table that comes of sweeping over light cells (of less mass than their column's capacity) and
/// heavy ones (of more), each in order: the heavy cell at hand fills up the columns of light cells, until
/// what it has left fits its own column, which the next heavy cell fills up. Who fills which column follows
/// from two prefix sums: the deficits of the light cells before, and the surpluses of the heavy ones. A light
/// cell's column is filled by the heavy cell whose range of surplus holds the deficit before it (L.
/// Hübschle-Schneider and P. Sanders, "Parallel Weighted Random Sampling", 2022, split the same sweep into
/// pieces that way).
///
/// `surplus_at(i)` is the surplus before cell i. The deficit before it follows: mass and capacity before it
/// differ by the two.
template <class LowerAt, class SurplusAt>
class AliasColumns {
 public:
  CUMULUS_HOST_DEVICE AliasColumns(const LowerAt& lower_at, const SurplusAt& surplus_at, std::uint32_t count)
      : lower_at_(lower_at), surplus_at_(surplus_at), count_(count) {}

  CUMULUS_HOST_DEVICE std::uint64_t capacity(std::uint32_t i) const {
    return column_begin(i + 1, count_) - column_begin(i, count_);
  }
  CUMULUS_HOST_DEVICE std::uint64_t mass(std::uint32_t i) const { return bound(i + 1) - bound(i); }
  CUMULUS_HOST_DEVICE bool heavy(std::uint32_t i) const { return mass(i) > capacity(i); }
  CUMULUS_HOST_DEVICE std::uint64_t surplus(std::uint32_t i) const {
    return heavy(i) ? mass(i) - capacity(i) : 0;
  }

  /// Of a light cell the heavy one that fills its column up; of a heavy one what its own column keeps.
  CUMULUS_HOST_DEVICE std::uint32_t first_pass(std::uint32_t i) const {
    return heavy(i) ? own_share(i) : filler(i);
  }

  /// The entry, from the result of first_pass and the first heavy cell after i (`count` where there is
  /// none).
  CUMULUS_HOST_DEVICE AliasEntry entry(std::uint32_t i, std::uint32_t first_pass,
                                       std::uint32_t next_heavy) const {
    const auto begin = static_cast<std::uint32_t>(column_begin(i, count_));
    const std::uint64_t own = heavy(i) ? first_pass : mass(i);
    if (own == capacity(i)) return {begin, i};
    return {begin + static_cast<std::uint32_t>(own), heavy(i) ? next_heavy : first_pass};
  }

 private:
  CUMULUS_HOST_DEVICE std::uint64_t bound(std::uint32_t i) const {
    const std::uint32_t lower = i < count_ ? lower_at_(i) : kEmptyTail;
    return lower == kEmptyTail ? kWholeMass : lower;
  }
  CUMULUS_HOST_DEVICE std::uint64_t deficit_before(std::uint32_t i) const {
    return surplus_at_(i) + column_begin(i, count_) - bound(i);
  }

  CUMULUS_HOST_DEVICE std::uint32_t filler(std::uint32_t i) const {
    const std::uint64_t deficit = deficit_before(i);
    std::uint32_t first = 0;
    std::uint32_t last = count_ - 1;
    while (first < last) {  // the last cell with a surplus before it of at most `deficit`
      const std::uint32_t middle = first + (last - first + 1) / 2;
      if (surplus_at_(middle) <= deficit) {
        first = middle;
      } else {
        last = middle - 1;
      }
    }
    return first;
  }

  CUMULUS_HOST_DEVICE std::uint32_t own_share(std::uint32_t i) const {
    const std::uint64_t surplus_after = surplus_at_(i) + mass(i) - capacity(i);
    std::uint32_t low = 0;
    std::uint32_t high = count_ - 1;
    // The first cell whose deficit before it uses this cell's surplus up; after the last cell all is used.
    if (deficit_before(high) < surplus_after) {
      const std::uint64_t deficit = heavy(high) ? 0 : capacity(high) - mass(high);
      return kept(i, deficit_before(high) + deficit - surplus_after);
    }
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (deficit_before(middle) >= surplus_after) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return kept(i, deficit_before(high) - surplus_after);
  }
  CUMULUS_HOST_DEVICE std::uint32_t kept(std::uint32_t i, std::uint64_t given) const {
    return static_cast<std::uint32_t>(capacity(i) - given);
  }

  LowerAt lower_at_;
  SurplusAt surplus_at_;
  std::uint32_t count_;
};

}  // namespace cumulus::sampling_table
