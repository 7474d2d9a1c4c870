#include "cli/commands/bracket_match/picture.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cumulus::cli {
namespace {

constexpr double kLongSide = 1024;
constexpr double kMargin = 8;

struct Color {
  double r, g, b;
};
constexpr Color kWhole = {40, 140, 60};
constexpr Color kCut = {235, 130, 0};
constexpr Color kGone = {215, 40, 40};
constexpr Color kClip = {0, 0, 0};

bool is_nothing(const DrawingBox& box) { return box[2] <= box[0] || box[3] <= box[1]; }
bool is_finite(const DrawingBox& box) {
  return std::all_of(box.begin(), box.end(), [](float side) { return std::isfinite(side); });
}

/// White paper, and where a drawing's boxes lie on it.
class Paper {
 public:
  Paper(const DrawingBox& extent, double scale)
      : x0_(extent[0] * scale - kMargin),
        y0_(extent[1] * scale - kMargin),
        scale_(scale),
        width_(static_cast<std::int64_t>((extent[2] - extent[0]) * scale + 2 * kMargin) + 1),
        height_(static_cast<std::int64_t>((extent[3] - extent[1]) * scale + 2 * kMargin) + 1),
        pixels_(static_cast<std::size_t>(width_ * height_ * 3), 255) {}

  void box(const DrawingBox& box, const Color& color, double inside, double border) {
    const std::int64_t left = column(box[0]), right = column(box[2]);
    const std::int64_t top = row(box[1]), bottom = row(box[3]);
    for (std::int64_t y = top; y <= bottom; ++y) {
      for (std::int64_t x = left; x <= right; ++x) {
        const bool edge = y == top || y == bottom || x == left || x == right;
        blend(x, y, color, edge ? border : inside);
      }
    }
  }

  absl::StatusOr<Array> take() const {
    absl::StatusOr<Array> picture = Array::allocate(ElementType::kUint8, {height_, width_, 3});
    if (picture.ok()) {
      std::transform(pixels_.begin(), pixels_.end(), picture->mutable_bytes().begin(), [](double value) {
        return static_cast<std::byte>(static_cast<unsigned char>(std::lround(value)));
      });
    }
    return picture;
  }

 private:
  /// Of an infinite box, the paper's edge.
  std::int64_t column(float x) const { return place(x * scale_ - x0_, width_); }
  std::int64_t row(float y) const { return place(y * scale_ - y0_, height_); }
  static std::int64_t place(double at, std::int64_t size) {
    return static_cast<std::int64_t>(std::clamp(at, 0.0, static_cast<double>(size - 1)));
  }

  void blend(std::int64_t x, std::int64_t y, const Color& color, double opacity) {
    double* pixel = &pixels_[static_cast<std::size_t>((y * width_ + x) * 3)];
    pixel[0] += opacity * (color.r - pixel[0]);
    pixel[1] += opacity * (color.g - pixel[1]);
    pixel[2] += opacity * (color.b - pixel[2]);
  }

  const double x0_;
  const double y0_;
  const double scale_;
  const std::int64_t width_;
  const std::int64_t height_;
  std::vector<double> pixels_;
};

/// Around all finite boxes.
DrawingBox extent_of(const DrawingScene& scene) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  DrawingBox extent = {kInfinity, kInfinity, -kInfinity, -kInfinity};
  for (std::size_t i = 0; i < scene.boxes.size(); ++i) {
    const DrawingBox& box = scene.boxes[i];
    if (scene.elements[i] == 2 || !is_finite(box)) continue;
    extent = {std::min(extent[0], box[0]), std::min(extent[1], box[1]), std::max(extent[2], box[2]),
              std::max(extent[3], box[3])};
  }
  return extent[0] <= extent[2] ? extent : DrawingBox{0, 0, 1, 1};
}

}  // namespace

Remainder remainder_of(const DrawingBox& box, const DrawingBox& bounds) {
  if (box == bounds) return Remainder::kAll;
  // A line that runs straight along an axis has an empty box of its own.
  const bool outside = bounds[2] < bounds[0] || bounds[3] < bounds[1];
  return outside || (is_nothing(bounds) && !is_nothing(box)) ? Remainder::kNothing : Remainder::kPart;
}

absl::StatusOr<Array> draw_clipped_boxes(const DrawingScene& scene, const std::vector<DrawingBox>& bounds) {
  const DrawingBox extent = extent_of(scene);
  const double longest = std::max({extent[2] - extent[0], extent[3] - extent[1], 1e-6F});
  Paper paper(extent, (kLongSide - 2 * kMargin) / longest);
  for (std::size_t i = 0; i < scene.elements.size(); ++i) {
    if (scene.elements[i] != 0) continue;
    switch (remainder_of(scene.boxes[i], bounds[i])) {
      case Remainder::kAll:
        paper.box(bounds[i], kWhole, 0.05, 0.35);
        break;
      case Remainder::kPart:
        paper.box(scene.boxes[i], kCut, 0.02, 0.15);
        paper.box(bounds[i], kCut, 0.15, 0.8);
        break;
      case Remainder::kNothing:
        paper.box(scene.boxes[i], kGone, 0.05, 0.35);
        break;
    }
  }
  for (std::size_t i = 0; i < scene.elements.size(); ++i) {
    if (scene.elements[i] == 1 && !is_nothing(bounds[i])) paper.box(bounds[i], kClip, 0, 1);
  }
  return paper.take();
}

}  // namespace cumulus::cli
