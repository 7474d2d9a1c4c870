#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "server/runtime/identity/settings.h"
#include "server/runtime/identity/tokens.h"
#include "server/runtime/principal.h"

namespace cumulus::server {

/// Who asks. Thread-safe.
class Identity {
 public:
  /// Callers are known by their addresses alone, and may all do the same.
  explicit Identity(Principals principals) : principals_(std::move(principals)) {}
  /// Reads the files. INVALID_ARGUMENT or NOT_FOUND naming one.
  static absl::StatusOr<std::shared_ptr<Identity>> load(const IdentitySettings& settings,
                                                        Principals principals);

  bool required() const { return settings_.required(); }

  /// Of a call: the holder of its token ("authorization: Bearer ..."), else of its connection's certificate,
  /// else the owner of this machine's socket. UNAUTHENTICATED where callers have to say who they are and this
  /// one does not. Where they need not, all are admins.
  absl::StatusOr<Principal> resolve(const grpc::ServerContextBase& context) const;
  /// As resolve; PERMISSION_DENIED for those who may only read metrics.
  absl::StatusOr<Principal> resolve_user(const grpc::ServerContextBase& context) const;
  /// The holder of a token, as an HTTP request's authorization header has it; `peer` as of gRPC.
  absl::StatusOr<Principal> resolve_header(std::string_view authorization, std::string_view peer) const;

  /// Reads the tokens anew; where that fails, the old ones stay. What is under way goes on.
  absl::Status reload();

 private:
  Identity(IdentitySettings settings, Principals principals)
      : settings_(std::move(settings)), principals_(std::move(principals)) {}
  absl::StatusOr<Principal> resolve_token(std::string_view authorization) const;

  const IdentitySettings settings_;
  const Principals principals_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Tokens> tokens_ = std::make_shared<const Tokens>();
};

/// PERMISSION_DENIED unless the caller is an admin. `what` is what only admins may see.
absl::Status require_admin(const Principal& caller, std::string_view what);

}  // namespace cumulus::server
