#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/div.h"
#include "kernels/sampling_table/rows/arguments.h"

// Tiled rows: many blocks a row, for single rows of millions of cells.

namespace cumulus::sampling_table {

/// Cells of a block.
inline constexpr std::uint32_t kTileCells = 4096;

/// Published by the block of a tile from one kernel to the next.
struct TileAggregate {
  std::uint64_t sum;       ///< Of the integer weights.
  std::uint32_t positive;  ///< How many of them are positive.
  std::uint32_t largest;   ///< Bits of the largest weight.
};

/// Rows of more than kNarrowCells cells are tiled.
constexpr bool is_tiled(const sampling::TableHeader& header) { return header.width > sampling::kNarrowCells; }

struct TiledPlan {
  std::uint32_t row_tiles;  ///< Of each row.
  std::size_t aggregates;   ///< Of all rows of all layers, in scratch memory.

  bool writes_guides() const { return false; }
};

constexpr TiledPlan tiled_plan(const sampling::TableHeader& header) {
  const std::uint32_t row_tiles = divide_up(header.width, kTileCells);
  return {row_tiles, std::size_t{header.layers} * header.height * row_tiles};
}

template <class T>
void build_rows(CudaExecutor& executor, const TiledPlan& plan, const RowsArguments<T>& arguments);

}  // namespace cumulus::sampling_table
