#pragma once

// Draws from a sampling table and evaluates its density: what a renderer includes, and what
// Cumulus's own kernels call. C++17, host and CUDA device, no dependency. Do not compile it with
// fast-math where host and device must agree to the last bit.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cumulus/bilinear.h"
#include "cumulus/cell_search.h"
#include "cumulus/equal_area.h"
#include "cumulus/fast_arithmetic.h"
#include "cumulus/point_sequences.h"
#include "cumulus/table_view.h"

namespace cumulus::sampling {

/// One drawn point.
struct Sample {
  float u = 0;  ///< [0, 1), to the right.
  float v = 0;  ///< [0, 1), down.
  /// The cell that holds it. Of a constant table the texel: cell_of(u, width), cell_of(v, height). Of a
  /// bilinear one what lies between the centres of texels x - 1 and x, y - 1 and y.
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  float pdf = 0;  ///< The density with which it is drawn: per steradian, of kPlane per unit area.
  float direction[3] = {0, 0, 0};  ///< Unit vector; of kPlane zero.
};

namespace detail {

inline constexpr float kPi = 3.14159265358979F;

/// `ulps` floats further from 0, for positive x.
CUMULUS_HOST_DEVICE inline float step(float x, int ulps) {
  std::int32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  bits += ulps;
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}

}  // namespace detail

/// The unit vector of a lat-long position: (0, 1, 0) for v = 0; (0, 0, -1) for (0, 1/2); (1, 0, 0) for (1/4,
/// 1/2).
CUMULUS_HOST_DEVICE inline void direction_of(float u, float v, float direction[3]) {
  float ring = 0;
  float sine = 0;
  float cosine = 0;
  detail::sin_cos_pi(v, ring, direction[1]);
  detail::sin_cos_pi(2.0F * u, sine, cosine);
  direction[0] = ring * sine;
  direction[2] = -ring * cosine;
}

/// The lat-long position of a direction, which need not be of unit length.
CUMULUS_HOST_DEVICE inline void position_of(const float direction[3], float& u, float& v) {
  const float x = direction[0];
  const float y = direction[1];
  const float z = direction[2];
  const float turn = atan2f(x, -z) * (0.5F / detail::kPi);
  u = turn < 0.0F ? turn + 1.0F : turn;
  v = atan2f(sqrtf(x * x + z * z), y) * (1.0F / detail::kPi);
  if (u > detail::kBelowOne) u = detail::kBelowOne;
  if (v > detail::kBelowOne) v = detail::kBelowOne;
}

namespace detail {

/// A number of cells, and what a position takes of it.
struct Extent {
  std::uint32_t count;
  float cells;
  float inverse;

  CUMULUS_HOST_DEVICE explicit Extent(std::uint32_t number)
      : count(number), cells(static_cast<float>(number)), inverse(reciprocal(cells)) {}
};

/// (index + fraction) / count, moved by an ulp where rounding has carried it into another cell.
CUMULUS_HOST_DEVICE inline float position_in(std::uint32_t index, float fraction, const Extent& extent) {
  const std::uint32_t count = extent.count;
  const float cells = extent.cells;
  const auto begin = static_cast<float>(index);
  float position = quotient(begin + fraction, cells, extent.inverse);
  const float place = position * cells;
  if (place >= begin && place < begin + 1.0F) return position;  // nearly always; cell_of agrees
  for (int attempt = 0; attempt < 2; ++attempt) {
    // cell_of, of what is not below 0
    const std::uint32_t cell =
        position < 1.0F ? smaller(static_cast<std::uint32_t>(position * cells), count - 1) : count;
    if (cell == index) break;
    position = step(position, cell < index ? 1 : -1);
  }
  return position;
}

/// A row of a lat-long table as seen from its nearer pole: there `s` = sin^2(theta / 2), which grows
/// evenly with solid angle, and is small without cancellation.
struct RowBand {
  bool south = false;
  float begin = 0;   ///< s at the edge towards the pole.
  float extent = 0;  ///< s at the other edge, less begin.
};

CUMULUS_HOST_DEVICE inline RowBand row_band(std::uint32_t y, std::uint32_t height) {
  RowBand band;
  band.south = y >= height - y;
  const auto rank = static_cast<float>(band.south ? height - 1 - y : y);
  const float twice = 2.0F * static_cast<float>(height);
  const float edge = sin_pi(rank / twice);
  band.begin = edge * edge;
  band.extent = sin_pi((2.0F * rank + 1.0F) / twice) * sin_pi(1.0F / twice);
  return band;
}

/// The band of a row, which kLatLong tables have.
struct BandOfRow {
  Projection projection;
  std::uint32_t height;

