#include "library/credentials.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

namespace cumulus {
namespace {

namespace fs = std::filesystem;

constexpr char kUnix[] = "unix:";

absl::StatusOr<std::string> read_file(const std::string& what, const std::string& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || fs::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": cannot read '", path, "': ", file ? "it is a folder" : std::strerror(errno)));
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::StatusOr<std::string> read_authorization(const std::string& target, const Credentials& credentials) {
  absl::StatusOr<std::string> token = read_file("token_file", credentials.token_file);
  if (!token.ok()) return token.status();
  absl::StripAsciiWhitespace(&*token);
  const bool clean = std::all_of(token->begin(), token->end(), absl::ascii_isgraph);
  if (token->empty() || !clean) {
    return absl::InvalidArgumentError(
        absl::StrCat("token_file: '", credentials.token_file,
                     "' does not hold one token; put into it what `cumulusd token` printed"));
  }
  if (credentials.tls_ca.empty() && !is_this_machine(target)) {
    return absl::InvalidArgumentError(
        absl::StrCat("token_file: the token would travel to ", target,
                     " unencrypted; give the authority of the server's certificate too (--tls-ca, "
                     "CUMULUS_TLS_CA), or no token"));
  }
  return absl::StrCat("Bearer ", *token);
}

/// gRPC takes port 443 where an address has none, and of what is no port what is left of it in 16 bits.
/// Of a page's address, http://..., it says after a while that it finds none.
absl::Status check_address(const std::string& target) {
  if (const std::size_t scheme = target.find("://"); scheme != std::string::npos &&
                                                     target.compare(0, scheme, "dns") != 0 &&
                                                     target.compare(0, scheme, "xds") != 0) {
    return absl::InvalidArgumentError(absl::StrCat("server: is ", target,
                                                   "; HOST:PORT with a port of 1 to 65535, without ",
                                                   target.substr(0, scheme), "://, is right"));
  }
  const std::size_t colon = target.rfind(':');
  int port = 0;
  const bool right = colon != std::string::npos && absl::SimpleAtoi(target.substr(colon + 1), &port) &&
                     port >= 1 && port <= 65535;
  if (right) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("server: is ", target.empty() ? "empty" : target,
                   "; HOST:PORT with a port of 1 to 65535, or unix:PATH, is right"));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> tls_credentials(const Credentials& credentials) {
  grpc::SslCredentialsOptions options;
  const absl::StatusOr<std::string> authorities = read_file("tls_ca", credentials.tls_ca);
  if (!authorities.ok()) return authorities.status();
  if (!absl::StrContains(*authorities, "-----BEGIN CERTIFICATE-----")) {
    return absl::InvalidArgumentError(absl::StrCat("tls_ca: '", credentials.tls_ca,
                                                   "' has no certificate in PEM; name the authority's "
                                                   "certificate, not a key"));
  }
  options.pem_root_certs = *authorities;
  if (!credentials.tls_cert.empty()) {
    const absl::StatusOr<std::string> certificate = read_file("tls_cert", credentials.tls_cert);
    if (!certificate.ok()) return certificate.status();
    const absl::StatusOr<std::string> key = read_file("tls_key", credentials.tls_key);
    if (!key.ok()) return key.status();
    options.pem_cert_chain = *certificate;
    options.pem_private_key = *key;
  }
  return grpc::SslCredentials(options);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

fs::path settings_file() {
  if (const std::string named = environment("CUMULUS_CONFIG"); !named.empty()) return named;
  std::string folder = environment("XDG_CONFIG_HOME");
  const std::string home = environment("HOME");
  if (folder.empty() && !home.empty()) folder = absl::StrCat(home, "/.config");
  return folder.empty() ? fs::path() : fs::path(folder) / "cumulus" / "client.conf";
}

struct Field {
  const char* name;
  const char* variable;
  std::string* value;
  bool is_file;
};

std::vector<Field> fields_of(ClientSettings& settings) {
  Credentials& files = settings.credentials;
  return {{"server", "CUMULUS_SERVER", &settings.server, false},
          {"tls_ca", "CUMULUS_TLS_CA", &files.tls_ca, true},
          {"tls_cert", "CUMULUS_TLS_CERT", &files.tls_cert, true},
          {"tls_key", "CUMULUS_TLS_KEY", &files.tls_key, true},
          {"token_file", "CUMULUS_TOKEN_FILE", &files.token_file, true}};
}

/// One line of the file, into the field that it names.
bool take_line(const std::string& line, const fs::path& folder, const std::vector<Field>& fields) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits('=', 1));
  const std::string name(absl::StripAsciiWhitespace(parts.first));
  const std::string value(absl::StripAsciiWhitespace(parts.second));
  const auto field =
      std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return name == f.name; });
  if (field == fields.end() || value.empty()) return false;
  *field->value = field->is_file ? (folder / value).string() : value;
  return true;
}

