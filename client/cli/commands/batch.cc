#include "cli/batch/batch.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/app/checks.h"
#include "cli/app/command_line.h"
#include "cli/batch/manifest.h"
#include "cli/batch/record.h"

namespace cumulus::cli {
namespace {

constexpr int kMostWorkers = 64;

struct Options {
  std::string manifest;
  std::string record;
  BatchOptions batch = {.workers = default_workers()};
  double progress = absl::ToDoubleSeconds(BatchOptions().progress);
  bool anew = false;
};

absl::Status run_batch_command(Job& job, const Options& options) {
  const absl::StatusOr<std::vector<ManifestJob>> jobs = read_manifest(options.manifest);
  if (!jobs.ok()) return jobs.status();
  std::string place = options.record;
  if (place.empty() && options.manifest != "-") place = options.manifest + ".done";
  BatchRecord record(place);
  if (!options.anew) record.read();
  if (!job.dry_run()) {
    if (absl::Status opened = record.open(options.anew); !opened.ok()) return opened;
  }
  BatchOptions batch = options.batch;
  batch.manifest = options.manifest;
  batch.progress = absl::Seconds(options.progress);
  return run_batch(job, *jobs, record, batch);
}

void add_ways(CLI::App& command, Options& options) {
  CLI::Option* keep_going = command.add_flag("--keep-going")
                                ->description(
                                    "Do what can be done where a job fails: all but those that need it (the "
                                    "default)");
  command.add_flag("--fail-fast", options.batch.fail_fast, "Begin no job after one has failed")
      ->excludes(keep_going);
  command.add_flag("--json-lines", options.batch.json_lines,
                   "Print one JSON object on a line as each job ends, and one at the end");
  command
      .add_option(
          "--progress", options.progress,
          "Seconds between two lines of progress on standard error, where that is no terminal (10); 0: "
          "none")
      ->check(number_within(0, 1e6))
      ->type_name("SECONDS");
}

}  // namespace

void add_batch_command(CommandLine& line) {
  const auto options = std::make_shared<Options>();
  CLI::App& batch = line.add(
      "batch", "Do many jobs, several at a time, on one server; a second run does only what is not done yet",
      [options](Job& job) { return run_batch_command(job, *options); });
  batch
      .add_option(
          "manifest", options->manifest,
          "Text file with a job on each line, as it would stand behind \"cumulus\": blur in.exr -o "
          "out.exr --sigma 8; or, for each file that fits: blur maps/*.exr -o out/{stem}.exr --sigma 8. A "
          "job that names a file which an earlier one writes waits for it. -: standard input")
      ->required()
      ->check([](const std::string& path) {
        return path == "-" || std::filesystem::exists(path) ? "" : "there is no file " + path;
      })
      ->type_name("MANIFEST");
  batch
      .add_option("--jobs", options->batch.workers,
                  "At a time; otherwise as many as there are processors, at most 8")
      ->check(whole_number_within(1, kMostWorkers))
      ->type_name("N");
  batch
      .add_option(
          "--record", options->record,
          "File that keeps account of what is done; otherwise MANIFEST.done, and none of standard input")
      ->type_name("FILE");
  batch.add_flag("--anew", options->anew, "Do all jobs, also those that are done");
  add_ways(batch, *options);
}

}  // namespace cumulus::cli
