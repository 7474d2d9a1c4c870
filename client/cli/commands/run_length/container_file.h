#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <span>
#include <string>

#include "cumulus/run_length_container.h"

namespace cumulus::cli {

/// A container and the bytes that it reads.
struct RunLengthFile {
  Array bytes;
  RunLengthContainer container;
};

/// Reads and checks an .rle file.
absl::StatusOr<RunLengthFile> read_run_length_file(const std::string& path);

absl::Status write_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace cumulus::cli