  CUMULUS_HOST_DEVICE RowBand operator()(std::uint32_t y) const {
    return projection == Projection::kLatLong ? row_band(y, height) : RowBand{};
  }
};

/// A cell's part of its distribution.
CUMULUS_HOST_DEVICE inline float share_of_all(std::uint64_t mass) {
  return float_of_mass(mass) * (1.0F / 4294967296.0F);
}

/// What a column's share of a row's mass is multiplied with for its density: the row's probability times the
/// reciprocal of a texel's area.
CUMULUS_HOST_DEVICE inline float row_density(const TableHeader& header, const RowBand& band,
                                             std::uint64_t row_mass) {
  const float row = share_of_all(row_mass) * static_cast<float>(header.width);
  if (header.projection == Projection::kLatLong) return quotient(row, 4.0F * kPi * band.extent);
  const float per_area = row * static_cast<float>(header.height);
  return header.projection == Projection::kPlane ? per_area : quotient(per_area, 4.0F * kPi);
}

/// asin(sqrt(s)) - asin(sqrt(begin)), where s is `rise` more than begin, without cancellation.
CUMULUS_HOST_DEVICE inline float angle_of_rise(std::uint32_t height, float begin, float rise, float s) {
  constexpr std::uint32_t kManyRows = 16;
  if (height < kManyRows) return asinf(rise / (sqrtf(s * (1.0F - begin)) + sqrtf(begin * (1.0F - s))));
  // At most pi / 32, of which three terms of Taylor's series are enough; the division by `height` leaves
  // nothing of a few ulps.
  const float sine = rough_quotient(rise, rough_root(s * (1.0F - begin)) + rough_root(begin * (1.0F - s)));
  const float square = sine * sine;
  return sine + sine * square * (1.0F / 6.0F + square * (3.0F / 40.0F));
}

/// v and the direction for a point that lies `fraction` of the row's solid angle away from the edge towards
/// the nearer pole.
CUMULUS_HOST_DEVICE inline void place_on_sphere(const Extent& height, const RowBand& band, float fraction,
                                                Sample& drawn) {
  const float rise = fraction * band.extent;
  const float s = band.begin + rise;
  const float half_angle = angle_of_rise(height.count, band.begin, rise, s);
  float offset = half_angle * (2.0F / kPi) * height.cells;
  if (!(offset < kBelowOne)) offset = kBelowOne;
  drawn.v = position_in(drawn.y, band.south ? 1.0F - offset : offset, height);

  const float ring = 2.0F * rough_root(s * (1.0F - s));
  float sine = 0;
  float cosine = 0;
  sin_cos_pi(2.0F * drawn.u, sine, cosine);
  drawn.direction[0] = ring * sine;
  drawn.direction[1] = band.south ? 2.0F * s - 1.0F : 1.0F - 2.0F * s;
  drawn.direction[2] = -ring * cosine;
}

/// A row, and what a sample needs to know of it.
struct PlaceInRow {
  std::uint32_t index = 0;
  /// Where in the row's mass the point lies, in (0, 1); of kLatLong from the edge towards the nearer pole.
  float fraction = 0;
  float density = 0;  ///< row_density
  RowBand band;
};

/// Finds rows by the table's marginal. `band_at(y)` is the band of a row: who draws many may have it near.
template <class Locate, class BandAt>
struct RowSearch {
  Locate locate;
  Distribution marginal;
  BandAt band_at;

  CUMULUS_HOST_DEVICE PlaceInRow operator()(const TableHeader& header, std::uint32_t x) const {
    const Located row = locate(marginal, x);
    RowBand band = band_at(row.cell.index);
    if (marginal.count == 1 && header.projection == Projection::kLatLong) {
      band.south = row.rest < row.fraction;  // both poles are this row's
    }
    return {row.cell.index, band.south ? row.rest : row.fraction, row_density(header, band, row.cell.mass),
            band};
  }
};

/// A column of a row.
struct PlaceInColumn {
  std::uint32_t index = 0;
  float fraction = 0;  ///< Where in the column's mass the point lies, in (0, 1).
  float share = 0;     ///< Of the row's mass.
};

/// Finds columns by the table's rows.
template <class Locate>
struct ColumnSearch {
  Locate locate;
  Rows rows;

