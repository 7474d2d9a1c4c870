#pragma once

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

namespace cumulus::testing {

/// Keeps gRPC's threads from test to test. In gRPC 1.51 the end of the last server or channel of a process
/// may wait ten seconds for an idle thread of theirs.
inline void keep_grpc_engine() {
  [[maybe_unused]] static const auto* const kChannel = new std::shared_ptr<grpc::Channel>(
      grpc::CreateChannel("unix:/dev/null", grpc::InsecureChannelCredentials()));
}

}  // namespace cumulus::testing
