#pragma once

#include <cstddef>
#include <cstdint>

#include "cumulus/sampling.h"

// Where a build puts the parts of a table.
namespace cumulus::sampling_table {

/// One distribution: its lower bounds, and where its guide and nodes go.
struct Target {
  sampling::Method method;
  std::uint32_t* lower;
  std::uint32_t count;
  std::uint32_t guide_size;
  std::byte* guide;
  std::byte* nodes;

  CUMULUS_HOST_DEVICE std::uint64_t guide_bytes() const {
    return guide_size * sampling::guide_entry_bytes(method, count);
  }
  CUMULUS_HOST_DEVICE std::uint64_t node_bytes() const { return sampling::node_bytes(method, count); }
};

/// All distributions over rows, or over columns: their shape, and where their sections begin.
struct Sections {
  std::uint32_t count;
  std::uint32_t guide_size;
  std::uint64_t cdf_offset;
  std::uint64_t guide_offset;
  std::uint64_t nodes_offset;
};

/// The i-th of the distributions.
CUMULUS_HOST_DEVICE inline Target target_at(std::byte* table, sampling::Method method, std::uint64_t i,
                                            const Sections& of) {
  Target target{method,   reinterpret_cast<std::uint32_t*>(table + of.cdf_offset) + i * of.count,
                of.count, of.guide_size,
                nullptr,  nullptr};
  target.guide = table + of.guide_offset + i * target.guide_bytes();
  target.nodes = table + of.nodes_offset + i * target.node_bytes();
  return target;
}

/// `row` counts through all layers.
CUMULUS_HOST_DEVICE inline Target row_target(const sampling::TableHeader& header, std::byte* table,
                                             std::uint32_t row) {
  return target_at(table, header.method, row,
                   {header.width, header.row_guide_size, header.row_cdf_offset, header.row_guide_offset,
                    header.row_nodes_offset});
}
CUMULUS_HOST_DEVICE inline Target marginal_target(const sampling::TableHeader& header, std::byte* table,
                                                  std::uint32_t layer) {
  return target_at(table, header.method, layer,
                   {header.height, header.marginal_guide_size, header.marginal_cdf_offset,
                    header.marginal_guide_offset, header.marginal_nodes_offset});
}

/// The rows of all layers, for a kernel that finds its own from their beginning.
struct RowTargets {
  Target first;
  std::uint64_t guide_step;  ///< Bytes from the guide of a row to that of the next.
  std::uint64_t node_step;

  CUMULUS_HOST_DEVICE Target operator[](std::uint32_t row) const {
    Target target = first;
    target.lower += std::uint64_t{row} * first.count;
    target.guide += row * guide_step;
    target.nodes += row * node_step;
    return target;
  }
};
inline RowTargets row_targets(const sampling::TableHeader& header, std::byte* table) {
  const Target first = row_target(header, table, 0);
  return {first, first.guide_bytes(), first.node_bytes()};
}

}  // namespace cumulus::sampling_table
