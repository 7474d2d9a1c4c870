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

namespace cumulus::sampling {

/// Which of `count` equal parts of [0, 1) holds `position`; outside of it the nearest; of NaN the first.
CUMULUS_HOST_DEVICE inline std::uint32_t cell_of(float position, std::uint32_t count) {
  if (!(position > 0.0F)) return 0;
  if (position >= 1.0F) return count - 1;
  return detail::smaller(static_cast<std::uint32_t>(position * static_cast<float>(count)), count - 1);
}

}  // namespace cumulus::sampling

namespace cumulus::sampling::detail {

// --- guide tables ----------------------------------------------------------------------------------------

/// A cell's number as the i-th of a guide holds it; whatever that holds, a cell of the distribution.
CUMULUS_HOST_DEVICE inline std::uint32_t cell_number(const Distribution& cells, std::size_t i) {
  const std::uint32_t number = cells.count <= kNarrowCells ? element<std::uint16_t>(cells.guide, i)
                                                           : element<std::uint32_t>(cells.guide, i);
  return smaller(number, cells.count - 1);
}

/// kCutpointBinary: the cells between two guide entries.
CUMULUS_HOST_DEVICE inline CellRange cutpoint_range(const Distribution& cells, std::uint32_t x) {
  const std::uint32_t g = guide_cell(cells.guide_size, x);
  const std::uint32_t first = cell_number(cells, g);
  return {first, g + 1 < cells.guide_size ? cell_number(cells, g + 1) : cells.count - 1};
}

/// kBalancedForest: the cells between those that hold the smallest x of a guide cell and of the one behind
/// it.
CUMULUS_HOST_DEVICE inline CellRange overlapping_range(const Distribution& cells, std::uint32_t x) {
  const std::uint32_t g = guide_cell(cells.guide_size, x);
  if (cells.count <= kNarrowCells) {  // both numbers by one load
    const auto pair = element<std::uint32_t>(cells.guide, g);
    return {smaller(pair & 0xFFFFu, cells.count - 1), smaller(pair >> 16, cells.count - 1)};
  }
  const auto pair = element<std::uint64_t>(cells.guide, g);
  return {smaller(static_cast<std::uint32_t>(pair), cells.count - 1),
          smaller(static_cast<std::uint32_t>(pair >> 32), cells.count - 1)};
}

// --- the alias table -------------------------------------------------------------------------------------

/// Column k of n holds the x with floor(x n / 2^32) = k: those below `split` are cell k's, the others
/// `alias`'s.
struct AliasEntry {
  std::uint32_t split;
  std::uint32_t alias;
};

CUMULUS_HOST_DEVICE inline Located locate_by_alias(const Distribution& cells, std::uint32_t x) {
  const std::uint32_t column = guide_cell(cells.count, x);
  const auto words = element<std::uint64_t>(cells.nodes, column);  // both by one load
  const AliasEntry entry{static_cast<std::uint32_t>(words), static_cast<std::uint32_t>(words >> 32)};
  // In units of 2^-32 / n a column is 2^32 long, wherever it begins.
  const std::uint32_t place = x * cells.count;
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

/// The cell of x by a method other than kAlias.
CUMULUS_HOST_DEVICE inline Cell cell_of_point(Method method, const Distribution& cells, std::uint32_t x) {
  switch (method) {
    case Method::kRadixForest:
      return cell_in_forest(cells, x);
    case Method::kCutpointBinary:
      return cell_in_range(cells, cutpoint_range(cells, x), x);
    case Method::kBalancedForest:
      return cell_in_range(cells, overlapping_range(cells, x), x);
    default:
      return cell_in_range(cells, {0, cells.count - 1}, x);
  }
}

/// Where in its cell x is.
CUMULUS_HOST_DEVICE inline Located locate_in_cell(const Cell& cell, std::uint32_t x) {
  const std::uint32_t before = x - cell.lower;
  const std::uint32_t behind = static_cast<std::uint32_t>(cell.mass) - 1 - before;
  const float inverse = reciprocal(float_of_mass(cell.mass));
  return {cell, share_of(before, 0.5F, inverse), share_of(behind, 0.5F, inverse)};
}

/// Of a distribution of one cell.
CUMULUS_HOST_DEVICE inline Located locate_in_one(std::uint32_t x) {
  constexpr float kUnit = 1.0F / 4294967296.0F;
  return {{0, 0, kWholeMass}, share_of(x, 0.5F, kUnit), share_of(~x, 0.5F, kUnit)};
}

CUMULUS_HOST_DEVICE inline Located locate(Method method, const Distribution& cells, std::uint32_t x) {
  if (cells.count == 1) return locate_in_one(x);
  if (method == Method::kAlias) return locate_by_alias(cells, x);
  return locate_in_cell(cell_of_point(method, cells, x), x);
}

/// Finds cells by a table's method.
struct ByMethod {
  Method method;

  CUMULUS_HOST_DEVICE Located operator()(const Distribution& cells, std::uint32_t x) const {
    return locate(method, cells, x);
  }
};

}  // namespace cumulus::sampling::detail
