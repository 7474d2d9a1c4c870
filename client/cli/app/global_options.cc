#include "cli/app/global_options.h"

#include <absl/strings/str_cat.h>

#include <CLI/App.hpp>
#include <cstdlib>

#include "cli/app/checks.h"
#include "cli/files/output.h"

namespace cumulus::cli {

void add_global_options(CLI::App& app, GlobalOptions& options) {
  app.footer(
      "Without --server, and without CUMULUS_SERVER, the command starts a cumulusd of its own and stops it "
      "at the end.\n"
      "Exit codes: 0 done, 1 the job failed, 2 the command line was wrong, 3 no server, 128 + N ended by "
      "signal N (130: Ctrl-C).\n"
      "cumulus COMMAND --help, or cumulus help COMMAND, says more of a command.");
  app.set_version_flag("--version", std::string("cumulus ") + CUMULUS_VERSION);
  CLI::Option* server =
      app.add_option("--server", options.server,
                     "The server: HOST:PORT or unix:PATH. Without it and without --backend, that of the "
                     "variable CUMULUS_SERVER; without that, one of the command's own")
          ->type_name("ADDRESS");
  app.add_option(
         "--backend", options.backend,
         "Start a server of the command's own on this backend, cpu or cuda, even where CUMULUS_SERVER "
         "names another")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->excludes(server)
      ->type_name("NAME");
  app.add_option("--wait-for-server", options.wait_for_server,
                 "Seconds to wait for the server to serve, where it does not yet")
      ->check(number_within(0, 1e6))
      ->type_name("SECONDS");
  app.add_flag("--dry-run", options.dry_run,
               "Read the input, have the server check the call, and compute and write nothing");
  app.add_flag("--json", options.json, "Print one JSON object, also of what fails: docs/report.schema.json");
  app.add_flag_callback("--no-clobber", keep_existing_files, "Replace no file that is there");
}

std::string take_server_from_environment(GlobalOptions& options) {
  const char* variable = std::getenv("CUMULUS_SERVER");
  const std::string named = variable == nullptr ? "" : variable;
  if (named.empty() || !options.server.empty()) return "";
  if (options.backend.empty()) {
    options.server = named;
    return "";
  }
  return absl::StrCat("--backend ", options.backend,
                      " starts a server of the command's own; CUMULUS_SERVER (", named, ") is not used");
}

}  // namespace cumulus::cli
