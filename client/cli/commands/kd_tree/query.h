#pragma once

#include "cli/app/command_line.h"

namespace cumulus::cli {

/// cumulus kd-tree query.
void add_kd_tree_query(CommandLine& line, CLI::App& group);

}  // namespace cumulus::cli
