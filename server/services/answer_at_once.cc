#include "server/services/answer_at_once.h"

#include <string>
#include <utility>

#include "proto/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/runtime/trace.h"

namespace cumulus::server {

grpc::ServerUnaryReactor* answer_at_once(Runtime& runtime, grpc::CallbackServerContext& context,
                                         std::string_view rpc,
                                         const std::function<absl::Status(const Principal&)>& work) {
  const absl::Time start = steady_now();
  CallRecord call;
  call.method = std::string(rpc);
  call.client = context.peer();
  call.trace = take_trace(context);
  const absl::StatusOr<Principal> caller = runtime.identity->resolve_user(context);
  if (caller.ok()) call.principal = caller->name;
  call.status = caller.ok() ? work(*caller) : caller.status();
  call.seconds = absl::ToDoubleSeconds(steady_now() - start);
  runtime.telemetry.finished(call);
  grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
  reactor->Finish(to_grpc(call.status.ok() ? call.status : with_context(call.status, rpc)));
  return reactor;
}

}  // namespace cumulus::server
