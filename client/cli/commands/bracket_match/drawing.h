#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cumulus::cli {

/// x0, y0, x1, y1.
using DrawingBox = std::array<float, 4>;

/// A drawing as a flat scene, as intersect_clips takes it.
struct DrawingScene {
  std::vector<std::uint8_t> elements;
  std::vector<DrawingBox> boxes;
  std::vector<std::int64_t> offsets;            // of the element's tag in the document
  std::int64_t texts = 0;                       // of which the boxes are estimated
  std::int64_t uses = 0;                        // that drew what they name
  std::map<std::string, std::int64_t> skipped;  // what of the drawing is not in the scene, by its name
};

/// The shapes of an SVG drawing and its clips: the viewport of each svg element and symbol, and whatever
/// `clip-path` names, by the bounding boxes of their geometry in the outermost svg element's user units,
/// control points of curves included, strokes left out. `view`, where given, is a clip around all. Shapes:
/// path, polygon, polyline, rect, circle, ellipse, line, image, and text by an estimated box; <use> draws
/// what it names. What definitions hold is not drawn. INVALID_ARGUMENT, with line and column, for a document
/// that is no well-formed SVG, or whose <use> elements draw too much.
absl::StatusOr<DrawingScene> read_drawing(std::string_view document, const std::optional<DrawingBox>& view);

}  // namespace cumulus::cli
