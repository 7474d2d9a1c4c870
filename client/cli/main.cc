#include <pthread.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "cli/app/exit_codes.h"
#include "cli/app/invocation.h"
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

int fail(const std::string& sentence, int code) {
  std::fprintf(stderr, "cumulus: %s\n", sentence.c_str());
  return code;
}

bool print(const Job& job, const Report& report) {
  const std::string text = job.json() ? report.to_json() + "\n" : report.to_text();
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
}

int run(const Invocation& invocation, const GlobalOptions& options) {
  if (const absl::Status status = invocation.check_outputs(); !status.ok())
    return fail(std::string(status.message()), kJobFailed);
  Job job(options, cancel_on_signals());
  const absl::Status status = invocation.run(job);
  const bool printed = (!status.ok() && !job.reports_failure()) || print(job, job.report());
  if (absl::IsCancelled(status)) return fail("interrupted", kJobFailed);
  if (job.no_server()) return fail(std::string(status.message()), kNoServer);
  if (!status.ok()) return fail(invocation.explain(status), kJobFailed);
  return printed ? kDone : fail("cannot write to standard output", kJobFailed);
}

void add_global_options(CLI::App& app, GlobalOptions& options) {
  CLI::Option* server = app.add_option("--server", options.server, "The server: HOST:PORT or unix:PATH")
                            ->envname("CUMULUS_SERVER");
  app.add_option("--backend", options.backend, "Of a server of its own: cpu or cuda; otherwise it chooses")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->excludes(server);
  app.add_flag("--json", options.json, "Print one JSON object");
  Credentials& files = options.credentials;
  const auto add_file = [&app](const char* name, std::string& file, const char* what) {
    app.add_option(name, file, what)->type_name("FILE");
  };
  add_file("--tls-ca", files.tls_ca, "Authorities of the server's certificate, PEM: encrypts the connection");
  add_file("--tls-cert", files.tls_cert, "This client's certificate, PEM");
  add_file("--tls-key", files.tls_key, "The key of that certificate, PEM");
  add_file("--token-file", files.token_file, "The token of this client");
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
  add_global_options(app, options);
  const absl::StatusOr<ClientSettings> settings = read_client_settings();
  if (settings.ok()) {  // what flags then override
    options.server = settings->server;
    options.credentials = settings->credentials;
  }
  try {
    invocation.read({argv + 1, argv + argc});
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(invocation.explain(error), kWrongCommandLine);
  }
  if (!settings.ok()) return fail(std::string(settings.status().message()), kWrongCommandLine);
  if (!options.backend.empty()) options.server.clear();  // which the configuration file named
  return run(invocation, options);
}

}  // namespace
}  // namespace cumulus::cli

int main(int argc, char** argv) {
  cumulus::keep_heap();
  return cumulus::cli::main(argc, argv);
}
