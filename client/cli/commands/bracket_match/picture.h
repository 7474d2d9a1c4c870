#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "cli/commands/bracket_match/drawing.h"
#include "cumulus/array.h"

namespace cumulus::cli {

/// How much of a shape its clips leave.
enum class Remainder { kAll, kPart, kNothing };
Remainder remainder_of(const DrawingBox& box, const DrawingBox& bounds);

/// The shapes' boxes as uint8 [height, width, 3], at most 1024 pixels long: green those that are left whole;
/// orange what is left of those that are cut; red those of which nothing is left. Clips in black.
absl::StatusOr<Array> draw_clipped_boxes(const DrawingScene& scene, const std::vector<DrawingBox>& bounds);

}  // namespace cumulus::cli
