#pragma once

// Sampling within the cells of a bilinear table. cumulus/sampling.h is the header to include. C++17, host and
// CUDA device, no dependency.
//
// The weights of a map are those at the centres of its texels. Cells lie between neighbouring centres, and
// between the outermost centres and the edges; the weights at a cell's four corners are the table's vertices.
// Within a cell the density is bilinear: in the position across and in the area above, which on a lat-long
// map grows with the cosine of the polar angle instead of with v. In double, since what is left of a float
// position within a narrow cell has few digits.

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cumulus/host_device.h"
#include "cumulus/table_format.h"

namespace cumulus::sampling::detail {

/// Along one side of a map: its cells end where `count` texels have their centres, and at 0 and 1. A single
/// row of a bilinear table is one cell from 0 to 1.
struct CellAxis {
  std::uint32_t cells = 1;

  CUMULUS_HOST_DEVICE std::uint32_t texels() const { return cells > 1 ? cells - 1 : 1; }
  /// Units of `edge` in the whole side.
  CUMULUS_HOST_DEVICE std::uint32_t units() const { return 2 * texels(); }
  /// Where cell k begins, and the one before it ends.
  CUMULUS_HOST_DEVICE std::uint32_t edge(std::uint32_t k) const {
    if (k == 0) return 0;
    return k == cells ? units() : 2 * k - 1;
  }
  CUMULUS_HOST_DEVICE std::uint32_t extent(std::uint32_t k) const { return edge(k + 1) - edge(k); }

  /// The cell that holds a position; outside of [0, 1) the nearest; of NaN the first.
  CUMULUS_HOST_DEVICE std::uint32_t cell_of(double position) const {
    if (!(position > 0.0)) return 0;
    if (position >= 1.0) return cells - 1;
    const std::uint32_t k = (static_cast<std::uint32_t>(position * units()) + 1) / 2;
    return k < cells ? k : cells - 1;
  }

  /// Which share of cell k lies before `position`, in [0, 1].
  CUMULUS_HOST_DEVICE double share_before(std::uint32_t k, double position) const {
    const double share = (position * units() - edge(k)) / extent(k);
    if (!(share > 0.0)) return 0.0;
    return share < 1.0 ? share : 1.0;
  }

  /// The float next to that position in cell k, and within the cell: on its edge the density may be 0.
  CUMULUS_HOST_DEVICE float position_of(std::uint32_t k, double share) const {
    auto position = static_cast<float>((edge(k) + share * extent(k)) / units());
    const double units_before = static_cast<double>(position) * units();
    if (units_before <= edge(k)) position = nextafterf(position, 1.0F);
    if (units_before >= edge(k + 1)) position = nextafterf(position, 0.0F);
    return position;
  }
};

/// The weights at the corners of a cell.
struct Corners {
  double top_left = 0;
  double top_right = 0;
  double bottom_left = 0;
  double bottom_right = 0;

  CUMULUS_HOST_DEVICE double mean() const {
    return ((top_left + top_right) + (bottom_left + bottom_right)) * 0.25;
  }
  CUMULUS_HOST_DEVICE double left(double down) const { return top_left + (bottom_left - top_left) * down; }
  CUMULUS_HOST_DEVICE double right(double down) const {
    return top_right + (bottom_right - top_right) * down;
  }
  CUMULUS_HOST_DEVICE double at(double across, double down) const {
    return left(down) * (1.0 - across) + right(down) * across;
  }
};

CUMULUS_HOST_DEVICE inline Corners corners_of(const float* above, const float* below) {
  return {static_cast<double>(above[0]), static_cast<double>(above[1]), static_cast<double>(below[0]),
          static_cast<double>(below[1])};
}

/// Maps x in (0, 1) to the density on [0, 1] that grows linearly from `first` to `last`, neither of them
/// negative: solves (first s + (last - first) s^2 / 2) = x (first + last) / 2, in the form without
/// cancellation.
CUMULUS_HOST_DEVICE inline double invert_linear(double first, double last, double x) {
  const double root = sqrt(first * first * (1.0 - x) + last * last * x);
  const double s = x * (first + last) / (first + root);
  if (!(s > 0.0)) return s <= 0.0 ? 0.0 : x;  // NaN: both are 0, of which no table draws
  return s < 1.0 ? s : 1.0;
}

CUMULUS_HOST_DEVICE inline double sine_of_turn(double half_turns) {
#if defined(__CUDA_ARCH__)
  return sinpi(half_turns);
#else
  return std::sin(3.14159265358979323846 * half_turns);
#endif
}

/// A row of cells of a lat-long table as seen from its nearer pole, `v` counted from there: with s = sin^2(pi
/// v / 2), which grows evenly with solid angle, and is small without cancellation.
class PolarBand {
 public:
  CUMULUS_HOST_DEVICE PolarBand(const CellAxis& rows, std::uint32_t y)
      : south_(y > rows.cells - 1 - y),
        units_(rows.units()),
        first_edge_(rows.edge(south_ ? rows.cells - 1 - y : y)),
        last_edge_(rows.edge((south_ ? rows.cells - 1 - y : y) + 1)) {}

  /// What s grows by from one edge to the other: 4 pi times it is the band's solid angle.
  CUMULUS_HOST_DEVICE double extent() const { return rise(last_edge_); }

  /// Which share of the band's solid angle lies above `v`, in [0, 1].
  CUMULUS_HOST_DEVICE double share_above(float v) const {
    const double from_pole = south_ ? 1.0 - static_cast<double>(v) : static_cast<double>(v);
    double share = rise(from_pole * units_) / extent();
    if (!(share > 0.0)) share = 0.0;
    if (!(share < 1.0)) share = 1.0;
    return south_ ? 1.0 - share : share;
  }

  /// The v above which that share of the band's solid angle lies.
  CUMULUS_HOST_DEVICE double position_of(double share) const {
    const double risen = (south_ ? 1.0 - share : share) * extent();
    const double edge = sine_of_turn(first_edge_ / (2.0 * units_));
    const double begin = edge * edge;
    const double s = begin + risen;
    // asin(sqrt(s)) - asin(sqrt(begin)) without cancellation
    const double angle = asin(risen / (sqrt(s * (1.0 - begin)) + sqrt(begin * (1.0 - s))));
    const double v = first_edge_ / static_cast<double>(units_) + angle * (2.0 / 3.14159265358979323846);
    return south_ ? 1.0 - v : v;
  }

 private:
  /// s there, less s at the edge towards the pole: sin^2 a - sin^2 b = sin(a + b) sin(a - b).
  CUMULUS_HOST_DEVICE double rise(double edge) const {
    const double whole = 2.0 * units_;
    return sine_of_turn((edge + first_edge_) / whole) * sine_of_turn((edge - first_edge_) / whole);
  }

  bool south_;
  std::uint32_t units_;
  std::uint32_t first_edge_;
  std::uint32_t last_edge_;
};

}  // namespace cumulus::sampling::detail
