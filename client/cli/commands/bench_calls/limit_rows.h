#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/job/report.h"
#include "proto/steady_time.h"

namespace cumulus::cli {

using Measured = absl::StatusOr<absl::Duration>;
using Measure = std::function<Measured()>;

/// What a user waits for, beside what this machine does at best, and by how much it is more.
Report limit_row(const std::string& what, absl::Duration time, const std::string& limit,
                 absl::Duration least);

absl::Duration median(std::vector<absl::Duration> times);

/// The medians of both, which take turns, so that what else the machine does meets both. A first turn warms
/// up.
absl::StatusOr<std::pair<absl::Duration, absl::Duration>> in_turns(int repeat, const Measure& ours,
                                                                   const Measure& limit);

template <class Call>
Measured timed(const Call& call) {
  const absl::Time start = steady_now();
  if (const absl::Status status = call(); !status.ok()) return status;
  return steady_now() - start;
}

}  // namespace cumulus::cli
