#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// The first bytes of a .npy file (NumPy's format, version 1.0) of row-major elements: `descr` is the
/// element type as a Python expression ("'<f4'", "[('u', '<f4'), ...]").
std::string npy_header(const std::string& descr, const Shape& shape);

/// "'<f4'" and the like.
std::string npy_descr(ElementType type);

/// Writes an array as it is.
absl::Status write_npy(const std::string& path, const ArrayView& array);

}  // namespace cumulus::cli
