#pragma once

#include <absl/status/status.h>

#include <vector>

#include "cli/commands/bench_calls/limits.h"
#include "cli/job/report.h"

namespace cumulus::cli {

/// Adds rows of uploads and downloads: as the library does them by itself, and over one and four connections,
/// beside plain sockets; and, where client and server share memory, of arrays that lie there, beside a
/// memcpy.
absl::Status add_transfer_limits(Job& job, const LimitOptions& options, std::vector<Report>& rows);

}  // namespace cumulus::cli
