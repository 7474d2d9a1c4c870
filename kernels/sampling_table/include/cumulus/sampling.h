#pragma once

// Draws from a sampling table and evaluates its density: what a renderer includes, and what
// Cumulus's own kernels call. C++17, host and CUDA device, no dependency. Do not compile it with
// fast-math where host and device must agree to the last bit.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cumulus/equal_area.h"
#include "cumulus/point_sequences.h"
#include "cumulus/table_format.h"

namespace cumulus::sampling {

/// A table whose header check_header has accepted. `data` is its first byte, aligned to 4 bytes, in
/// the memory of whoever samples (device memory in a kernel); `header` is a copy of its first 256.
/// Whatever the sections hold, no function here reads outside of them.
struct TableView {
  TableHeader header;
  const unsigned char* data = nullptr;
};

/// One drawn point.
struct Sample {
  float u = 0;          ///< [0, 1), to the right.
  float v = 0;          ///< [0, 1), down.
  std::uint32_t x = 0;  ///< The texel that holds it: cell_of(u, width), cell_of(v, height).
  std::uint32_t y = 0;
  float pdf = 0;  ///< The density with which it is drawn: per steradian, of kPlane per unit area.
  float direction[3] = {0, 0, 0};  ///< Unit vector; of kPlane zero.
};

namespace detail {

inline constexpr float kPi = 3.14159265358979F;
inline constexpr float kBelowOne = 0.99999994F;  // the largest float below 1

struct Cell {
  std::uint32_t index = 0;
  std::uint32_t lower = 0;
  std::uint64_t mass = 0;  ///< In units of 2^-32.
};

CUMULUS_HOST_DEVICE inline const std::uint32_t* marginal_cdf(const TableView& table) {
  return reinterpret_cast<const std::uint32_t*>(table.data + table.header.marginal_cdf_offset);
}
CUMULUS_HOST_DEVICE inline const std::uint32_t* row_cdf(const TableView& table, std::uint32_t y) {
  return reinterpret_cast<const std::uint32_t*>(table.data + table.header.row_cdf_offset) +
         static_cast<std::size_t>(y) * table.header.width;
}
CUMULUS_HOST_DEVICE inline const std::uint16_t* marginal_guide(const TableView& table) {
  return reinterpret_cast<const std::uint16_t*>(table.data + table.header.marginal_guide_offset);
}
CUMULUS_HOST_DEVICE inline const std::uint16_t* row_guide(const TableView& table, std::uint32_t y) {
  return reinterpret_cast<const std::uint16_t*>(table.data + table.header.row_guide_offset) +
         static_cast<std::size_t>(y) * table.header.row_guide_size;
}

/// The last cell of [first, last] whose lower bound is at most x, or first.
CUMULUS_HOST_DEVICE inline std::uint32_t find_cell(const std::uint32_t* lower, std::uint32_t first,
                                                   std::uint32_t last, std::uint32_t x) {
  // No cell with mass begins at kEmptyTail: the last x belongs to the cell of the last but one.
  const std::uint32_t key = x == kEmptyTail ? kEmptyTail - 1 : x;
  while (first < last) {
    const std::uint32_t middle = first + (last - first + 1) / 2;
    if (lower[middle] <= key) {
      first = middle;
    } else {
      last = middle - 1;
    }
  }
  return first;
}

/// The cell with this stored lower bound, whose right neighbour's is `next` (kEmptyTail: there is none).
CUMULUS_HOST_DEVICE inline Cell cell_between(std::uint32_t index, std::uint32_t lower, std::uint32_t next) {
  const std::uint64_t end = next == kEmptyTail ? kWholeMass : next;
  return {index, lower, lower != kEmptyTail && end > lower ? end - lower : 0};
}

CUMULUS_HOST_DEVICE inline Cell cell_at(const std::uint32_t* lower, std::uint32_t count,
                                        std::uint32_t index) {
  return cell_between(index, lower[index], index + 1 < count ? lower[index + 1] : kEmptyTail);
}

CUMULUS_HOST_DEVICE inline std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }

CUMULUS_HOST_DEVICE inline Cell locate(const std::uint32_t* lower, std::uint32_t count,
                                       const std::uint16_t* guide, std::uint32_t guide_size,
                                       std::uint32_t x) {
  const auto entry = static_cast<std::uint32_t>(static_cast<std::uint64_t>(x) * guide_size >> 32);
  const std::uint32_t first = smaller(guide[entry], count - 1);
  const std::uint32_t last = entry + 1 < guide_size ? smaller(guide[entry + 1], count - 1) : count - 1;
  return cell_at(lower, count, find_cell(lower, first, last, x));
}

/// Where x lies within its cell, in (0, 1): the middle of its unit of mass.
CUMULUS_HOST_DEVICE inline float fraction_within(const Cell& cell, std::uint32_t x) {
  const float fraction = (static_cast<float>(x - cell.lower) + 0.5F) / static_cast<float>(cell.mass);
  return fraction < kBelowOne ? fraction : kBelowOne;
}

/// `ulps` floats further from 0, for positive x.
CUMULUS_HOST_DEVICE inline float step(float x, int ulps) {
  std::int32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  bits += ulps;
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}

/// sin(pi x) for x in [0, 2], with a small relative error also where x is small.
CUMULUS_HOST_DEVICE inline float sin_pi(float x) {
#if defined(__CUDA_ARCH__)
  return sinpif(x);
#else
  return static_cast<float>(std::sin(3.14159265358979323846 * static_cast<double>(x)));
#endif
}

CUMULUS_HOST_DEVICE inline float cos_pi(float x) {
#if defined(__CUDA_ARCH__)
  return cospif(x);
#else
  return static_cast<float>(std::cos(3.14159265358979323846 * static_cast<double>(x)));
#endif
}

}  // namespace detail

