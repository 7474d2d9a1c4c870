#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/sampling_table/invalid_values.h"
#include "cli/files/image.h"
#include "cli/job/report.h"
#include "cumulus/array.h"

namespace cumulus::cli {

/// A picture to be importance-sampled.
struct Map {
  Array pixels;  // [height, width, channels] of uint8, float32 or, as many files have them, float16: the
                 // float32 nearest to any other number, but none that is 0 or infinite in its place
  InvalidValues invalid = {};
  std::optional<std::array<float, 8>> chromaticities = {};  // that the file says its colours have
  std::string window = {};                 // what became of a data window that is not the display's
  std::vector<std::string> left_out = {};  // channels
};

/// An image file, or a .npy file of any numbers: [height, width, channels], [height, width] or, of a single
/// row, [width].
/// Of an image file the display window is the map: what the data window lacks of it is 0, what lies outside
/// is left out.
absl::StatusOr<Map> read_map(const std::string& path, const PictureChoice& choice = {});

/// The luminance of colours with these primaries and that white, as weights of R, G and B of at least 0;
/// nothing where the chromaticities are of no colour space.
std::optional<std::array<float, 3>> luminance_of(const std::array<float, 8>& chromaticities);

/// Adds the map's size, what was left out of its file and, of a job that succeeded, which values were
/// clamped.
void describe_map(const Map& map, Report& report);

}  // namespace cumulus::cli
