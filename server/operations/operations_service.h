#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "server/runtime/runtime.h"

namespace cumulus::server {

/// cumulus.v1.Operations on `runtime`, which must outlive it.
std::unique_ptr<grpc::Service> make_operations_service(Runtime& runtime);

}  // namespace cumulus::server
