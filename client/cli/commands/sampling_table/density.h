#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

#include "cli/commands/sampling_table/input.h"

namespace cumulus::cli {

/// What evaluate-density is asked for.
struct DensityOptions {
  std::string input;   // an image, or a table
  std::string points;  // .npy, [count, 2] or [count, 3], of any numbers, or of draw-samples
  std::string output;  // .npy
  std::uint32_t layer = 0;
  MapTableOptions table;  // of an image
};

absl::Status run_evaluate_density(Job& job, const DensityOptions& options);

}  // namespace cumulus::cli
