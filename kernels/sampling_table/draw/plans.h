#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "cumulus/sampling.h"

// The ways to draw samples from a table on a GPU; none takes scratch memory.

namespace cumulus::sampling_table {

/// Bytes of a block's shared memory for each part of a marginal.
struct MarginalBytes {
  std::uint32_t lower = 0;
  std::uint32_t guide = 0;
  std::uint32_t nodes = 0;
  std::uint32_t bands = 0;  ///< 0 where bands are computed.

  CUMULUS_HOST_DEVICE std::uint32_t all() const { return lower + guide + nodes + bands; }
};

/// A thread a sample of a bilinear table.
struct BilinearPlan {};

/// A thread a sample of a constant table, which stays in global memory.
struct GlobalTablePlan {};

/// Many samples a thread; each block has a copy of the marginal in shared memory.
struct SharedMarginalPlan {
  MarginalBytes bytes;
};

/// Many samples a thread; each block has a refined guide of the rows of a radix forest in shared memory.
struct RefinedRowsPlan {
  std::size_t shared_bytes;
};

/// The same of the columns of a single row.
struct RefinedColumnsPlan {
  std::size_t shared_bytes;
};

using DrawPlan =
    std::variant<BilinearPlan, GlobalTablePlan, SharedMarginalPlan, RefinedRowsPlan, RefinedColumnsPlan>;

/// A refined guide has four cells to each of the distribution's.
inline constexpr std::uint32_t kRefinement = 4;

/// Shared memory of a refined guide of `count` cells, with a value of `value_bytes` for each.
CUMULUS_HOST_DEVICE constexpr std::size_t refined_guide_bytes(std::uint32_t count, std::size_t value_bytes) {
  return std::size_t{count} * value_bytes + (std::size_t{count} + 4) * sizeof(std::uint32_t) +
         (std::size_t{count} * kRefinement + 2) * sizeof(std::uint16_t);
}
/// Of rows: four floats, and where each row's mass begins to be counted from.
CUMULUS_HOST_DEVICE constexpr std::size_t refined_row_bytes(std::uint32_t rows) {
  return sizeof(std::uint32_t) * rows + refined_guide_bytes(rows, 4 * sizeof(float));
}
/// Of columns: two floats.
CUMULUS_HOST_DEVICE constexpr std::size_t refined_column_bytes(std::uint32_t columns) {
  return refined_guide_bytes(columns, 2 * sizeof(float));
}

/// Static shared memory of a block of so many threads, at most: directions are staged there.
constexpr std::size_t staged_bytes(bool directions, int threads) {
  constexpr std::size_t kAlignment = 128;
  return directions ? 3 * static_cast<std::size_t>(threads) * sizeof(float) + kAlignment : kAlignment;
}

}  // namespace cumulus::sampling_table
