#include <pthread.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/job.h"

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

int fail(const std::string& sentence, int code) {
  std::fprintf(stderr, "cumulus: %s\n", sentence.c_str());
  return code;
}

/// "cumulus blur" where that has been read, so that its options are what is told.
std::string command_of(const CLI::App& app) {
  std::string words = app.get_name();
  for (const CLI::App* inner : app.get_subcommands()) words += ' ' + command_of(*inner);
  return words;
}

/// Of a status that the network made, not the server.
std::string lost_server(const absl::Status& status) {
  return "the server ended, or cannot be reached any more; run the command again once it serves (" +
         std::string(status.message()) + ")";
}

/// What went wrong. A field of the request that the command has an option for is named as that option.
std::string message_of(const absl::Status& status, const CLI::App& command) {
  const std::vector<FieldViolation> violations = field_violations(status);
  if (!violations.empty()) {
    std::string option = "--" + violations.front().field;
    std::replace(option.begin(), option.end(), '_', '-');
    if (command.get_option_no_throw(option) != nullptr) return option + ": " + violations.front().description;
  }
  return std::string(status.message());
}

int run(const CommandLine& line, const GlobalOptions& options, const CLI::App& command) {
  if (const absl::Status status = line.check_outputs(); !status.ok())
    return fail(std::string(status.message()), kJobFailed);
  Job job(options, cancel_on_signals());
  const absl::Status status = line.chosen()(job);
  if (!status.ok()) {
    if (absl::IsCancelled(status)) return fail("interrupted", kJobFailed);
    if (job.no_server()) return fail(std::string(status.message()), kNoServer);
    return fail(absl::IsUnavailable(status) && error_reason(status).empty() ? lost_server(status)
                                                                            : message_of(status, command),
                kJobFailed);
  }
  const std::string text = options.json ? job.report().to_json() + "\n" : job.report().to_text();
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    return fail("cannot write to standard output", kJobFailed);
  }
  return kDone;
}

int main(int argc, char** argv) {
  GlobalOptions options;
  CLI::App app("Tables and filters for renderers, on a GPU or on the CPU, by a cumulusd.", "cumulus");
  app.footer(
      "Without --server, and without CUMULUS_SERVER, the command starts a cumulusd of its own and stops it "
      "at the end.\n"
      "Exit codes: 0 done, 1 the job failed, 2 the command line was wrong, 3 no server.");
  app.require_subcommand(1);
  app.fallthrough();  // --json and --server may follow the command, too
  app.set_version_flag("--version", std::string("cumulus ") + CUMULUS_VERSION);
  CLI::Option* server = app.add_option("--server", options.server, "The server: HOST:PORT or unix:PATH")
                            ->envname("CUMULUS_SERVER");
  app.add_option("--backend", options.backend, "Of a server of its own: cpu or cuda; otherwise it chooses")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->excludes(server);
  app.add_flag("--json", options.json, "Print one JSON object");
  CommandLine line(app);
  add_commands(line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(explain(app, error) + "; " + command_of(app) + " --help tells what is possible",
                kWrongCommandLine);
  }
  return run(line, options, innermost(app));
}

}  // namespace
}  // namespace cumulus::cli

int main(int argc, char** argv) { return cumulus::cli::main(argc, argv); }
