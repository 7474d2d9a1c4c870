#pragma once

#include <string>
#include <utility>

#include "cumulus/v1/server.grpc.pb.h"
#include "server/runtime/runtime.h"

namespace cumulus::server {

/// cumulus.v1.Server.
class ServerService final : public v1::Server::CallbackService {
 public:
  /// `shared_memory_socket`: of SharedMemorySocket; empty where there is none.
  explicit ServerService(Runtime& runtime, std::string shared_memory_socket = {})
      : runtime_(runtime), shared_memory_socket_(std::move(shared_memory_socket)) {}

  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::Capabilities* response) override;

 private:
  void describe(const Principal& caller, v1::Capabilities& message) const;

  Runtime& runtime_;
  const std::string shared_memory_socket_;
};

}  // namespace cumulus::server
