#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "cli/app/bench_rows.h"
#include "cli/job/job.h"

namespace cumulus::cli {

struct LimitOptions {
  std::int64_t size = 2048;  // pixels of an image's side
  int repeat = 5;
};

/// Adds to the report what users wait for, each beside what this machine could do at best in the same run:
/// transfers beside plain sockets and a memcpy, small calls and what `operations` take besides their kernels
/// beside a bare gRPC server, five operations in one call beside their kernels and one call's overhead, a
/// command's files and transfers beside reading and writing alone, a private daemon beside a CUDA context.
absl::Status measure_limits(Job& job, const std::vector<BenchRow>& operations, const LimitOptions& options);

}  // namespace cumulus::cli
