#pragma once

#include <absl/status/statusor.h>

#include <memory>
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

/// What a server says of weights that it refuses, told of the picture `pixels` in the file `path`.
absl::Status explain_table_refusal(const absl::Status& refusal, const std::string& path, const Array& pixels,
                                   const SamplingTableOptions& options);

/// Builds the table of the picture `map`, read from `path`.
absl::StatusOr<Result> build_table(Job& job, const Session& session, const std::string& path, const Map& map,
                                   const MapTableOptions& options);

/// A table on the server, and the picture that it is of; without pixels where it came from a file of its own.
struct TableOnServer {
  Map map;
  std::shared_ptr<const ResidentFile> file;
  bool was_resident = false;  // brought there by an earlier job

  const Session& session() const { return *file->session; }
  const Buffer& table() const { return file->buffers.front(); }
};

/// The table in the file `path`, which stays on the server for other jobs, or that of the picture there,
/// built by `options`.
absl::StatusOr<TableOnServer> prepare_table(Job& job, const std::string& path,
                                            const MapTableOptions& options);

/// Adds how a picture became a table; of a table nothing.
void describe_table_input(const std::string& path, const Map& input, const MapTableOptions& options,
                          Report& report);

}  // namespace cumulus::cli
