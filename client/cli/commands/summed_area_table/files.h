#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "cumulus/array.h"

// The files of the commands on summed-area tables.

namespace cumulus::cli {

/// The first channel of an image file's samples, or of a .npy file of [height, width] or [height, width,
/// channels], as radii in pixels: [height, width], float32. Integers count as they are, whatever their type.
absl::StatusOr<Array> read_radius_map(const std::string& path, float scale);

/// Whether files of this name hold numbers as large as sums.
bool holds_sums(const std::string& path);

/// The type that a file of this name stores sums of a type in: image files have no integers of 64 bits, and
/// .exr no float64.
ElementType stored_type(const std::string& path, ElementType sums);

/// A table in elements that image files can store; one for a .npy file as it is.
absl::StatusOr<Array> table_for_file(Array table, const std::string& path);

}  // namespace cumulus::cli
