#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "cli/commands/sampling_table/input.h"

namespace cumulus::cli {

/// What video-tables is asked for.
struct VideoOptions {
  std::vector<std::string> frames;  // or patterns of their names
  std::string folder;               // of the tables
  int at_once = 4;
  MapTableOptions table;
};

/// Some frames are read while the tables of others are built and written.
absl::Status run_video_tables(Job& job, const VideoOptions& options);

}  // namespace cumulus::cli
