#pragma once

// From the weights of a map to the vertices and cells of a bilinear table, as both backends do it.

#include <cfloat>
#include <cstdint>
#include <cstring>

#include "cumulus/sampling.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/sampling_table/format/records.h"
#include "kernels/sampling_table/weights/weights.h"

namespace cumulus::sampling_table {

/// The weight of a cell, where its lower bound will be: a weight like others to the build of the rows, which
/// reads each before it writes the bound in its place.
struct CellWeight {
  std::uint32_t bits;

  CUMULUS_HOST_DEVICE operator float() const {  // NOLINT(google-explicit-constructor): a number like others
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
};
static_assert(sizeof(CellWeight) == sizeof(std::uint32_t));

/// The nearest float, but positive where `value`, not negative, is.
CUMULUS_HOST_DEVICE inline float nearest_weight(double value) {
  const auto rounded = static_cast<float>(value);
  return value > 0.0 && rounded == 0.0F ? FLT_TRUE_MIN : rounded;
}

CUMULUS_HOST_DEVICE inline float mean_of(float a, float b) {
  return nearest_weight((static_cast<double>(a) + static_cast<double>(b)) * 0.5);
}

/// The vertices of a map of `height` x `width`: the texels' weights, surrounded by those on the map's edges.
/// There the texel next to the edge continues; but on the sphere, where the edge has another texel beyond it,
/// the mean of both stands (at the poles of a lat-long map, which touch all texels of a row, the texel's
/// own).
struct VertexRule {
  sampling::Projection projection;
  std::uint32_t height;
  std::uint32_t width;

  /// Of vertex (x, y), 0 to width + 1 and 0 to height + 1; `weight_at(x, y)` is the weight of a texel.
  template <class WeightAt>
  CUMULUS_HOST_DEVICE float value(std::uint32_t x, std::uint32_t y, const WeightAt& weight_at) const {
    const std::uint32_t column = nearest_texel(x, width);
    const std::uint32_t row = nearest_texel(y, height);
    const bool beside = x == 0 || x > width;
    const bool above_or_below = y == 0 || y > height;
    const float own = weight_at(column, row);
    const std::uint32_t far_column = width - 1 - column;
    const std::uint32_t far_row = height - 1 - row;
    if (projection == sampling::Projection::kLatLong && beside)
      return mean_of(own, weight_at(far_column, row));
    if (projection != sampling::Projection::kEqualArea || !(beside || above_or_below)) return own;
    if (beside && above_or_below) {  // the corners are one direction
      const double above =
          static_cast<double>(weight_at(0, 0)) + static_cast<double>(weight_at(width - 1, 0));
      const double below = static_cast<double>(weight_at(0, height - 1)) +
                           static_cast<double>(weight_at(width - 1, height - 1));
      return nearest_weight((above + below) * 0.25);
    }
    return beside ? mean_of(own, weight_at(column, far_row)) : mean_of(own, weight_at(far_column, row));
  }

 private:
  CUMULUS_HOST_DEVICE static std::uint32_t nearest_texel(std::uint32_t vertex, std::uint32_t count) {
    if (vertex == 0) return 0;
    return vertex > count ? count - 1 : vertex - 1;
  }
};

inline VertexRule vertex_rule(const sampling::TableHeader& header) {
  return {header.projection, header.height > 1 ? header.height - 1 : 1, header.width - 1};
}

/// Which vertices of which layer the row-th of all stored rows of vertices has.
struct VertexRow {
  std::uint32_t layer;
  std::uint32_t y;
};
CUMULUS_HOST_DEVICE inline VertexRow vertex_row(const sampling::TableHeader& header, std::uint32_t row) {
  const std::uint32_t rows = sampling::vertex_rows(header);
  return {row / rows, header.height == 1 ? 1 : row % rows};
}

/// The vertices at the edges of a row of cells, counted through all layers.
struct EdgeRows {
  const float* above;
  const float* below;
};
CUMULUS_HOST_DEVICE inline EdgeRows edge_rows(const sampling::TableHeader& header, const float* vertices,
                                              std::uint32_t row) {
  const std::size_t wide = std::size_t{header.width} + 1;
  const std::size_t first =
      std::size_t{row / header.height} * sampling::vertex_rows(header) + row % header.height;
  const float* above = vertices + first * wide;
  return {above, header.height == 1 ? above : above + wide};
}

/// Half of the outermost cells' size is missing.
CUMULUS_HOST_DEVICE inline float share_of_column(std::uint32_t x, std::uint32_t width) {
  return x == 0 || x + 1 == width ? 0.5F : 1.0F;
}

/// The weight of cell x of `width`, of the row between these vertices: their mean times the cell's extent.
CUMULUS_HOST_DEVICE inline CellWeight cell_weight(const float* above, const float* below, std::uint32_t x,
                                                  std::uint32_t width) {
  const double mean = sampling::detail::corners_of(above + x, below + x).mean();
  const float weight = nearest_weight(mean * static_cast<double>(share_of_column(x, width)));
  return {float_bits(weight)};
}

template <class T>
struct VerticesArguments {
  DeviceImage<const T> weights;  // of the map
  WeightRule rule;
  sampling::TableHeader header;
  VertexRule vertices;
  std::byte* table;
  const WeightAdjustment* adjustments;  // null: weights stay as they are
  BuildFindings* findings;

  CUMULUS_HOST_DEVICE float* first_vertex() const {
    return reinterpret_cast<float*>(table + header.vertices_offset);
  }
};

/// Writes the table's vertices, and the weights of its cells where their lower bounds will be.
template <class T>
void write_vertices_and_cells(CudaExecutor& executor, const VerticesArguments<T>& arguments);

}  // namespace cumulus::sampling_table
