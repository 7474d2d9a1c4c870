#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <istream>
#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// The first bytes of a .npy file (NumPy's format, version 1.0) of row-major elements: `descr` is the
/// element type as a Python expression ("'<f4'", "[('u', '<f4'), ...]").
std::string npy_header(const std::string& descr, const Shape& shape);

/// "'<f4'" and the like.
std::string npy_descr(ElementType type);

/// Whether a file is one by its name.
bool is_npy(const std::string& path);

/// Whether an input is one: by its name, and standard input by what it begins with.
bool holds_npy(const std::string& path);

/// Maps a .npy file of little-endian numbers in row-major order: the array lies in the file's own memory, and
/// what is changed of it stays here. Says what the file holds instead where it holds anything else.
absl::StatusOr<Array> read_npy(const std::string& path);

/// Likewise from a stream that stands at its beginning; `path` is for errors.
absl::StatusOr<Array> read_npy(std::istream& file, const std::string& path);

/// Writes an array as it is.
absl::Status write_npy(const std::string& path, const ArrayView& array);

}  // namespace cumulus::cli
