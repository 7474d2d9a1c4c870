#include <absl/time/time.h>

#include <cmath>
#include <optional>
#include <string>

#include "cumulus/client.h"
#include "cumulus/cumulus.h"
#include "library/c/handles.h"

namespace cumulus::c {
namespace {

std::optional<Credentials> credentials_of(const cumulus_connect_options& options) {
  const Credentials named{text_of(options.tls_ca), text_of(options.tls_cert), text_of(options.tls_key),
                          text_of(options.token_file)};
  const bool none =
      named.tls_ca.empty() && named.tls_cert.empty() && named.tls_key.empty() && named.token_file.empty();
  return none ? std::nullopt : std::optional<Credentials>(named);
}

Outcome check_options(const cumulus_connect_options& options) {
  if (options.size != sizeof(cumulus_connect_options)) {
    return refuse("options.size", absl::StrCat("is ", options.size, ", and this library's structure has ",
                                               sizeof(cumulus_connect_options),
                                               " bytes; begin with CUMULUS_CONNECT_OPTIONS of its header"));
  }
  const auto positive = [](double seconds) { return std::isfinite(seconds) && seconds > 0; };
  if (!positive(options.connect_timeout_seconds)) {
    return refuse("options.connect_timeout_seconds", "has to be finite and more than 0");
  }
  if (!positive(options.call_timeout_seconds)) {
    return refuse("options.call_timeout_seconds", "has to be finite and more than 0");
  }
  return absl::OkStatus();
}

Outcome address_of(const cumulus_connect_options& options, std::string& address) {
  address = text_of(options.address);
  if (!address.empty()) return absl::OkStatus();
  const absl::StatusOr<ClientSettings> settings = read_client_settings();
  if (!settings.ok()) return settings.status();
  address = settings->server;
  if (address.empty()) {
    return refuse("options.address",
                  "names no server, and neither does CUMULUS_SERVER; give HOST:PORT or unix:PATH");
  }
  return absl::OkStatus();
}

Outcome connect(const cumulus_connect_options& options, cumulus_connection** connection) {
  if (Outcome checked = check_options(options); !checked.ok()) return checked;
  std::string address;
  if (Outcome found = address_of(options, address); !found.ok()) return found;
  const absl::StatusOr<Client> client =
      Client::connect(address, {.connect_timeout = absl::Seconds(options.connect_timeout_seconds),
                                .call_timeout = absl::Seconds(options.call_timeout_seconds),
                                .credentials = credentials_of(options)});
  if (!client.ok()) return client.status();
  absl::StatusOr<Session> session = client->create_session({.device = text_of(options.device)});
  if (!session.ok()) return session.status();
  *connection = new cumulus_connection{*std::move(session)};
  return absl::OkStatus();
}

}  // namespace
}  // namespace cumulus::c

cumulus_code cumulus_connect(const cumulus_connect_options* options, cumulus_connection** connection,
                             cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"options", options}, {"connection", connection}});
    if (connection != nullptr) *connection = nullptr;
    return given.ok() ? cumulus::c::connect(*options, connection) : given;
  });
}

void cumulus_connection_release(cumulus_connection* connection) { delete connection; }
