#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>

#include "cumulus/array.h"
#include "cumulus/sampling.h"

namespace cumulus::cli {

/// The header of a table's bytes, checked.
absl::StatusOr<sampling::TableHeader> table_header(const ArrayView& table);

/// Writes a table as a .cst file: its bytes, with their crc32c in the header.
absl::Status write_table(const std::string& path, const ArrayView& table);

/// Reads a .cst file, and checks its header and its crc32c. The result is as a server gives it: uint8
/// [bytes], without the checksum.
absl::StatusOr<Array> read_table(const std::string& path);

}  // namespace cumulus::cli