/// Which of `count` equal parts of [0, 1) holds `position`; outside of it the nearest; of NaN the first.
CUMULUS_HOST_DEVICE inline std::uint32_t cell_of(float position, std::uint32_t count) {
  if (!(position > 0.0F)) return 0;
  if (position >= 1.0F) return count - 1;
  return detail::smaller(static_cast<std::uint32_t>(position * static_cast<float>(count)), count - 1);
}

/// The unit vector of a lat-long position: (0, 1, 0) for v = 0; (0, 0, -1) for (0, 1/2); (1, 0, 0) for (1/4,
/// 1/2).
CUMULUS_HOST_DEVICE inline void direction_of(float u, float v, float direction[3]) {
  const float sine = detail::sin_pi(v);
  direction[0] = sine * detail::sin_pi(2.0F * u);
  direction[1] = detail::cos_pi(v);
  direction[2] = -sine * detail::cos_pi(2.0F * u);
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

/// (index + fraction) / count, moved by an ulp where rounding has carried it into another cell.
CUMULUS_HOST_DEVICE inline float position_in(std::uint32_t index, float fraction, std::uint32_t count) {
  float position = (static_cast<float>(index) + fraction) / static_cast<float>(count);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const bool beyond = position >= 1.0F || cell_of(position, count) > index;
    const bool before = !beyond && cell_of(position, count) < index;
    position = step(position, (before ? 1 : 0) - (beyond ? 1 : 0));
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

/// Density of a cell with this probability: the reciprocal of the texel's area, times it.
CUMULUS_HOST_DEVICE inline float density(const TableView& table, std::uint32_t y, std::uint64_t row_mass,
                                         std::uint64_t column_mass) {
  constexpr float kUnit = 1.0F / 4294967296.0F;
  const float probability =
      (static_cast<float>(row_mass) * kUnit) * (static_cast<float>(column_mass) * kUnit);
  const auto width = static_cast<float>(table.header.width);
  if (table.header.projection == Projection::kLatLong) {
    return probability * width / (4.0F * kPi * row_band(y, table.header.height).extent);
  }
  const float per_area = probability * width * static_cast<float>(table.header.height);
  return table.header.projection == Projection::kPlane ? per_area : per_area / (4.0F * kPi);
}

/// v and the direction for a point that lies `fraction` of the row's solid angle below its top.
CUMULUS_HOST_DEVICE inline void place_on_sphere(std::uint32_t height, float fraction, Sample& drawn) {
  const RowBand band = row_band(drawn.y, height);
  const float rise = (band.south ? 1.0F - fraction : fraction) * band.extent;
  const float s = band.begin + rise;
  // asin(sqrt(s)) - asin(sqrt(begin)) without cancellation
  const float half_angle = asinf(rise / (sqrtf(s * (1.0F - band.begin)) + sqrtf(band.begin * (1.0F - s))));
  float offset = half_angle * (2.0F / kPi) * static_cast<float>(height);
  if (!(offset < kBelowOne)) offset = kBelowOne;
  drawn.v = position_in(drawn.y, band.south ? 1.0F - offset : offset, height);

  const float ring = 2.0F * sqrtf(s * (1.0F - s));
  drawn.direction[0] = ring * sin_pi(2.0F * drawn.u);
  drawn.direction[1] = band.south ? 2.0F * s - 1.0F : 1.0F - 2.0F * s;
  drawn.direction[2] = -ring * cos_pi(2.0F * drawn.u);
}

}  // namespace detail

/// Maps a point of the unit square, in fixed point, to the table's density; monotone in both
/// coordinates, so that low-discrepancy points keep their evenness. x0 chooses the column, x1 the
/// row. Within a texel the density is constant: in solid angle, of kPlane in area.
CUMULUS_HOST_DEVICE inline Sample sample(const TableView& table, std::uint32_t x0, std::uint32_t x1) {
  const TableHeader& header = table.header;
  Sample drawn;
  const detail::Cell row = detail::locate(detail::marginal_cdf(table), header.height,
                                          detail::marginal_guide(table), header.marginal_guide_size, x1);
  drawn.y = row.index;
  const detail::Cell column = detail::locate(detail::row_cdf(table, row.index), header.width,
                                             detail::row_guide(table, row.index), header.row_guide_size, x0);
  drawn.x = column.index;
  drawn.pdf = detail::density(table, row.index, row.mass, column.mass);
  drawn.u = detail::position_in(column.index, detail::fraction_within(column, x0), header.width);
  const float fraction = detail::fraction_within(row, x1);
  if (header.projection == Projection::kLatLong) {
    detail::place_on_sphere(header.height, fraction, drawn);
    return drawn;
  }
  drawn.v = detail::position_in(row.index, fraction, header.height);
  if (header.projection == Projection::kEqualArea) equal_area_direction(drawn.u, drawn.v, drawn.direction);
  return drawn;
}

/// The density with which `sample` draws points at (u, v); positions outside [0, 1) count as the nearest
/// inside.
CUMULUS_HOST_DEVICE inline float pdf(const TableView& table, float u, float v) {
  const TableHeader& header = table.header;
  const std::uint32_t y = cell_of(v, header.height);
  const std::uint32_t x = cell_of(u, header.width);
  const detail::Cell row = detail::cell_at(detail::marginal_cdf(table), header.height, y);
  const detail::Cell column = detail::cell_at(detail::row_cdf(table, y), header.width, x);
  return detail::density(table, y, row.mass, column.mass);
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
