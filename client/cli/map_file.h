#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "cli/report.h"
#include "cumulus/array.h"

namespace cumulus::cli {

/// A picture to be importance-sampled.
struct Map {
  Array pixels;  // [height, width, channels], without negative values
  /// Values below 0, which resampling filters leave in renderings, and which were raised to 0: a weight
  /// cannot be negative. NaN and infinity stay, for the server to refuse.
  std::int64_t negative_values = 0;
};

absl::StatusOr<Map> read_map(const std::string& path);

/// Adds the map's size, and how many values were raised.
void describe_map(const Map& map, Report& report);

}  // namespace cumulus::cli
