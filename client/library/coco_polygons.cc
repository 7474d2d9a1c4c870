#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "cumulus/coco_masks.h"

namespace cumulus {
namespace {

/// The outline is followed on a grid so many times finer than the pixels', as pycocotools does it
/// (rleFrPoly of its maskApi.c): to give the same masks, the arithmetic has to be the same.
constexpr double kScale = 5;

struct Point {
  int x = 0;
  int y = 0;
};

/// As pycocotools rounds, which is not std::lround's way for numbers less than 0.
int rounded(double x) { return static_cast<int>(x + 0.5); }  // NOLINT(bugprone-incorrect-roundings)

Point on_fine_grid(std::span<const double> polygon, std::size_t corner) {
  return {rounded(kScale * polygon[2 * corner]), rounded(kScale * polygon[2 * corner + 1])};
}

/// The points of the edge from `a` to `b`, both ends included, in this order.
void append_edge(Point a, Point b, std::vector<Point>& outline) {
  const int dx = std::abs(b.x - a.x);
  const int dy = std::abs(b.y - a.y);
  const bool wide = dx >= dy;
  const bool flip = wide ? a.x > b.x : a.y > b.y;
  if (flip) std::swap(a, b);
  const int steps = wide ? dx : dy;
  const double slope = steps == 0 ? 0.0 : static_cast<double>(wide ? b.y - a.y : b.x - a.x) / steps;
  for (int d = 0; d <= steps; ++d) {
    const int t = flip ? steps - d : d;
    const auto across = [&](int from) { return rounded(from + slope * t); };
    outline.push_back(wide ? Point{a.x + t, across(a.y)} : Point{across(a.x), a.y + t});
  }
}

/// Where runs change, as positions column by column: for each column whose middle the outline crosses, the
/// row.
std::vector<std::int64_t> changes(const std::vector<Point>& outline, std::int64_t height,
                                  std::int64_t width) {
  std::vector<std::int64_t> found;
  for (std::size_t j = 1; j < outline.size(); ++j) {
    const Point& a = outline[j - 1];
    const Point& b = outline[j];
    if (a.x == b.x) continue;
    const double x = ((b.x < a.x ? b.x : b.x - 1) + 0.5) / kScale - 0.5;
    if (std::floor(x) != x || x < 0 || x > static_cast<double>(width - 1)) continue;
    const double y = std::clamp((std::min(a.y, b.y) + 0.5) / kScale - 0.5, 0.0, static_cast<double>(height));
    found.push_back(static_cast<std::int64_t>(x) * height + static_cast<std::int64_t>(std::ceil(y)));
  }
  std::sort(found.begin(), found.end());
  return found;
}

using Runs = std::vector<std::pair<std::int64_t, std::int64_t>>;  // of ones: begin and end

/// Two changes at one place are none.
void append_runs(const std::vector<std::int64_t>& changes, std::int64_t pixels, Runs& runs) {
  for (std::size_t i = 0; i < changes.size(); i += 2) {
    const std::int64_t end = i + 1 < changes.size() ? changes[i + 1] : pixels;
    if (changes[i] < end) runs.emplace_back(changes[i], end);
  }
}

/// What any of the runs covers, as lengths of zeros and ones in turn.
std::vector<std::uint32_t> united(Runs runs, std::int64_t pixels) {
  std::sort(runs.begin(), runs.end());
  std::vector<std::uint32_t> counts;
  std::int64_t position = 0;
  for (std::size_t i = 0; i < runs.size();) {
    const std::int64_t begin = runs[i].first;
    std::int64_t end = runs[i].second;
    for (++i; i < runs.size() && runs[i].first <= end; ++i) end = std::max(end, runs[i].second);
    counts.push_back(static_cast<std::uint32_t>(begin - position));
    counts.push_back(static_cast<std::uint32_t>(end - begin));
    position = end;
  }
  if (position < pixels || counts.empty()) counts.push_back(static_cast<std::uint32_t>(pixels - position));
  return counts;
}

}  // namespace

absl::StatusOr<std::vector<std::uint32_t>> coco_counts_of_polygons(
    std::span<const std::vector<double>> polygons, std::int64_t height, std::int64_t width) {
  constexpr std::int64_t kMaxExtent = 1 << 20;  // bounds the outline, too
  if (height < 0 || width < 0 || height > kMaxExtent || width > kMaxExtent || height * width > kMaxCocoPixels)
    return absl::InvalidArgumentError("a mask has at most 2^20 pixels a side, and 2^32 - 1 in all");
  Runs runs;
  for (const std::vector<double>& polygon : polygons) {
    if (polygon.size() < 6 || polygon.size() % 2 != 0)
      return absl::InvalidArgumentError("a polygon is x, y of at least three corners");
    const auto far = [](double x) { return !(std::abs(x) <= static_cast<double>(kMaxExtent)); };
    if (std::any_of(polygon.begin(), polygon.end(), far))
      return absl::InvalidArgumentError("a corner of a polygon is no number, or more than 2^20 pixels away");
    const std::size_t corners = polygon.size() / 2;
    std::vector<Point> outline;
    for (std::size_t corner = 0; corner < corners; ++corner)
      append_edge(on_fine_grid(polygon, corner), on_fine_grid(polygon, (corner + 1) % corners), outline);
    append_runs(changes(outline, height, width), height * width, runs);
  }
  return united(std::move(runs), height * width);
}

}  // namespace cumulus
