#include "cli/commands/bench_calls/limit_rows.h"

#include <algorithm>

namespace cumulus::cli {

absl::Duration median(std::vector<absl::Duration> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

Report limit_row(const std::string& what, absl::Duration time, const std::string& limit,
                 absl::Duration least) {
  Report report;
  report.add("what", what);
  report.add("seconds", absl::ToDoubleSeconds(time));
  report.add("limit", limit);
  report.add("limit_seconds", absl::ToDoubleSeconds(least));
  report.add("added_seconds", absl::ToDoubleSeconds(time - least));
  report.add("times_limit", absl::FDivDuration(time, least));
  return report;
}

absl::StatusOr<std::pair<absl::Duration, absl::Duration>> in_turns(int repeat, const Measure& ours,
                                                                   const Measure& limit) {
  std::vector<absl::Duration> times;
  std::vector<absl::Duration> least;
  for (int i = -1; i < repeat; ++i) {
    for (const auto& [measure, taken] : {std::pair(&ours, &times), std::pair(&limit, &least)}) {
      const Measured time = (*measure)();
      if (!time.ok()) return time.status();
      if (i >= 0) taken->push_back(*time);
    }
  }
  return std::pair(median(times), median(least));
}

}  // namespace cumulus::cli
