#include <absl/strings/str_cat.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/app/checks.h"
#include "cli/app/command_line.h"
#include "cli/batch/manifest.h"
#include "cli/batch/record.h"
#include "cli/batch/run.h"

namespace cumulus::cli {
namespace {

using State = BatchRun::State;

constexpr int kMostWorkers = 64;

struct Options {
  std::string manifest;
  std::string record;
  int workers = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
  bool anew = false;
};

absl::Status outcome(const BatchRun& run, const std::string& manifest) {
  const std::size_t failed = run.count(State::kFailed);
  if (failed == 0) return absl::OkStatus();
  const std::size_t held_up = run.count(State::kNotRun);
  return absl::FailedPreconditionError(
      absl::StrCat(failed, failed == 1 ? " job" : " jobs", " of ", manifest, " failed",
                   held_up == 0 ? "" : absl::StrCat(", and ", held_up, " could not be run for that"),
                   "; mend what is said above and run the same command again: what is done is kept"));
}

absl::Status run_batch(Job& job, const Options& options) {
  const absl::StatusOr<std::vector<ManifestJob>> jobs = read_manifest(options.manifest);
  if (!jobs.ok()) return jobs.status();
  BatchRecord record(options.record.empty() ? options.manifest + ".done" : options.record);
  if (absl::Status opened = record.open(options.anew); !opened.ok()) return opened;
  if (const absl::StatusOr<Client> client = job.connect(); !client.ok()) return client.status();
  BatchRun run(options.manifest, *jobs, record, job);
  run.run(options.workers);
  job.report().add("manifest", options.manifest);
  job.report().add("jobs", run.reports());
  job.report().add("done", run.count(State::kDone));
  job.report().add("kept", run.count(State::kKept));
  job.report().add("failed", run.count(State::kFailed));
  job.report().add("not_run", run.count(State::kNotRun) + run.count(State::kWaiting));
  job.report().add("seconds", job.stages().seconds());
  job.report_failure_too();
  if (job.interrupted()) return absl::CancelledError();
  return outcome(run, options.manifest);
}

}  // namespace

void add_batch_command(CommandLine& line) {
  const auto options = std::make_shared<Options>();
  CLI::App& batch = line.add(
      "batch", "Do many jobs, several at a time, on one server; a second run does only what is not done yet",
      [options](Job& job) { return run_batch(job, *options); });
  batch
      .add_option("manifest", options->manifest,
                  "Text file with a job on each line, as it would stand behind \"cumulus\": blur in.exr -o "
                  "out.exr --sigma 8. A job that names a file which an earlier one writes waits for it")
      ->required()
      ->check(CLI::ExistingFile)
      ->type_name("MANIFEST");
  batch
      .add_option("--jobs", options->workers,
                  "At a time; otherwise as many as there are processors, at most 8")
      ->check(whole_number_within(1, kMostWorkers))
      ->type_name("N");
  batch
      .add_option("--record", options->record,
                  "File that keeps account of what is done; otherwise MANIFEST.done")
      ->type_name("FILE");
  batch.add_flag("--anew", options->anew, "Do all jobs, also those that are done");
}

}  // namespace cumulus::cli
