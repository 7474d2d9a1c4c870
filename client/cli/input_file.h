#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// A file's bytes: uint8 [size].
absl::StatusOr<Array> read_file(const std::string& path);

/// Likewise as text.
absl::StatusOr<std::string> read_text(const std::string& path);

}  // namespace cumulus::cli
