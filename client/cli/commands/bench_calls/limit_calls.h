#pragma once

#include <absl/status/status.h>

#include <vector>

#include "cli/app/bench_rows.h"
#include "cli/commands/bench_calls/limits.h"
#include "cli/job/report.h"

namespace cumulus::cli {

/// Adds rows of small calls beside a bare gRPC server: by one and 64 callers, tables of 64 x 64 by 64
/// callers, and what the median one of `operations` takes besides its kernels where a thread waits for each
/// call.
absl::Status add_call_limits(Job& job, const std::vector<BenchRow>& operations, const LimitOptions& options,
                             std::vector<Report>& rows);

}  // namespace cumulus::cli
