#include <pthread.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "cli/app/exit_codes.h"
#include "cli/app/failure.h"
#include "cli/app/invocation.h"
#include "cli/files/output.h"
#include "cli/job/job.h"
#include "proto/heap.h"

namespace cumulus::cli {
namespace {

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
    interrupt.cancel();
    sigwait(&signals, &signal);
    _exit(kJobFailed);
  }).detach();
  return interrupt;
}

/// Where reports go: to standard error where standard output takes a file.
bool print(const std::string& text, bool output_is_taken) {
  FILE* const stream = output_is_taken ? stderr : stdout;
  return std::fputs(text.c_str(), stream) >= 0 && std::fflush(stream) == 0;
}

/// Of a command line, before it is read.
bool asks_for_json(const std::vector<std::string>& words) {
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

bool writes_to_standard_output(const Invocation& invocation) {
  const std::vector<std::string> outputs = invocation.outputs();
  return std::any_of(outputs.begin(), outputs.end(), is_standard_output);
}

int run(const Invocation& invocation, const GlobalOptions& options) {
  const bool taken = writes_to_standard_output(invocation);
  absl::Status status = invocation.check_outputs();
  if (!status.ok()) return fail(status, std::string(status.message()), kJobFailed, options.json);
  Job job(options, cancel_on_signals());
  status = invocation.run(job);
  const bool says_more = status.ok() || job.reports_failure();
  const Report& report = job.report();
  bool printed = true;
  if (says_more && !(options.json && !status.ok()))
    printed = print(options.json ? report.to_json() + "\n" : report.to_text(), taken);
  const auto failed = [&](const std::string& sentence, int code) {
    return fail(status, sentence, code, options.json, says_more ? report : Report(), taken);
  };
  if (absl::IsCancelled(status)) return failed("interrupted", kJobFailed);
  if (job.no_server()) return failed(std::string(status.message()), kNoServer);
  if (!status.ok()) return failed(invocation.explain(status), kJobFailed);
  if (printed) return kDone;
  std::fputs("cumulus: cannot write to standard output\n", stderr);
  return kJobFailed;
}

int main(int argc, char** argv) {
  GlobalOptions options;
  Invocation invocation("Tables and filters for renderers, on a GPU or on the CPU, by a cumulusd.");
  CLI::App& app = invocation.app();
  app.footer(
      "Without --server, and without CUMULUS_SERVER, the command starts a cumulusd of its own and stops it "
      "at the end.\n"
      "Exit codes: 0 done, 1 the job failed, 2 the command line was wrong, 3 no server.");
  app.set_version_flag("--version", std::string("cumulus ") + CUMULUS_VERSION);
  CLI::Option* server = app.add_option("--server", options.server, "The server: HOST:PORT or unix:PATH")
                            ->envname("CUMULUS_SERVER");
  app.add_option("--backend", options.backend, "Of a server of its own: cpu or cuda; otherwise it chooses")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->excludes(server);
  app.add_flag("--json", options.json, "Print one JSON object, also of what fails: docs/report.schema.json");
  app.add_flag_callback("--no-clobber", keep_existing_files, "Replace no file that is there");
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    invocation.read(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(absl::InvalidArgumentError(""), invocation.explain(error), kWrongCommandLine,
                asks_for_json(words));
  }
  return run(invocation, options);
}

}  // namespace
}  // namespace cumulus::cli

int main(int argc, char** argv) {
  cumulus::keep_heap();
  return cumulus::cli::main(argc, argv);
}
