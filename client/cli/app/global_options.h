#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "cli/job/job.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
}

namespace cumulus::cli {

/// Declares what every command takes, and what its help says at its end.
void add_global_options(CLI::App& app, GlobalOptions& options);

/// What no option has said is what read_client_settings() says, the server only where --backend has not been
/// given, either. Returns what a user should know of the choice: that --backend has made the server's setting
/// void. Empty: nothing.
absl::StatusOr<std::string> take_client_settings(GlobalOptions& options);

}  // namespace cumulus::cli
