#pragma once

#include "cli/app/command_line.h"

namespace cumulus::cli {

/// `box-filter`: means over boxes.
void add_box_filter_command(CommandLine& line);

}  // namespace cumulus::cli
