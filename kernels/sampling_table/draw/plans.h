#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "cumulus/sampling.h"

// The ways to draw samples from a table on a GPU; none takes scratch memory.

namespace cumulus::sampling_table {

/// A thread a sample of a bilinear table.
struct BilinearPlan {};

/// A thread a sample of a constant table, which stays in global memory.
struct GlobalTablePlan {};

// Many samples a thread, from what each block has of the table in its shared memory.

/// What a block has in shared memory of a distribution's guide.
struct RefinedGuideShape {
  std::uint32_t cells_each = 0;  ///< Guide cells to each of the distribution's.
  bool bands = false;            ///< Of rows: their bands are there, too.
};

/// Of a map by a monotone method: a refined guide of the rows, and what else a sample needs of its row.
struct ReadyRowsPlan {
  std::size_t shared_bytes;
};
/// The same of more rows: a refined guide of them.
struct RefinedRowsPlan {
  RefinedGuideShape guide;
  std::size_t shared_bytes;
};
/// Of a single row: nothing.
struct SingleRowPlan {};
/// Of a single row by a monotone method: a refined guide of its columns, and what a sample needs of its own.
struct ReadyColumnsPlan {
  std::size_t shared_bytes;
};
/// A copy of an alias table over rows, and of their lower bounds.
struct AliasRowsPlan {
  std::size_t shared_bytes;
};

using DrawPlan = std::variant<BilinearPlan, GlobalTablePlan, ReadyRowsPlan, RefinedRowsPlan, SingleRowPlan,
                              ReadyColumnsPlan, AliasRowsPlan>;

/// Of more rows than are made ready, the best first.
inline constexpr RefinedGuideShape kRefinedGuides[] = {{2, true}, {4, false}, {2, false}, {1, false}};

/// Guide cells to each of the distribution's where all that a sample needs is ready.
inline constexpr std::uint32_t kRefinement = 4;

/// Shared memory of a refined guide over `count` cells, their bounds included.
CUMULUS_HOST_DEVICE constexpr std::size_t refined_guide_bytes(std::uint32_t count, std::uint32_t cells_each) {
  return (std::size_t{count} + 4) * sizeof(std::uint32_t) +
         (std::size_t{count} * cells_each + 2) * sizeof(std::uint16_t);
}
/// Four floats a row, and where its mass begins to be counted from.
CUMULUS_HOST_DEVICE constexpr std::size_t ready_row_bytes(std::uint32_t rows) {
  return (4 * sizeof(float) + sizeof(std::uint32_t)) * rows + refined_guide_bytes(rows, kRefinement);
}
CUMULUS_HOST_DEVICE constexpr std::size_t refined_row_bytes(std::uint32_t rows,
                                                            const RefinedGuideShape& guide) {
  return (guide.bands ? 2 * sizeof(float) * rows : 0) + refined_guide_bytes(rows, guide.cells_each);
}
/// Two floats a column.
CUMULUS_HOST_DEVICE constexpr std::size_t ready_column_bytes(std::uint32_t columns) {
  return 2 * sizeof(float) * columns + refined_guide_bytes(columns, kRefinement);
}
/// Split, alias and lower bound.
CUMULUS_HOST_DEVICE constexpr std::size_t alias_row_bytes(std::uint32_t rows) {
  return 3 * sizeof(std::uint32_t) * rows;
}

/// Static shared memory of a block of so many threads, at most: directions are staged there.
constexpr std::size_t staged_bytes(bool directions, int threads) {
  constexpr std::size_t kAlignment = 128;
  return directions ? 3 * static_cast<std::size_t>(threads) * sizeof(float) + kAlignment : kAlignment;
}

}  // namespace cumulus::sampling_table