  CUMULUS_HOST_DEVICE PlaceInColumn operator()(std::uint32_t y, std::uint32_t x) const {
    const Located column = locate(rows[y], x);
    return {column.cell.index, column.fraction, share_of_all(column.cell.mass)};
  }
};

/// Of a table.
struct Extents {
  Extent width;
  Extent height;
};

/// `row_of(header, x)` is a point's PlaceInRow, `column_of(y, x)` its PlaceInColumn of row y.
template <class RowOf, class ColumnOf>
CUMULUS_HOST_DEVICE Sample sample_constant(const TableHeader& header, const Extents& extents,
                                           const RowOf& row_of, const ColumnOf& column_of, std::uint32_t x0,
                                           std::uint32_t x1) {
  Sample drawn;
  const PlaceInRow row = row_of(header, x1);
  drawn.y = row.index;
  const PlaceInColumn column = column_of(drawn.y, x0);
  drawn.x = column.index;
  drawn.pdf = row.density * column.share;
  drawn.u = position_in(drawn.x, column.fraction, extents.width);
  if (header.projection == Projection::kLatLong) {
    place_on_sphere(extents.height, row.band, row.fraction, drawn);
    return drawn;
  }
  drawn.v = position_in(drawn.y, row.fraction, extents.height);
  if (header.projection == Projection::kEqualArea) equal_area_direction(drawn.u, drawn.v, drawn.direction);
  return drawn;
}

}  // namespace detail

// Of tables that are known to be constant, or bilinear: what `sample` and `pdf` below choose between.

CUMULUS_HOST_DEVICE inline Sample sample_constant(const TableView& table, std::uint32_t x0,
                                                  std::uint32_t x1) {
  const detail::ByMethod locate{table.header.method};
  const detail::RowSearch<detail::ByMethod, detail::BandOfRow> row_of{
      locate, detail::marginal(table), {table.header.projection, table.header.height}};
  const detail::ColumnSearch<detail::ByMethod> column_of{locate, detail::rows_of(table, locate.method)};
  const detail::Extents extents{detail::Extent(table.header.width), detail::Extent(table.header.height)};
  return detail::sample_constant(table.header, extents, row_of, column_of, x0, x1);
}

CUMULUS_HOST_DEVICE inline float pdf_constant(const TableView& table, float u, float v) {
  const TableHeader& header = table.header;
  const std::uint32_t y = cell_of(v, header.height);
  const std::uint32_t x = cell_of(u, header.width);
  const detail::Cell row = detail::cell_at(detail::marginal(table).lower, header.height, y);
  const detail::Cell column = detail::cell_at(detail::row(table, y).lower, header.width, x);
  const detail::BandOfRow band_at{header.projection, header.height};
  return detail::row_density(header, band_at(y), row.mass) * detail::share_of_all(column.mass);
}

namespace detail {

/// One cell of a bilinear table.
struct BilinearCell {
  CellAxis columns;
  CellAxis rows;
  Cell row;
  Cell column;
  Corners corners;
};

CUMULUS_HOST_DEVICE inline BilinearCell bilinear_cell(const TableView& table, const Cell& row,
                                                      const Cell& column) {
  const TableHeader& header = table.header;
  const std::size_t wide = static_cast<std::size_t>(header.width) + 1;
  const std::size_t first = static_cast<std::size_t>(table.layer) * vertex_rows(header) + row.index;
  const auto* above = reinterpret_cast<const float*>(table.data + header.vertices_offset) + first * wide;
  const float* below = header.height == 1 ? above : above + wide;
  return {
      {header.width}, {header.height}, row, column, corners_of(above + column.index, below + column.index)};
}

/// The density where these shares of the cell lie to the left and above.
CUMULUS_HOST_DEVICE inline float bilinear_density(Projection projection, const BilinearCell& cell,
                                                  double across, double down) {
  constexpr double kSphere = 4.0 * 3.14159265358979323846;
  const double mass = static_cast<double>(cell.row.mass) * static_cast<double>(cell.column.mass);
  const double wide = static_cast<double>(cell.columns.extent(cell.column.index)) / cell.columns.units();
  const double high = projection == Projection::kLatLong
                          ? PolarBand(cell.rows, cell.row.index).extent()
                          : static_cast<double>(cell.rows.extent(cell.row.index)) / cell.rows.units();
  const double size = (projection == Projection::kPlane ? 1.0 : kSphere) * wide * high;
  if (!(mass > 0.0)) return 0.0F;
  const double unit = 1.0 / (4294967296.0 * 4294967296.0);
  return static_cast<float>(mass * unit / size * (cell.corners.at(across, down) / cell.corners.mean()));
}

/// Which share of its cell lies above v.
CUMULUS_HOST_DEVICE inline double share_above(Projection projection, const BilinearCell& cell, float v) {
  return projection == Projection::kLatLong ? PolarBand(cell.rows, cell.row.index).share_above(v)
                                            : cell.rows.share_before(cell.row.index, static_cast<double>(v));
}

CUMULUS_HOST_DEVICE inline float row_position(Projection projection, const BilinearCell& cell, double down) {
  double share = down;
  if (projection == Projection::kLatLong) {
    share = cell.rows.share_before(cell.row.index, PolarBand(cell.rows, cell.row.index).position_of(down));
  }
  return cell.rows.position_of(cell.row.index, share);
}

}  // namespace detail

CUMULUS_HOST_DEVICE inline float pdf_bilinear(const TableView& table, float u, float v) {
  const TableHeader& header = table.header;
  const detail::CellAxis columns{header.width};
  const std::uint32_t y = detail::CellAxis{header.height}.cell_of(static_cast<double>(v));
  const std::uint32_t x = columns.cell_of(static_cast<double>(u));
  const detail::BilinearCell cell =
      detail::bilinear_cell(table, detail::cell_at(detail::marginal(table).lower, header.height, y),
                            detail::cell_at(detail::row(table, y).lower, header.width, x));
  return detail::bilinear_density(header.projection, cell, columns.share_before(x, static_cast<double>(u)),
                                  detail::share_above(header.projection, cell, v));
}

CUMULUS_HOST_DEVICE inline Sample sample_bilinear(const TableView& table, std::uint32_t x0,
                                                  std::uint32_t x1) {
  const TableHeader& header = table.header;
  const detail::Located row = detail::locate(header.method, detail::marginal(table), x1);
  const detail::Located column = detail::locate(header.method, detail::row(table, row.cell.index), x0);
  const detail::BilinearCell cell = detail::bilinear_cell(table, row.cell, column.cell);
  const detail::Corners& corners = cell.corners;
  const double down =
      detail::invert_linear(corners.top_left + corners.top_right, corners.bottom_left + corners.bottom_right,
                            static_cast<double>(row.fraction));
  const double across =
      detail::invert_linear(corners.left(down), corners.right(down), static_cast<double>(column.fraction));
  Sample drawn;
  drawn.x = column.cell.index;
  drawn.y = row.cell.index;
  drawn.u = cell.columns.position_of(drawn.x, across);
  drawn.v = detail::row_position(header.projection, cell, down);
  // Of the position that has been rounded to float, so that it is what `pdf` gives there.
  drawn.pdf = detail::bilinear_density(header.projection, cell,
                                       cell.columns.share_before(drawn.x, static_cast<double>(drawn.u)),
                                       detail::share_above(header.projection, cell, drawn.v));
  if (header.projection == Projection::kLatLong) direction_of(drawn.u, drawn.v, drawn.direction);
  if (header.projection == Projection::kEqualArea) equal_area_direction(drawn.u, drawn.v, drawn.direction);
  return drawn;
}

/// Maps a point of the unit square, in fixed point, to the table's density. x0 chooses the column, x1 the
/// row; by any method but kAlias monotonically, so that low-discrepancy points keep their evenness. Within
/// a cell the density is constant, or bilinear: in solid angle, of kPlane in area.
CUMULUS_HOST_DEVICE inline Sample sample(const TableView& table, std::uint32_t x0, std::uint32_t x1) {
  return table.header.interpolation == Interpolation::kBilinear ? sample_bilinear(table, x0, x1)
                                                                : sample_constant(table, x0, x1);
}

/// Likewise of floats in [0, 1), by fixed_point(): as integers they would all be 0.
template <class T, class = std::enable_if_t<std::is_floating_point_v<T>>>
CUMULUS_HOST_DEVICE inline Sample sample(const TableView& table, T x0, T x1) {
  return sample(table, fixed_point(static_cast<float>(x0)), fixed_point(static_cast<float>(x1)));
}

/// The density with which `sample` draws points at (u, v); positions outside [0, 1) count as the nearest
/// inside.
CUMULUS_HOST_DEVICE inline float pdf(const TableView& table, float u, float v) {
  return table.header.interpolation == Interpolation::kBilinear ? pdf_bilinear(table, u, v)
                                                                : pdf_constant(table, u, v);
}

/// The same for a direction, of any length; tables of the sphere only.
CUMULUS_HOST_DEVICE inline float pdf(const TableView& table, const float direction[3]) {
  float u = 0;
  float v = 0;
  if (table.header.projection == Projection::kEqualArea) {
    equal_area_position(direction, u, v);
  } else {
    position_of(direction, u, v);
  }
  return pdf(table, u, v);
}

}  // namespace cumulus::sampling
