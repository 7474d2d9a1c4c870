#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "cumulus/credentials.h"

namespace cumulus {

/// Whether a server at `target` is reached without leaving this machine: unix:PATH, localhost, 127.0.0.0/8,
/// [::1].
bool is_this_machine(const std::string& target);

/// Of a connection to one server.
struct ChannelSecurity {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  std::string authorization;  // that every call carries; empty: none
  bool encrypted = false;
};

/// Reads the files. A Unix socket has no need of them: who may open it is known. INVALID_ARGUMENT where they
/// do not go together, or where a token would travel unencrypted.
absl::StatusOr<ChannelSecurity> secure(const std::string& target, const Credentials& credentials);

}  // namespace cumulus
