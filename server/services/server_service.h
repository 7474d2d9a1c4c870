#pragma once

#include "cumulus/v1/server.grpc.pb.h"
#include "server/runtime/runtime.h"

namespace cumulus::server {

/// cumulus.v1.Server.
class ServerService final : public v1::Server::CallbackService {
 public:
  explicit ServerService(Runtime& runtime) : runtime_(runtime) {}

  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const v1::GetCapabilitiesRequest* request,
                                            v1::Capabilities* response) override;

 private:
  void describe(const Principal& caller, v1::Capabilities& message) const;

  Runtime& runtime_;
};

}  // namespace cumulus::server
