#pragma once

#include <absl/status/status.h>

#include <vector>

#include "cli/commands/bench_calls/limits.h"
#include "cli/job/job.h"
#include "cli/job/report.h"

namespace cumulus::cli {

/// Adds a row: the p99 of a single caller's small calls while another client downloads an image again and
/// again over one connection, beside that of the same calls alone, in turns.
absl::Status add_calls_beside_download(Job& job, const LimitOptions& options, std::vector<Report>& rows);

}  // namespace cumulus::cli
