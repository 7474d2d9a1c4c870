#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "cli/commands/bench_calls/limits.h"
#include "cli/job/report.h"

namespace cumulus::cli {

/// Makes a CUDA context where the backend is "cuda", and nothing else where it is not. UNAVAILABLE without a
/// driver or a GPU.
absl::Status make_context(const std::string& backend);

/// Adds a row of a command with a private daemon of the server's backend, from its start to its end, beside a
/// program that makes a context for it.
absl::Status add_start_limit(Job& job, const LimitOptions& options, std::vector<Report>& rows);

}  // namespace cumulus::cli
