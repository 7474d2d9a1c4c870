#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// A stream opens a folder without a word, and then finds no bytes in it.
absl::Status refuse_folder(const std::string& path);

/// A file's bytes: uint8 [size].
absl::StatusOr<Array> read_file(const std::string& path);

/// Likewise as text.
absl::StatusOr<std::string> read_text(const std::string& path);

}  // namespace cumulus::cli
