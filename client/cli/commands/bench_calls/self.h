#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <spawn.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace cumulus::cli {

/// This program once more, as a process with these words after its name. `actions` say what becomes of its
/// files; null: it has this one's. The error is about `what`.
absl::StatusOr<pid_t> spawn_self(const std::vector<std::string>& words,
                                 const posix_spawn_file_actions_t* actions, const std::string& what);

/// Likewise, to its end, which has to be a success, and without a word on standard output.
absl::Status run_self(const std::vector<std::string>& words);

}  // namespace cumulus::cli
