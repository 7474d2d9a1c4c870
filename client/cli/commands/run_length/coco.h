#pragma once

#include <absl/status/status.h>

#include <string>

#include "cli/app/command_line.h"

namespace cumulus::cli {

/// run-length coco-encode and coco-decode.
void add_coco_commands(CommandLine& line, CLI::App& group);

/// What run-length info says of a COCO file.
absl::Status describe_coco_file(Job& job, const std::string& path);

}  // namespace cumulus::cli
