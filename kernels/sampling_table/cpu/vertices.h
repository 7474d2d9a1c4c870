#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/row_pieces.h"
#include "kernels/sampling_table/bilinear/vertices.h"
#include "kernels/sampling_table/tuning.h"

namespace cumulus::sampling_table {

/// Writes the table's vertices, of `weight_at(layer, x, y)`, and the weights of its cells where their lower
/// bounds will be.
template <class WeightAt>
void write_vertices_and_cells(CpuExecutor& executor, const sampling::TableHeader& header,
                              HostSpan<std::byte> table, const WeightAt& weight_at) {
  const VertexRule rule = vertex_rule(header);
  auto* vertices = reinterpret_cast<float*>(table.data() + header.vertices_offset);
  const auto write_vertices = [&](const RowPiece& piece) {
    const auto row = static_cast<std::uint32_t>(piece.row);
    const VertexRow at = vertex_row(header, row);
    float* values = vertices + std::size_t{row} * (header.width + 1);
    const auto texel = [&](std::uint32_t x, std::uint32_t y) { return weight_at(at.layer, x, y); };
    for (auto x = static_cast<std::uint32_t>(piece.first); x < piece.end; ++x)
      values[x] = rule.value(x, at.y, texel);
  };
  const std::int64_t layers = header.layers;
  parallel_row_pieces(executor, layers * sampling::vertex_rows(header), std::int64_t{header.width} + 1,
                      kTexelsPerTask, write_vertices);
  executor.check_interrupt();
  auto* cells = reinterpret_cast<CellWeight*>(table.data() + header.row_cdf_offset);
  const auto write_cells = [&](const RowPiece& piece) {
    const auto row = static_cast<std::uint32_t>(piece.row);
    const EdgeRows edges = edge_rows(header, vertices, row);
    CellWeight* weights = cells + std::size_t{row} * header.width;
    for (auto x = static_cast<std::uint32_t>(piece.first); x < piece.end; ++x)
      weights[x] = cell_weight(edges.above, edges.below, x, header.width);
  };
  parallel_row_pieces(executor, layers * header.height, header.width, kTexelsPerTask, write_cells);
  executor.check_interrupt();
}

}  // namespace cumulus::sampling_table
