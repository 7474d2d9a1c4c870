#pragma once

#include <string>
#include <variant>

#include "server/runtime/configuration.h"

namespace cumulus::server {

/// The daemon has nothing to serve: it was asked for help, its version or a token, or something is wrong.
struct ExitNow {
  int code = 0;      // 0; 1: the configuration is wrong; 2: the command line is
  std::string text;  // for standard output where the code is 0, else for standard error
};

/// cumulusd's flags, and the configuration file that they name and override.
std::variant<Configuration, ExitNow> parse_command_line(int argc, const char* const* argv);

}  // namespace cumulus::server
