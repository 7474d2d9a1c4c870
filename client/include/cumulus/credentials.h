#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace cumulus {

/// How a client knows its server, and how the server knows the client. All fields are names of files.
struct Credentials {
  /// Authorities that may have issued the server's certificate, PEM. Empty: the connection is not encrypted.
  std::string tls_ca = {};
  /// The client's own certificate and its key, PEM, for servers that ask for one. Both or neither.
  std::string tls_cert = {};
  std::string tls_key = {};
  /// Holds the token that `cumulusd token` said, for servers that ask for one. It travels with every call,
  /// and only over TLS or to this machine.
  std::string token_file = {};
};

struct ClientSettings {
  std::string server = {};       // HOST:PORT, [HOST6]:PORT or unix:PATH; empty: none is named
  std::string server_from = {};  // CUMULUS_SERVER or the configuration file's name
  Credentials credentials = {};
};

/// What the environment says (CUMULUS_SERVER, CUMULUS_TLS_CA, CUMULUS_TLS_CERT, CUMULUS_TLS_KEY,
/// CUMULUS_TOKEN_FILE), and, for what it leaves open, the configuration file: CUMULUS_CONFIG, or else
/// cumulus/client.conf in XDG_CONFIG_HOME, or else in ~/.config. A line of it is "name = value", with the
/// names server, tls_ca, tls_cert, tls_key and token_file; what follows a # says nothing, and files are named
/// relative to its folder. There need not be one, unless CUMULUS_CONFIG names it. INVALID_ARGUMENT naming the
/// file and the line that is wrong.
absl::StatusOr<ClientSettings> read_client_settings();

}  // namespace cumulus
