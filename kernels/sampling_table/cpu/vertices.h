#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/parallel.h"
#include "kernels/sampling_table/bilinear/vertices.h"
#include "kernels/sampling_table/tuning.h"

namespace cumulus::sampling_table {

/// Calls body(row) for the rows of vertices of all layers, or of cells, in parallel.
template <class Body>
void for_rows(CpuExecutor& executor, std::int64_t rows, std::uint32_t width, const Body& body) {
  const std::int64_t grain = std::max<std::int64_t>(1, kTexelsPerTask / width);
  parallel_ranges(executor, rows, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) body(static_cast<std::uint32_t>(row));
  });
  executor.check_interrupt();
}

/// Writes the table's vertices, of `weight_at(layer, x, y)`, and the weights of its cells where their lower
/// bounds will be.
template <class WeightAt>
void write_vertices_and_cells(CpuExecutor& executor, const sampling::TableHeader& header,
                              HostSpan<std::byte> table, const WeightAt& weight_at) {
  const VertexRule rule = vertex_rule(header);
  auto* vertices = reinterpret_cast<float*>(table.data() + header.vertices_offset);
  for_rows(executor, std::int64_t{header.layers} * sampling::vertex_rows(header), header.width,
           [&](std::uint32_t row) {
             const VertexRow at = vertex_row(header, row);
             float* values = vertices + std::size_t{row} * (header.width + 1);
             const auto texel = [&](std::uint32_t x, std::uint32_t y) { return weight_at(at.layer, x, y); };
             for (std::uint32_t x = 0; x <= header.width; ++x) values[x] = rule.value(x, at.y, texel);
           });
  auto* cells = reinterpret_cast<CellWeight*>(table.data() + header.row_cdf_offset);
  for_rows(executor, std::int64_t{header.layers} * header.height, header.width, [&](std::uint32_t row) {
    const EdgeRows edges = edge_rows(header, vertices, row);
    CellWeight* weights = cells + std::size_t{row} * header.width;
    for (std::uint32_t x = 0; x < header.width; ++x)
      weights[x] = cell_weight(edges.above, edges.below, x, header.width);
  });
}

}  // namespace cumulus::sampling_table
