#pragma once

#include <absl/status/status.h>
#include <grpcpp/server_context.h>

#include <string>

namespace cumulus::server {

/// A new one, for a server that starts.
std::string new_instance();

/// NOT_FOUND (INSTANCE_RESTARTED) where the call's metadata says that the handles which it names are those of
/// another instance than `instance`. OK where it says nothing.
absl::Status check_instance(const grpc::ServerContextBase& context, const std::string& instance);

}  // namespace cumulus::server
