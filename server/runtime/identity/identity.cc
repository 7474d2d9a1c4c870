#include "server/runtime/identity/identity.h"

#include <absl/strings/match.h>

#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

/// The name that a certificate was issued for: its first subject alternative name, or else its common name;
/// empty where the connection has none. gRPC has checked that the client has the key and that the CA issued
/// it.
std::string certificate_name(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> connection = context.auth_context();
  if (connection == nullptr || !connection->IsPeerAuthenticated()) return {};
  const std::vector<grpc::string_ref> names = connection->GetPeerIdentity();
  return names.empty() ? std::string() : std::string(names.front().data(), names.front().size());
}

/// Behind a Unix socket, which is this user's alone.
bool is_local(std::string_view peer) { return peer.rfind("unix:", 0) == 0; }

std::string_view authorization_of(const grpc::ServerContextBase& context) {
  const auto header = context.client_metadata().find("authorization");
  if (header == context.client_metadata().end()) return {};
  return {header->second.data(), header->second.size()};
}

}  // namespace

absl::StatusOr<std::shared_ptr<Identity>> Identity::load(const IdentitySettings& settings,
                                                         Principals principals) {
  std::shared_ptr<Identity> identity(new Identity(settings, std::move(principals)));
  if (const absl::Status loaded = identity->reload(); !loaded.ok()) return loaded;
  return identity;
}

absl::Status Identity::reload() {
  if (settings_.token_file.empty()) return absl::OkStatus();
  absl::StatusOr<Tokens> tokens = Tokens::load(settings_.token_file);
  if (!tokens.ok()) {
    return absl::Status(tokens.status().code(), concat("identity.token_file: ", tokens.status().message()));
  }
  const std::lock_guard lock(mutex_);
  tokens_ = std::make_shared<const Tokens>(*std::move(tokens));
  return absl::OkStatus();
}

absl::StatusOr<Principal> Identity::resolve_token(std::string_view authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  if (!absl::StartsWithIgnoreCase(to_absl_view(authorization), to_absl_view(kScheme))) {
    return unauthenticated("CREDENTIALS_MALFORMED",
                           "the authorization is of a scheme that this server does not know; send "
                           "'authorization: Bearer TOKEN'");
  }
  std::shared_ptr<const Tokens> tokens;
  {
    const std::lock_guard lock(mutex_);
    tokens = tokens_;
  }
  std::optional<Tokens::Holder> holder = tokens->find(authorization.substr(kScheme.size()));
  if (!holder) {
    return unauthenticated("TOKEN_UNKNOWN",
                           "the token is none that this server knows; it was mistyped or taken back: ask its "
                           "operator for another (cumulusd token makes one)");
  }
  return principals_.proven(std::move(holder->name), holder->role);
}

absl::StatusOr<Principal> Identity::resolve(const grpc::ServerContextBase& context) const {
  const std::string peer = context.peer();
  const std::string_view authorization = authorization_of(context);
  if (settings_.certificates && authorization.empty()) {
    std::string name = certificate_name(context);
    const auto role = settings_.certificate_roles.find(name);
    if (!name.empty() && name != kLocalPrincipal) {
      return principals_.proven(std::move(name),
                                role != settings_.certificate_roles.end() ? role->second : Role::kUser);
    }
  }
  return resolve_header(authorization, peer);
}

absl::StatusOr<Principal> Identity::resolve_header(std::string_view authorization,
                                                   std::string_view peer) const {
  if (!required()) {
    Principal anybody = principals_.resolve(peer);
    anybody.role = Role::kAdmin;
    return anybody;
  }
  if (!authorization.empty()) return resolve_token(authorization);
  if (is_local(peer)) return principals_.proven(std::string(kLocalPrincipal), Role::kAdmin);
  return unauthenticated(
      "CREDENTIALS_MISSING",
      concat("this server wants to know who asks; send ",
             settings_.token_file.empty() ? ""
             : settings_.certificates     ? "a token (--token-file, CUMULUS_TOKEN_FILE) or "
                                          : "a token (--token-file, CUMULUS_TOKEN_FILE)",
             settings_.certificates ? "a certificate that its CA issued (--tls-cert and --tls-key)" : ""));
}

absl::StatusOr<Principal> Identity::resolve_user(const grpc::ServerContextBase& context) const {
  absl::StatusOr<Principal> caller = resolve(context);
  if (caller.ok() && caller->role == Role::kMetrics) {
    caller = permission_denied("ROLE_FORBIDS",
                               concat(caller->name, " has the role metrics, which reads metrics and nothing ",
                                      "else; use a token of role user"));
  }
  return caller;
}

absl::Status require_admin(const Principal& caller, std::string_view what) {
  if (caller.role == Role::kAdmin) return absl::OkStatus();
  return permission_denied("ROLE_FORBIDS",
                           concat(what, " is for admins, and ", caller.name, " has the role ",
                                  role_name(caller.role), "; use a token or a certificate of role admin"));
}

}  // namespace cumulus::server
