#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/pipeline/call.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/operation.h"
#include "server/runtime/instance.h"

namespace cumulus::server {

/// A call of operation `Op`: nothing but the bridge from the path to the operation's functions.
template <Operation Op>
class TypedCall final : public OperationCall {
  using Report = typename Op::Report;
  static_assert(std::is_trivially_copyable_v<Report> && sizeof(Report) <= kReportBytes);

 public:
  TypedCall(Runtime& runtime, const typename Op::Request& request, v1::OperationResult& response,
            Context context, Respond respond)
      : OperationCall(runtime, Op::kName, request.options(), response, std::move(context),
                      std::move(respond)),
        request_(request) {}

 protected:
  std::vector<SourceField> sources() const override { return Op::sources(request_); }
  absl::Status make_plan(std::span<const InputArray> inputs) override {
    absl::StatusOr<typename Op::Plan> plan = Op::validate(request_, inputs);
    if (!plan.ok()) return plan.status();
    plan_ = *std::move(plan);
    return absl::OkStatus();
  }
  std::vector<OutputSpec> outputs() const override { return Op::outputs(plan_); }
  std::size_t scratch_bytes(const Device& device) const override {
    return device.space() == Space::kHost ? scratch_in<Space::kHost>(device)
                                          : scratch_in<Space::kDevice>(device);
  }
  void run(CpuExecutor& executor, const Inputs<Space::kHost>& inputs, const Outputs<Space::kHost>& outputs,
           std::byte* report) override {
    Op::run(executor, plan_, inputs, outputs, *new (report) Report{});
  }
  void run(CudaExecutor& executor, const Inputs<Space::kDevice>& inputs,
           const Outputs<Space::kDevice>& outputs, std::byte* report) override {
#if CUMULUS_WITH_CUDA
    Op::run(executor, plan_, inputs, outputs, *new (report) Report{});
#else
    (void)executor, (void)inputs, (void)outputs, (void)report;  // no device of that kind exists in this build
#endif
  }
  absl::Status conclude(const std::byte* report) const override { return Op::conclude(plan_, *read(report)); }
  Cost cost() const override { return Op::cost(plan_); }
  bool sized_by_its_run() const override { return SizedByItsRun<Op>; }
  std::vector<ArrayShape> final_shapes(const std::byte* report) const override {
    if constexpr (SizedByItsRun<Op>) {
      return Op::final_shapes(plan_, *read(report));
    } else {
      (void)report;
      return {};
    }
  }

 private:
  template <Space S>
  std::size_t scratch_in(const Device& device) const {
    if constexpr (ChoosesByDevice<Op>) {
      return Op::template scratch_bytes<S>(plan_, device.numbers());
    } else {
      return Op::template scratch_bytes<S>(plan_);
    }
  }
  static const Report* read(const std::byte* report) {
    return std::launder(reinterpret_cast<const Report*>(report));
  }

  const typename Op::Request& request_;
  typename Op::Plan plan_;
};

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
    absl::StatusOr<Principal> caller = runtime_.identity->resolve_user(*context);
    if (!caller.ok()) return refuse(*context, Op::kName, caller.status());
    auto* reactor = new CallReactor;
    reactor->start(std::make_shared<TypedCall<Op>>(
        runtime_, *request, *response, make_context(*context, *std::move(caller)),
        [reactor](grpc::Status status) { reactor->Finish(std::move(status)); }));
    return reactor;
  }

 private:
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
