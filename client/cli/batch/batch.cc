#include "cli/batch/batch.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <thread>

namespace cumulus::cli {
namespace {

using State = BatchRun::State;

absl::Status outcome(const BatchRun& run, const BatchOptions& options, std::size_t jobs) {
  const std::size_t failed = run.count(State::kFailed);
  const std::size_t held_up = run.count(State::kNotRun) + run.count(State::kWaiting);
  if (!run.server_lost().ok()) {
    return absl::UnavailableError(absl::StrCat("the server ended, or cannot be reached any more, with ",
                                               held_up, " of ", jobs,
                                               " jobs not done; run the same command again once it serves (",
                                               std::string(run.server_lost().message()), ")"));
  }
  if (failed == 0) return absl::OkStatus();
  const std::string what = options.manifest.empty() ? "" : absl::StrCat(" of ", options.manifest);
  return absl::FailedPreconditionError(
      absl::StrCat(failed, failed == 1 ? " job" : " jobs", what, " failed",
                   held_up == 0 ? "" : absl::StrCat(", and ", held_up, " could not be run for that"),
                   "; mend what is said above and run the same command again",
                   options.manifest.empty() ? "" : ": what is done is kept"));
}

}  // namespace

int default_workers() {
  constexpr int kMost = 8;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMost);
}

absl::Status run_batch(Job& job, const std::vector<ManifestJob>& jobs, BatchRecord& record,
                       const BatchOptions& options) {
  if (const absl::StatusOr<Client> client = job.connect(); !client.ok()) return client.status();
  if (options.json_lines) job.report_in_json();
  BatchRun run(options, jobs, record, job);
  run.run();
  if (!options.manifest.empty()) job.report().add("manifest", options.manifest);
  if (!options.json_lines) job.report().add("jobs", run.reports());
  job.report().add("done", run.count(State::kDone));
  job.report().add("kept", run.count(State::kKept));
  job.report().add("failed", run.count(State::kFailed));
  job.report().add("not_run", run.count(State::kNotRun) + run.count(State::kWaiting));
  job.report().add("seconds", job.stages().seconds());
  job.report_failure_too();
  if (job.interrupted()) return absl::CancelledError();
  absl::Status ended = outcome(run, options, jobs.size());
  if (absl::IsUnavailable(ended)) job.lose_server();
  return ended;
}

}  // namespace cumulus::cli
