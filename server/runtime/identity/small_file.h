#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace cumulus::server {

/// Who may be able to write a file that the server trusts, and who may be able to read it.
enum class Writers {
  kAnybody,  // the server does not look
  kOwner,    // neither its group nor others may write to it
};

/// The bytes of a file of at most 1 MiB. NOT_FOUND, or INVALID_ARGUMENT; both name it and the cure.
absl::StatusOr<std::string> read_small_file(const std::string& path, Writers writers);

}  // namespace cumulus::server
