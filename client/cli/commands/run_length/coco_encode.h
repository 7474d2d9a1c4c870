#pragma once

#include <CLI/App.hpp>

#include "cli/app/command_line.h"

namespace cumulus::cli {

/// run-length coco-encode.
void add_coco_encode(CommandLine& line, CLI::App& group);

}  // namespace cumulus::cli
