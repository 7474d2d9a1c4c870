#pragma once

#include <absl/status/status.h>

#include <string>

#include "cli/commands/sampling_table/input.h"

namespace cumulus::cli {

/// What draw-samples is asked for.
struct DrawingOptions {
  std::string input;      // an image, or a table
  std::string output;     // .npy; empty: none
  std::string preview;    // .png; empty: none
  std::string map;        // the preview's picture; empty: the input
  MapTableOptions table;  // of an image
  DrawSamplesOptions samples;
};

/// The records of a file of samples, as a .npy file has them: u, v, the direction unless they are of a plane,
/// and pdf.
std::string sample_records(bool directions);

absl::Status run_draw_samples(Job& job, const DrawingOptions& options);

}  // namespace cumulus::cli
