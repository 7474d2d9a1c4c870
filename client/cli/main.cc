#include <pthread.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/app/exit_codes.h"
#include "cli/app/global_options.h"
#include "cli/app/invocation.h"
#include "cli/batch/batch.h"
#include "cli/job/job.h"
#include "proto/heap.h"

namespace cumulus::cli {
namespace {

using Words = std::vector<std::string>;

std::atomic<int> stopped_by = 0;

/// From now on Ctrl-C and SIGTERM stop the job's calls, so that what was started is ended in order; a
/// second one ends the program at once.
Cancellation cancel_on_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // of all threads: none has been started yet
  const Cancellation interrupt;
  std::thread([signals, interrupt] {
    int signal = 0;
    sigwait(&signals, &signal);
    stopped_by = signal;
    interrupt.cancel();
    sigwait(&signals, &signal);
    _exit(kSignal + signal);
  }).detach();
  return interrupt;
}

int fail(const std::string& sentence, int code) {
  std::fprintf(stderr, "cumulus: %s\n", sentence.c_str());
  return code;
}

bool print(const Job& job) {
  return std::fputs(job.output().c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
}

/// The exit code of a job that ended with `status`. `explanation` is for a status that is not OK.
int conclude(Job& job, const absl::Status& status, const std::string& explanation) {
  const bool printed = (!status.ok() && !job.reports_failure()) || print(job);
  if (absl::IsCancelled(status) && stopped_by != 0) return fail("interrupted", kSignal + stopped_by);
  if (job.no_server()) return fail(std::string(status.message()), kNoServer);
  if (!status.ok()) return fail(explanation, kJobFailed);
  return printed ? kDone : fail("cannot write to standard output", kJobFailed);
}

int run(const Invocation& invocation, const GlobalOptions& options) {
  if (const absl::Status status = invocation.check_outputs(); !status.ok())
    return fail(std::string(status.message()), kJobFailed);
  Job job(options, cancel_on_signals());
  const absl::Status status = invocation.run(job);
  return conclude(job, status, invocation.explain(status));
}

/// A command for several inputs, each with an output of its own.
int run_each(const std::vector<ManifestJob>& jobs, const GlobalOptions& options) {
  Job job(options, cancel_on_signals());
  BatchRecord no_record("");
  const absl::Status status = run_batch(job, jobs, no_record, {.workers = default_workers()});
  return conclude(job, status, std::string(status.message()));
}

absl::StatusOr<GlobalOptions> options_of(const Invocation& invocation) {
  GlobalOptions options = invocation.options();
  const absl::StatusOr<std::string> note = take_client_settings(options);
  if (!note.ok()) return note.status();
  if (!note->empty()) std::fprintf(stderr, "cumulus: %s\n", note->c_str());
  return options;
}

int main(const Words& words) {
  if (has_place(words)) {
    std::vector<Word> line;
    for (const std::string& word : words) line.push_back(word_as_typed(word));
    const absl::StatusOr<std::vector<ManifestJob>> jobs = read_line(line);
    if (!jobs.ok()) return fail(std::string(jobs.status().message()), kWrongCommandLine);
    const auto first = read_invocation(jobs->front().words);
    if (!first.ok()) return fail(std::string(first.status().message()), kWrongCommandLine);
    const absl::StatusOr<GlobalOptions> options = options_of(**first);
    if (!options.ok()) return fail(std::string(options.status().message()), kWrongCommandLine);
    return run_each(*jobs, *options);
  }
  Invocation invocation;
  try {
    invocation.read(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return invocation.app().exit(error);  // --help, --version
    return fail(invocation.explain(error), kWrongCommandLine);
  }
  const absl::StatusOr<GlobalOptions> options = options_of(invocation);
  if (!options.ok()) return fail(std::string(options.status().message()), kWrongCommandLine);
  return run(invocation, *options);
}

}  // namespace
}  // namespace cumulus::cli

int main(int argc, char** argv) {
  cumulus::keep_heap();
  constexpr int kKeep = 0;
  setenv("GRPC_VERBOSITY", "NONE", kKeep);  // what gRPC would say, the command's own message says
  return cumulus::cli::main({argv + 1, argv + argc});
}
