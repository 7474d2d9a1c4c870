#pragma once

#include <absl/status/status.h>

#include <vector>

#include "cli/batch/run.h"

namespace cumulus::cli {

/// As many jobs at a time as there are processors, within limits.
int default_workers();

/// Does the jobs, and reports on them. UNAVAILABLE once the server is gone; FAILED_PRECONDITION where one
/// failed.
absl::Status run_batch(Job& job, const std::vector<ManifestJob>& jobs, BatchRecord& record,
                       const BatchOptions& options);

}  // namespace cumulus::cli