absl::Status read_settings_file(const fs::path& path, const std::vector<Field>& fields) {
  const absl::StatusOr<std::string> text = read_file("CUMULUS_CONFIG", path.string());
  if (!text.ok()) return text.status();
  int number = 0;
  for (const absl::string_view whole : absl::StrSplit(*text, '\n')) {
    ++number;
    const std::pair<std::string, std::string> parts = absl::StrSplit(whole, absl::MaxSplits('#', 1));
    const std::string line(absl::StripAsciiWhitespace(parts.first));
    if (line.empty() || take_line(line, path.parent_path(), fields)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        path.string(), ":", number, ": '", line,
        "' is no setting; write NAME = VALUE with a NAME of server, tls_ca, tls_cert, tls_key and "
        "token_file"));
  }
  return absl::OkStatus();
}

}  // namespace

bool is_this_machine(const std::string& target) {
  if (absl::StartsWith(target, kUnix)) return true;
  const std::string host = target.substr(0, target.rfind(':'));
  // Of digits and dots: 127.example.com is a name that leads anywhere.
  const bool loopback =
      absl::StartsWith(host, "127.") && host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "[::1]" || loopback;
}

absl::StatusOr<ChannelSecurity> secure(const std::string& target, const Credentials& credentials) {
  ChannelSecurity security;
  security.credentials = grpc::InsecureChannelCredentials();
  if (absl::StartsWith(target, kUnix)) return security;
  if (absl::Status address = check_address(target); !address.ok()) return address;
  if (credentials.tls_cert.empty() != credentials.tls_key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(credentials.tls_key.empty() ? "tls_key" : "tls_cert",
                     " is missing; a client's certificate and its key go together"));
  }
  if (!credentials.tls_cert.empty() && credentials.tls_ca.empty()) {
    return absl::InvalidArgumentError(
        "tls_ca is missing; name the authority of the server's certificate beside the client's own "
        "certificate");
  }
  if (!credentials.token_file.empty()) {
    absl::StatusOr<std::string> authorization = read_authorization(target, credentials);
    if (!authorization.ok()) return authorization.status();
    security.authorization = *std::move(authorization);
  }
  if (!credentials.tls_ca.empty()) {
    absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> tls = tls_credentials(credentials);
    if (!tls.ok()) return tls.status();
    security.credentials = *std::move(tls);
    security.encrypted = true;
  }
  return security;
}

absl::StatusOr<ClientSettings> read_client_settings() {
  ClientSettings settings;
  const std::vector<Field> fields = fields_of(settings);
  const fs::path path = settings_file();
  std::error_code ignored;
  if (!path.empty() && (!environment("CUMULUS_CONFIG").empty() || fs::exists(path, ignored))) {
    if (const absl::Status read = read_settings_file(path, fields); !read.ok()) return read;
  }
  if (!settings.server.empty()) settings.server_from = path.string();
  if (!environment("CUMULUS_SERVER").empty()) settings.server_from = "CUMULUS_SERVER";
  for (const Field& field : fields) {
    if (std::string value = environment(field.variable); !value.empty()) *field.value = std::move(value);
  }
  return settings;
}

}  // namespace cumulus
