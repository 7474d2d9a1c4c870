#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <span>
#include <string>

#include "cli/job/stages.h"
#include "cumulus/array.h"

namespace cumulus::cli {

/// A point of a picture, in [0, 1), v down.
struct PicturePoint {
  float u;
  float v;
};

/// The tone-mapped map with a dot for each point, as uint8 [height, width, 3], sRGB. The map is
/// [height, width, channels], float32 or uint8 (which is taken as sRGB); it is enlarged or reduced by
/// an integer factor where its width is below 1024 or above 2048.
absl::StatusOr<Array> render_preview(const ArrayView& map, std::span<const PicturePoint> points);

/// Writes a picture to be looked at: PNG files in a third of the time that the smallest ones take.
absl::Status save_preview(const std::string& path, const ArrayView& picture);

/// Writes the preview of `map` without points, as the stage "preview"; nothing where `path` is empty.
absl::Status write_preview(Stages& stages, const std::string& path, const ArrayView& map);

}  // namespace cumulus::cli
