#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "cli/job/report.h"
#include "cumulus/array.h"

namespace cumulus::cli {

/// A picture to be importance-sampled.
struct Map {
  Array pixels;  // [height, width, channels] of uint8, float32 or, as many files have them, float16: the
                 // float32 nearest to any other number, but none that is 0 or infinite in its place
  /// Values that are no number, infinite or, as resampling filters leave them in photographs, negative: the
  /// server clamps or refuses them.
  std::int64_t invalid_values = 0;
};

/// An image file, or a .npy file of any numbers: [height, width, channels], [height, width] or, of a single
/// row, [width].
absl::StatusOr<Map> read_map(const std::string& path);

/// Adds the map's size and, of a job that succeeded, how many values were clamped.
void describe_map(const Map& map, Report& report);

}  // namespace cumulus::cli
