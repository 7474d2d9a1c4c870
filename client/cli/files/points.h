#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// Numbers as float32 where it holds every number of their type, otherwise as float64. Refuses integers, of
/// the file `path`, that float64 does not hold.
absl::StatusOr<Array> to_floating(Array numbers, const std::string& path);

/// Points, [points, dimensions] of 2 to 16 dimensions, as to_floating leaves their numbers, from a PLY file,
/// a .npy file, or a .npz file's array `points`, `data`, or only one.
absl::StatusOr<Array> read_points(const std::string& path);

}  // namespace cumulus::cli
