#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <vector>

#include "cli/commands/bench_calls/load.h"
#include "cli/job/job.h"

namespace cumulus::cli {

struct CompareOptions {
  std::vector<int> callers;  // each a row
  int rounds = 5;
  double seconds = 1;  // of a round at one of the two servers
  SmallCall call = small_call();
};

/// What so many callers saw of the server, and of a bare gRPC server with the same messages.
struct ComparedCalls {
  int callers = 0;
  LoadResult server;
  LoadResult bare;
  /// Of a single caller, who calls the bare server no more often than the other: processors sleep in between,
  /// and take as long to wake.
  LoadResult paced_bare;
};

/// Lets the two take turns.
absl::StatusOr<std::vector<ComparedCalls>> run_beside_bare(Job& job, const CompareOptions& options);

/// Adds to the report, for each number of callers, what the server's smallest calls take beside those of the
/// bare one.
absl::Status compare_calls(Job& job, const CompareOptions& options);

}  // namespace cumulus::cli
