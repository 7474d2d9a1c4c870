#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string_view>
#include <utility>

#include "cumulus/v1/operations.grpc.pb.h"
#include "server/pipeline/call.h"
#include "server/pipeline/call_reactor.h"
#include "server/pipeline/chain_run.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/operation_run.h"
#include "server/pipeline/text.h"
#include "server/runtime/connections/open_calls.h"
#include "server/runtime/instance.h"
#include "server/runtime/malformed_message.h"

namespace cumulus::server {

/// Connects gRPC with the pipeline. Its functions are those of a grpc::Service whose methods take messages as
/// they come: what is read of them is found out here, once it is known who asks.
class Pipeline {
 public:
  explicit Pipeline(Runtime& runtime) : runtime_(runtime) {}

  /// Calls that begin from now on are counted.
  void count_in(std::shared_ptr<OpenCalls> calls) { calls_ = std::move(calls); }

  template <Operation Op>
  grpc::ServerUnaryReactor* start(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                  grpc::ByteBuffer* answer) {
    return begin<typename Op::Request>(Op::kName, *context, *message, *answer, [](const auto& request) {
      return std::make_unique<TypedRun<Op>>(request);
    });
  }
  grpc::ServerUnaryReactor* start_chain(grpc::CallbackServerContext* context, const grpc::ByteBuffer* message,
                                        MakeStepRun make_step_run, grpc::ByteBuffer* answer) {
    return begin<v1::RunPipelineRequest>(
        ChainRun::kName, *context, *message, *answer,
        [make_step_run](const auto& request) { return std::make_unique<ChainRun>(request, make_step_run); });
  }

 private:
  template <class Request, class MakeRun>
  grpc::ServerUnaryReactor* begin(std::string_view name, grpc::CallbackServerContext& context,
                                  const grpc::ByteBuffer& message, grpc::ByteBuffer& answer,
                                  const MakeRun& make_run) {
    auto* reactor = new CallReactor(context, calls_, answer);
    absl::StatusOr<Principal> caller = runtime_.identity->resolve_user(context);
    if (!caller.ok()) return refuse(*reactor, context, name, caller.status());
    const Request* request = reactor->read<Request>(message);
    if (request == nullptr) {
      return refuse(*reactor, context, name,
                    malformed_message(concat("/", v1::Operations::service_full_name(), "/", name)));
    }
    reactor->begin(
        std::make_shared<OperationCall>(runtime_, make_run(*request), request->options(), reactor->result(),
                                        make_context(context, *std::move(caller)),
                                        [reactor](grpc::Status status) { reactor->end(std::move(status)); }));
    return reactor;
  }
  grpc::ServerUnaryReactor* refuse(CallReactor& reactor, grpc::CallbackServerContext& context,
                                   std::string_view name, const absl::Status& why) const {
    runtime_.telemetry.refused(name, context.peer(), why);
    reactor.end(to_grpc(with_context(why, name)));
    return &reactor;
  }
  OperationCall::Context make_context(grpc::CallbackServerContext& context, Principal caller) const {
    return {CallDeadline::of(context.deadline(), runtime_.configuration.limits.max_deadline), context.peer(),
            std::move(caller), take_trace(context), check_instance(context, runtime_.instance)};
  }

  Runtime& runtime_;
  std::shared_ptr<OpenCalls> calls_;
};

}  // namespace cumulus::server
