#pragma once

// A sampling table in memory, and where in it its distributions are. cumulus/sampling.h is the header to
// include. C++17, host and CUDA device, no dependency.

#include <cstddef>
#include <cstdint>

#include "cumulus/cell_search.h"
#include "cumulus/host_device.h"
#include "cumulus/table_format.h"

namespace cumulus::sampling {

/// A table whose header check_header has accepted. `data` is its first byte, aligned to 8 bytes, in
/// the memory of whoever samples (device memory in a kernel); `header` is a copy of its first 256.
/// Whatever the sections hold, no function here reads outside of them.
struct TableView {
  TableHeader header;
  const unsigned char* data = nullptr;
  std::uint32_t layer = 0;  ///< The one that is sampled, below header.layers.
};

namespace detail {

CUMULUS_HOST_DEVICE inline Distribution marginal(const TableView& table) {
  const TableHeader& header = table.header;
  const std::size_t layer = table.layer;
  Distribution cells;
  cells.lower =
      reinterpret_cast<const std::uint32_t*>(table.data + header.marginal_cdf_offset) + layer * header.height;
  cells.count = header.height;
  cells.quads = whole_quads(cells.lower, cells.count);
  cells.guide_size = header.marginal_guide_size;
  cells.guide = table.data + header.marginal_guide_offset +
                layer * header.marginal_guide_size * guide_entry_bytes(header.method, header.height);
  cells.nodes = table.data + header.marginal_nodes_offset + layer * node_bytes(header.method, header.height);
  return cells;
}

/// The distributions over a layer's rows, each as far after the one before, in bytes, as every other. Of no
/// row does any section take 2^32 bytes.
struct Rows {
  Distribution first;
  std::uint32_t lower_step = 0;
  std::uint32_t guide_step = 0;
  std::uint32_t node_step = 0;

  CUMULUS_HOST_DEVICE Distribution operator[](std::uint32_t y) const {
    Distribution cells = first;
    const auto* lower = reinterpret_cast<const unsigned char*>(first.lower);
    cells.lower = reinterpret_cast<const std::uint32_t*>(lower + static_cast<std::uint64_t>(y) * lower_step);
    cells.guide += static_cast<std::uint64_t>(y) * guide_step;
    cells.nodes += static_cast<std::uint64_t>(y) * node_step;
    return cells;
  }
};

/// `method` is the table's.
CUMULUS_HOST_DEVICE inline Rows rows_of(const TableView& table, Method method) {
  const TableHeader& header = table.header;
  Rows rows;
  rows.lower_step = static_cast<std::uint32_t>(header.width * sizeof(std::uint32_t));
  rows.guide_step =
      static_cast<std::uint32_t>(header.row_guide_size * guide_entry_bytes(method, header.width));
  rows.node_step = static_cast<std::uint32_t>(node_bytes(method, header.width));
  const std::size_t before = static_cast<std::size_t>(table.layer) * header.height;
  rows.first.lower =
      reinterpret_cast<const std::uint32_t*>(table.data + header.row_cdf_offset) + before * header.width;
  rows.first.count = header.width;
  rows.first.quads = whole_quads(rows.first.lower, header.width);
  rows.first.guide_size = header.row_guide_size;
  rows.first.guide = table.data + header.row_guide_offset + before * rows.guide_step;
  rows.first.nodes = table.data + header.row_nodes_offset + before * rows.node_step;
  return rows;
}

CUMULUS_HOST_DEVICE inline Distribution row(const TableView& table, std::uint32_t y) {
  return rows_of(table, table.header.method)[y];
}

}  // namespace detail

}  // namespace cumulus::sampling
