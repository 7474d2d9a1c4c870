#pragma once

// How a sampling table finds the cell of a point, by each of its methods. cumulus/sampling.h is the
// header to include. C++17, host and CUDA device, no dependency.

#include <cstddef>
#include <cstdint>

#include "cumulus/distribution.h"
#include "cumulus/fast_arithmetic.h"
#include "cumulus/host_device.h"
#include "cumulus/radix_forest.h"
#include "cumulus/table_format.h"

namespace cumulus::sampling::detail {

// --- guide tables ----------------------------------------------------------------------------------------

/// A cell's number as the i-th of a guide holds it; whatever that holds, a cell of the distribution.
CUMULUS_HOST_DEVICE inline std::uint32_t cell_number(const Distribution& cells, std::size_t i) {
  const std::uint32_t number = cells.count <= kNarrowCells ? element<std::uint16_t>(cells.guide, i)
                                                           : element<std::uint32_t>(cells.guide, i);
  return smaller(number, cells.count - 1);
}

/// kCutpointBinary, kCutpointLinear: the cells between two guide entries.
CUMULUS_HOST_DEVICE inline CellRange cutpoint_range(const Distribution& cells, std::uint32_t x) {
  const std::uint32_t g = guide_cell(cells.guide_size, x);
  const std::uint32_t first = cell_number(cells, g);
  return {first, g + 1 < cells.guide_size ? cell_number(cells, g + 1) : cells.count - 1};
}

/// kBalancedForest: the cells that overlap the guide cell, exactly.
CUMULUS_HOST_DEVICE inline CellRange overlapping_range(const Distribution& cells, std::uint32_t x) {
  const std::size_t g = guide_cell(cells.guide_size, x);
  return {cell_number(cells, 2 * g), cell_number(cells, 2 * g + 1)};
}

// --- the tree of four children a node --------------------------------------------------------------------

/// Where level t (1 to levels - 1) of a kQuaternaryTree begins; it has 4^t bounds.
CUMULUS_HOST_DEVICE constexpr std::uint32_t quaternary_offset(std::uint32_t level) {
  return ((std::uint32_t{1} << 2 * level) - 4) / 3;
}

CUMULUS_HOST_DEVICE inline std::uint32_t find_in_quaternary_tree(const Distribution& cells, std::uint32_t x) {
  const std::uint32_t key = search_key(x);
  const std::uint32_t levels = quaternary_levels(cells.count);
  std::uint32_t first = 0;
  for (std::uint32_t level = 1; level < levels; ++level) {
    const auto* bounds =
        reinterpret_cast<const std::uint32_t*>(cells.nodes) + quaternary_offset(level) + first;
    first += (bounds[1] <= key ? 1 : 0) + (bounds[2] <= key ? 1 : 0) + (bounds[3] <= key ? 1 : 0);
    first *= 4;
  }
  first = smaller(first, cells.count - 1);
  return walk_to_cell(cells.lower, first, smaller(first + 3, cells.count - 1), x);
}

// --- the alias table -------------------------------------------------------------------------------------

/// Column k of n holds the x with floor(x n / 2^32) = k: those below `split` are cell k's, the others
/// `alias`'s.
struct AliasEntry {
  std::uint32_t split;
  std::uint32_t alias;
};

CUMULUS_HOST_DEVICE inline Located locate_by_alias(const Distribution& cells, std::uint32_t x) {
  // In units of 2^-32 / n a column is 2^32 long, wherever it begins.
  const std::uint32_t column = guide_cell(cells.count, x);
  const std::uint32_t place = x * cells.count;
  const auto entry = element<AliasEntry>(cells.nodes, column);
  const std::uint32_t split = entry.split * cells.count;
  const float half_unit = 0.5F * static_cast<float>(cells.count);
  const bool own = x < entry.split;
  const std::uint32_t index = own ? column : smaller(entry.alias, cells.count - 1);
  const float inverse = reciprocal(float_of_mass(own ? split : kWholeMass - split));
  // The middle of a column's last x may lie after its end.
  const float behind = float_of_mass((own ? split : kWholeMass) - place) - half_unit;
  return {cell_at(cells.lower, cells.count, index), share_of(own ? place : place - split, half_unit, inverse),
          share_of(0, behind > 0.0F ? behind : 0.5F, inverse)};
}

// --- all of them -----------------------------------------------------------------------------------------

/// The number of x's cell, by a method that is neither a radix forest nor kAlias.
CUMULUS_HOST_DEVICE inline std::uint32_t find(Method method, const Distribution& cells, std::uint32_t x) {
  switch (method) {
    case Method::kQuaternaryTree:
      return find_in_quaternary_tree(cells, x);
    case Method::kLinearSearch:
      return walk_to_cell(cells.lower, 0, cells.count - 1, x);
    case Method::kCutpointLinear: {
      const CellRange range = cutpoint_range(cells, x);
      return walk_to_cell(cells.lower, range.first, range.last, x);
    }
    case Method::kCutpointBinary: {
      const CellRange range = cutpoint_range(cells, x);
      return find_cell(cells.lower, range.first, range.last, x);
    }
    case Method::kBalancedForest: {
      const CellRange range = overlapping_range(cells, x);
      return find_cell(cells.lower, range.first, range.last, x);
    }
    default:
      return find_cell(cells.lower, 0, cells.count - 1, x);
  }
}

/// The cell of x by a method other than kAlias.
CUMULUS_HOST_DEVICE inline Cell cell_of_point(Method method, const Distribution& cells, std::uint32_t x) {
  if (is_radix_forest(method)) {
    return cell_in_forest(method, cells, x);
  }
  const std::uint32_t index = find(method, cells, x);
  return found_between(index, cells.lower[index], bound_at(cells, index + 1));
}

CUMULUS_HOST_DEVICE inline Located locate(Method method, const Distribution& cells, std::uint32_t x) {
  if (cells.count == 1) {
    constexpr float kUnit = 1.0F / 4294967296.0F;
    return {{0, 0, kWholeMass}, share_of(x, 0.5F, kUnit), share_of(~x, 0.5F, kUnit)};
  }
  if (method == Method::kAlias) return locate_by_alias(cells, x);
  const Cell cell = cell_of_point(method, cells, x);
  const std::uint32_t before = x - cell.lower;
  const std::uint32_t behind = static_cast<std::uint32_t>(cell.mass) - 1 - before;
  const float inverse = reciprocal(float_of_mass(cell.mass));
  return {cell, share_of(before, 0.5F, inverse), share_of(behind, 0.5F, inverse)};
}

}  // namespace cumulus::sampling::detail
