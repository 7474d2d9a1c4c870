#pragma once

#include <absl/status/status.h>

#include <string>
#include <utility>
#include <vector>

#include "cumulus/array.h"

namespace cumulus::cli {

/// Writes named arrays as a .npz file: an uncompressed zip archive of .npy files, as numpy.savez makes it.
/// OUT_OF_RANGE from 4 GiB on.
absl::Status write_npz(const std::string& path, const std::vector<std::pair<std::string, ArrayView>>& arrays);

}  // namespace cumulus::cli
