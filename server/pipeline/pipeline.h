#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string_view>
#include <utility>

#include "server/pipeline/call.h"
#include "server/pipeline/chain_run.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/operation_run.h"
#include "server/runtime/instance.h"

namespace cumulus::server {

/// Connects a call with gRPC. Deletes itself.
class CallReactor final : public grpc::ServerUnaryReactor {
 public:
  void start(std::shared_ptr<OperationCall> call) {
    call_ = std::move(call);
    call_->begin();
  }
  void OnCancel() override { call_->cancel(); }
  void OnDone() override { delete this; }

 private:
  std::shared_ptr<OperationCall> call_;
};

/// Starts calls. One line per RPC in the service is all that an operation needs.
class Pipeline {
 public:
  explicit Pipeline(Runtime& runtime) : runtime_(runtime) {}

  template <Operation Op>
  grpc::ServerUnaryReactor* start(grpc::CallbackServerContext* context, const typename Op::Request* request,
                                  v1::OperationResult* response) {
    return begin(*context, std::make_unique<TypedRun<Op>>(*request), request->options(), *response);
  }
  grpc::ServerUnaryReactor* start_chain(grpc::CallbackServerContext* context,
                                        const v1::RunPipelineRequest* request, MakeStepRun make_step_run,
                                        v1::OperationResult* response) {
    return begin(*context, std::make_unique<ChainRun>(*request, make_step_run), request->options(),
                 *response);
  }

 private:
  grpc::ServerUnaryReactor* begin(grpc::CallbackServerContext& context, std::unique_ptr<OperationRun> run,
                                  const v1::RequestOptions& options, v1::OperationResult& response) {
    absl::StatusOr<Principal> caller = runtime_.identity->resolve_user(context);
    if (!caller.ok()) return refuse(context, run->name(), caller.status());
    auto* reactor = new CallReactor;
    reactor->start(std::make_shared<OperationCall>(
        runtime_, std::move(run), options, response, make_context(context, *std::move(caller)),
        [reactor](grpc::Status status) { reactor->Finish(std::move(status)); }));
    return reactor;
  }
  grpc::ServerUnaryReactor* refuse(grpc::CallbackServerContext& context, std::string_view name,
                                   const absl::Status& why) const {
    runtime_.telemetry.refused(name, context.peer(), why);
    grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
    reactor->Finish(to_grpc(with_context(why, name)));
    return reactor;
  }
  OperationCall::Context make_context(grpc::CallbackServerContext& context, Principal caller) const {
    return {CallDeadline::of(context.deadline(), runtime_.configuration.limits.max_deadline), context.peer(),
            std::move(caller), take_trace(context), check_instance(context, runtime_.instance)};
  }

  Runtime& runtime_;
};

}  // namespace cumulus::server
