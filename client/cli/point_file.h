#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// Points, [points, dimensions] of float32 or float64, from a PLY file, a .npy file, or a .npz file's array
/// `points`, `data`, or only one.
absl::StatusOr<Array> read_points(const std::string& path);

}  // namespace cumulus::cli
