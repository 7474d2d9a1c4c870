#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// The arrays of a .npz file that is not compressed, by name: what write_npz and numpy.savez write, below 4
/// GiB.
absl::StatusOr<std::map<std::string, Array>> read_npz(const std::string& path);

}  // namespace cumulus::cli
