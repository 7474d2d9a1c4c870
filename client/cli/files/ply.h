#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// The x, y and z of a PLY file's vertices, [vertices, 3]: float64 where one of them is double, else float32.
/// ASCII and both binary forms; `vertex` must be the file's first element.
absl::StatusOr<Array> read_ply(const std::string& path);

}  // namespace cumulus::cli
