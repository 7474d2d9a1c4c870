#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "cli/commands/sampling_table/map_file.h"
#include "cli/job/job.h"
#include "cumulus/sampling_table.h"

// What the commands that read tables have in common: each takes an image as well.

namespace cumulus::cli {

/// How the command line builds tables. Unless told otherwise, a photographed map just works.
struct MapTableOptions : SamplingTableOptions {
  MapTableOptions() { invalid_weights = InvalidWeights::kClamp; }

  PictureChoice choice;
  bool luminance_given = false;  // else it is that of the file's chromaticities, where it has some
};

/// Those of the picture `map`.
SamplingTableOptions options_for(const MapTableOptions& options, const Map& map);

/// Whether a file's name says that it is a table.
bool is_table_file(const std::string& path);

/// A picture to make a table of, or a table, as it is.
absl::StatusOr<Map> read_map_or_table(const std::string& path, const MapTableOptions& options);

/// Builds the table of the picture `map`, read from `path`.
absl::StatusOr<Result> build_table(Job& job, const Session& session, const std::string& path, const Map& map,
                                   const MapTableOptions& options);

/// Uploads what read_map_or_table has read of `path`; of a picture, builds the table by `options`.
absl::StatusOr<Buffer> prepare_table(Job& job, const Session& session, const std::string& path,
                                     const Map& input, const MapTableOptions& options);

/// Adds how a picture became a table; of a table nothing.
void describe_table_input(const std::string& path, const Map& input, const MapTableOptions& options,
                          Report& report);

}  // namespace cumulus::cli
