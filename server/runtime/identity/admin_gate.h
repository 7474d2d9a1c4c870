#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <memory>

#include "server/runtime/identity/identity.h"

namespace cumulus::server {

/// Makes the interceptor that lets only admins see what gRPC's own services, reflection and channelz, answer.
/// Others get their answers without content, and PERMISSION_DENIED or UNAUTHENTICATED. Health is for
/// everybody.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> make_admin_gate(
    std::shared_ptr<const Identity> identity);

}  // namespace cumulus::server
