#pragma once

#include <absl/status/status.h>

#include <vector>

#include "cli/job/job.h"

namespace cumulus::cli {

struct CompareOptions {
  std::vector<int> callers;  // each a row
  int rounds = 5;
  double seconds = 1;  // of a round at one of the two servers
};

/// Adds to the report, for each number of callers, what the server's smallest calls take beside those of a
/// bare gRPC server with the same messages, which takes turns with it.
absl::Status compare_calls(Job& job, const CompareOptions& options);

}  // namespace cumulus::cli
