#pragma once

#include <string>

#include "cli/job/job.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
}

namespace cumulus::cli {

/// Declares what every command takes, and what its help says at its end.
void add_global_options(CLI::App& app, GlobalOptions& options);

/// Where neither --server nor --backend has been given, the server that CUMULUS_SERVER names. Returns what a
/// user should know of the choice: that --backend has made the variable void. Empty: nothing.
std::string take_server_from_environment(GlobalOptions& options);

}  // namespace cumulus::cli
