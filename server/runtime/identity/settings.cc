#include "server/runtime/identity/settings.h"

#include "server/pipeline/text.h"

namespace cumulus::server {

TlsFiles resolve_tls(const config::v1::Tls& config, Fields& fields) {
  if (config.certificate().empty() != config.key().empty()) {
    fields.complain(config.key().empty() ? "tls.key" : "tls.certificate",
                    "is missing; TLS takes a certificate and its key (--tls-cert, --tls-key)");
  }
  if (!config.client_ca().empty() && config.certificate().empty())
    fields.complain("tls.client_ca", "is of no use without tls.certificate and tls.key; give them too");
  return {config.certificate(), config.key(), config.client_ca()};
}

IdentitySettings resolve_identity(const ServerConfig& config, Fields& fields) {
  IdentitySettings settings;
  settings.token_file = config.identity().token_file();
  settings.certificates = !config.tls().client_ca().empty();
  for (const auto& [name, role] : config.identity().certificate_roles()) {
    const std::string path = concat("identity.certificate_roles[\"", name, "\"]");
    if (!settings.certificates)
      fields.complain(path, "is of no use without tls.client_ca, which issues the certificates; give it too");
    switch (role) {
      case config::v1::Identity::ROLE_UNSPECIFIED:
      case config::v1::Identity::USER:
        settings.certificate_roles.emplace(name, Role::kUser);
        break;
      case config::v1::Identity::ADMIN:
        settings.certificate_roles.emplace(name, Role::kAdmin);
        break;
      case config::v1::Identity::METRICS:
        settings.certificate_roles.emplace(name, Role::kMetrics);
        break;
      default:
        fields.complain(path, concat("is ", static_cast<int>(role), "; use USER, ADMIN or METRICS"));
    }
  }
  return settings;
}

}  // namespace cumulus::server
