#include "server/runtime/identity/settings.h"

#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

Role resolve_role(std::string_view path, config::v1::Identity::Role role, Fields& fields) {
  switch (role) {
    case config::v1::Identity::ROLE_UNSPECIFIED:
    case config::v1::Identity::USER:
      return Role::kUser;
    case config::v1::Identity::ADMIN:
      return Role::kAdmin;
    case config::v1::Identity::METRICS:
      return Role::kMetrics;
    default:
      fields.complain(path, concat("is ", static_cast<int>(role), "; use USER, ADMIN or METRICS"));
      return Role::kUser;
  }
}

}  // namespace

TlsFiles resolve_tls(const config::v1::Tls& config, Fields& fields) {
  if (config.certificate().empty() != config.key().empty()) {
    fields.complain(config.key().empty() ? "tls.key" : "tls.certificate",
                    "is missing; TLS takes a certificate and its key (--tls-cert, --tls-key)");
  }
  if (!config.client_ca().empty() && config.certificate().empty())
    fields.complain("tls.client_ca", "is of no use without tls.certificate and tls.key; give them too");
  return {config.certificate(), config.key(), config.client_ca()};
}

IdentitySettings resolve_identity(const config::v1::ServerConfig& config, Fields& fields) {
  IdentitySettings settings;
  settings.token_file = config.identity().token_file();
  settings.certificates = !config.tls().client_ca().empty();
  for (const auto& [name, role] : config.identity().certificate_roles()) {
    const std::string path = concat("identity.certificate_roles[\"", name, "\"]");
    if (!settings.certificates)
      fields.complain(path, "is of no use without tls.client_ca, which issues the certificates; give it too");
    settings.certificate_roles.emplace(name, resolve_role(path, role, fields));
  }
  return settings;
}

FileRootSettings resolve_file_root(const config::v1::FileRoot& config, Fields& fields) {
  FileRootSettings settings{config.folder(), resolve_role("file_root.role", config.role(), fields)};
  if (settings.role == Role::kMetrics)
    fields.complain("file_root.role", "is METRICS, who may not call at all; use USER or ADMIN");
  return settings;
}

}  // namespace cumulus::server
