#pragma once

#include <functional>
#include <map>
#include <string>

#include "cumulus/config/v1/config.pb.h"
#include "server/runtime/configuration_fields.h"
#include "server/runtime/principal.h"

namespace cumulus::server {

/// Files in PEM; all empty: there is no TLS.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string client_ca;  // empty: clients are asked for no certificate

  bool given() const { return !certificate.empty(); }
};

/// How callers show who they are.
struct IdentitySettings {
  std::string token_file;  // empty: there are no tokens
  bool certificates = false;
  std::map<std::string, Role, std::less<>> certificate_roles;  // by name; all others are users

  /// Whether callers have to say who they are.
  bool required() const { return certificates || !token_file.empty(); }
};

/// Image files that requests may name.
struct FileRootSettings {
  std::string folder;  // empty: none
  Role role = Role::kUser;
};

TlsFiles resolve_tls(const config::v1::Tls& config, Fields& fields);
IdentitySettings resolve_identity(const config::v1::ServerConfig& config, Fields& fields);
FileRootSettings resolve_file_root(const config::v1::FileRoot& config, Fields& fields);

}  // namespace cumulus::server
