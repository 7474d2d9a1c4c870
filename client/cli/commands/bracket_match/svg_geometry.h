#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <vector>

namespace cumulus::cli {

struct SvgPoint {
  double x;
  double y;
};

/// A bounding box that grows; empty at first.
struct SvgBox {
  double x0 = std::numeric_limits<double>::infinity();
  double y0 = std::numeric_limits<double>::infinity();
  double x1 = -std::numeric_limits<double>::infinity();
  double y1 = -std::numeric_limits<double>::infinity();

  bool empty() const { return x1 < x0 || y1 < y0; }
  void add(SvgPoint p) {
    x0 = std::min(x0, p.x);
    y0 = std::min(y0, p.y);
    x1 = std::max(x1, p.x);
    y1 = std::max(y1, p.y);
  }
};

/// x' = a x + c y + e, y' = b x + d y + f.
struct SvgTransform {
  double a = 1, b = 0, c = 0, d = 1, e = 0, f = 0;

  SvgPoint apply(SvgPoint p) const { return {a * p.x + c * p.y + e, b * p.x + d * p.y + f}; }
  /// This after `inner`.
  SvgTransform after(const SvgTransform& inner) const;
  /// Of the transformed corners.
  SvgBox apply(const SvgBox& box) const;
};

/// The attribute `transform`: matrix, translate, scale, rotate, skewX, skewY in a row.
SvgTransform parse_svg_transform(std::string_view text);

/// Numbers, with whatever stands between them left out.
std::vector<double> parse_svg_numbers(std::string_view text);

/// Points that a path runs between, and the control points of its curves; of an arc, as far as its radii
/// reach at most.
std::vector<SvgPoint> svg_path_points(std::string_view path);

}  // namespace cumulus::cli
