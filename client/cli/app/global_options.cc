#include "cli/app/global_options.h"

#include <absl/strings/str_cat.h>

#include <CLI/App.hpp>

#include "cli/app/checks.h"
#include "cli/files/output.h"
#include "cumulus/credentials.h"

namespace cumulus::cli {

void add_global_options(CLI::App& app, GlobalOptions& options) {
  app.footer(
      "Without --server, and without CUMULUS_SERVER, the command starts a cumulusd of its own and stops it "
      "at the end.\n"
      "CUMULUS_TLS_CA, CUMULUS_TLS_CERT, CUMULUS_TLS_KEY and CUMULUS_TOKEN_FILE stand for the options of "
      "these names, and all of them may be in ~/.config/cumulus/client.conf.\n"
      "Exit codes: 0 done, 1 the job failed, 2 the command line was wrong, 3 no server, 128 + N ended by "
      "signal N (130: Ctrl-C).\n"
      "cumulus COMMAND --help, or cumulus help COMMAND, says more of a command.");
  app.set_version_flag("--version", std::string("cumulus ") + CUMULUS_VERSION);
  CLI::Option* server =
      app.add_option("--server", options.server,
                     "The server: HOST:PORT or unix:PATH. Without it and without --backend, that of the "
                     "variable CUMULUS_SERVER or of the configuration file; without that, one of the "
                     "command's own")
          ->type_name("ADDRESS");
  app.add_option(
         "--backend", options.backend,
         "Start a server of the command's own on this backend, cpu or cuda, even where CUMULUS_SERVER "
         "names another")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->excludes(server)
      ->type_name("NAME");
  app.add_option("--wait-for-server", options.wait_for_server,
                 "Seconds to wait for the server to serve, where it does not yet (0), or no more (30)")
      ->check(number_within(0, 1e6))
      ->type_name("SECONDS");
  app.add_flag("--dry-run", options.dry_run,
               "Read the input, have the server check the call, and compute and write nothing");
  app.add_flag("--json", options.json, "Print one JSON object, also of what fails: docs/report.schema.json");
  app.add_flag_callback("--no-clobber", keep_existing_files, "Replace no file that is there");
  Credentials& files = options.credentials;
  const auto add_file = [&app](const char* name, std::string& file, const char* what) {
    app.add_option(name, file, what)->type_name("FILE");
  };
  add_file("--tls-ca", files.tls_ca, "Authorities of the server's certificate, PEM: encrypts the connection");
  add_file("--tls-cert", files.tls_cert, "This client's certificate, PEM");
  add_file("--tls-key", files.tls_key, "The key of that certificate, PEM");
  add_file("--token-file", files.token_file, "The token of this client");
}

absl::StatusOr<std::string> take_client_settings(GlobalOptions& options) {
  const absl::StatusOr<ClientSettings> settings = read_client_settings();
  if (!settings.ok()) return settings.status();
  Credentials& given = options.credentials;
  const Credentials& set = settings->credentials;
  for (const auto file :
       {&Credentials::tls_ca, &Credentials::tls_cert, &Credentials::tls_key, &Credentials::token_file}) {
    if ((given.*file).empty()) given.*file = set.*file;
  }
  if (settings->server.empty() || !options.server.empty()) return std::string();
  if (options.backend.empty()) {
    options.server = settings->server;
    return std::string();
  }
  return absl::StrCat("--backend ", options.backend, " starts a server of the command's own; ",
                      settings->server_from, " (", settings->server, ") is not used");
}

}  // namespace cumulus::cli
