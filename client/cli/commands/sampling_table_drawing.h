#pragma once

#include <absl/status/status.h>

#include <string>

#include "cli/job.h"
#include "cumulus/sampling_table.h"

namespace cumulus::cli {

/// How the command line builds tables unless told otherwise: a photographed map just works.
inline constexpr SamplingTableOptions kTableDefaults{.invalid_weights = InvalidWeights::kClamp};

/// "clamp" or "refuse".
const char* name_of(InvalidWeights choice);

/// What draw-samples is asked for.
struct DrawingOptions {
  std::string input;                            // an image, or a table
  std::string output;                           // .npy; empty: none
  std::string preview;                          // .png; empty: none
  std::string map;                              // the preview's picture; empty: the input
  SamplingTableOptions table = kTableDefaults;  // of an image
  DrawSamplesOptions samples;
};

/// Whether a file's name says that it is a table.
bool is_table_file(const std::string& path);

absl::Status run_draw_samples(Job& job, const DrawingOptions& options);

}  // namespace cumulus::cli
