#pragma once

#include <absl/status/status.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <string_view>

#include "server/runtime/runtime.h"

namespace cumulus::server {

/// Does the work of a call that waits for nothing, where it arrives and where its caller may call: answers,
/// and tells the telemetry.
grpc::ServerUnaryReactor* answer_at_once(Runtime& runtime, grpc::CallbackServerContext& context,
                                         std::string_view rpc,
                                         const std::function<absl::Status(const Principal&)>& work);

}  // namespace cumulus::server
