#include <pthread.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/app/exit_codes.h"
#include "cli/app/failure.h"
#include "cli/app/global_options.h"
#include "cli/app/grpc_lines.h"
#include "cli/app/invocation.h"
#include "cli/batch/batch.h"
#include "cli/files/interruption.h"
#include "cli/files/output.h"
#include "cli/job/job.h"
#include "proto/process.h"

namespace cumulus::cli {
namespace {

using Words = std::vector<std::string>;

/// From now on Ctrl-C and SIGTERM stop the job's calls, so that what was started is ended in order; a
/// second one ends the program at once.
Cancellation cancel_on_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // of all threads: none has been started yet
  const Cancellation cancellation;
  std::thread([signals, cancellation] {
    int signal = 0;
    sigwait(&signals, &signal);
    interrupt(signal);
    cancellation.cancel();
    sigwait(&signals, &signal);
    _exit(kSignal + signal);
  }).detach();
  return cancellation;
}

/// To standard error where standard output takes a file.
bool print(const std::string& text, bool output_is_taken) {
  FILE* const stream = output_is_taken ? stderr : stdout;
  return std::fputs(text.c_str(), stream) >= 0 && std::fflush(stream) == 0;
}

/// Of a command line, before it is read.
bool asks_for_json(const Words& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, "--json") != end;
}

/// Says what went wrong to people, and with `json` also to programs, beside what the report says already.
int fail(const absl::Status& status, const std::string& sentence, int code, bool json, Report report = {},
         bool output_is_taken = false) {
  std::fprintf(stderr, "cumulus: %s\n", sentence.c_str());
  if (!json) return code;
  report.add("error", describe_failure(status.code(), code, sentence));
  print(report.to_json() + "\n", output_is_taken);
  return code;
}

/// The exit code of a job that ended with `status`. `explanation` is for a status that is not OK.
int conclude(Job& job, const absl::Status& status, const std::string& explanation, bool output_is_taken) {
  const bool says_more = status.ok() || job.reports_failure();
  bool printed = true;
  if (says_more && (status.ok() || !job.json())) printed = print(job.output(), output_is_taken);
  const auto failed = [&](const std::string& sentence, int code) {
    return fail(status, sentence, code, job.json(), says_more ? job.report() : Report(), output_is_taken);
  };
  // What waited for a server that did not answer has given up by the same signal.
  const bool waited = absl::IsUnavailable(status) || job.no_server();
  const bool cut_short = absl::IsCancelled(status) || waited;
  if (cut_short && interrupting_signal() != 0) return failed("interrupted", kSignal + interrupting_signal());
  if (job.no_server()) return failed(std::string(status.message()), kNoServer);
  if (!status.ok()) return failed(explanation, kJobFailed);
  if (printed) return kDone;
  std::fputs("cumulus: cannot write to standard output\n", stderr);
  return kJobFailed;
}

int run(const Invocation& invocation, const GlobalOptions& options) {
  absl::Status status = invocation.check_outputs();
  if (!status.ok()) return fail(status, std::string(status.message()), kJobFailed, options.json);
  const std::vector<std::string> outputs = invocation.outputs();
  const bool taken = std::any_of(outputs.begin(), outputs.end(), is_standard_output);
  Job job(options, cancel_on_signals());
  status = invocation.run(job);
  return conclude(job, status, invocation.explain(status), taken);
}

/// A command for several inputs, each with an output of its own.
int run_each(const std::vector<ManifestJob>& jobs, const GlobalOptions& options) {
  Job job(options, cancel_on_signals());
  BatchRecord no_record("");
  const absl::Status status = run_batch(job, jobs, no_record, {.workers = default_workers()});
  return conclude(job, status, std::string(status.message()), false);
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
    const auto wrong = [&](const absl::Status& status) {
      return fail(status, std::string(status.message()), kWrongCommandLine, asks_for_json(words));
    };
    if (!jobs.ok()) return wrong(jobs.status());
    const auto first = read_invocation(jobs->front().words);
    if (!first.ok()) return wrong(first.status());
    const absl::StatusOr<GlobalOptions> options = options_of(**first);
    if (!options.ok()) return wrong(options.status());
    return run_each(*jobs, *options);
  }
  Invocation invocation;
  try {
    invocation.read(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return invocation.app().exit(error);  // --help, --version
    return fail(absl::InvalidArgumentError(""), invocation.explain(error), kWrongCommandLine,
                asks_for_json(words));
  }
  const absl::StatusOr<GlobalOptions> options = options_of(invocation);
  if (!options.ok()) {
    return fail(options.status(), std::string(options.status().message()), kWrongCommandLine,
                asks_for_json(words));
  }
  return run(invocation, *options);
}

}  // namespace
}  // namespace cumulus::cli

int main(int argc, char** argv) {
  cumulus::prepare_process();
  cumulus::cli::let_grpc_say_assertions_only();
  return cumulus::cli::main({argv + 1, argv + argc});
}
