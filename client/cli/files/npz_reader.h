#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// The arrays of a .npz file below 4 GiB, by name: what write_npz, numpy.savez and numpy.savez_compressed
/// write.
absl::StatusOr<std::map<std::string, Array>> read_npz(const std::string& path);

}  // namespace cumulus::cli
