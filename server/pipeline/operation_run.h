#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/pipeline/operation.h"
#include "server/pipeline/planned.h"
#include "server/runtime/device.h"

namespace cumulus::server {

/// What a call, or a step of a pipeline, has for the report of one operation.
inline constexpr std::size_t kStepReportBytes = 64;

/// One run of an operation, from its request to its kernels, whichever operation that is. The functions are
/// those of the concept Operation, and are called in this order, each once, except where they say otherwise.
class OperationRun {
 public:
  OperationRun() = default;
  virtual ~OperationRun() = default;
  OperationRun(const OperationRun&) = delete;
  OperationRun& operator=(const OperationRun&) = delete;

  virtual std::string_view name() const = 0;
  /// What they name lives as long as this.
  virtual absl::StatusOr<std::vector<SourceField>> sources() = 0;
  /// `inputs` are in the order of `sources`.
  virtual absl::Status make_plan(std::span<const InputArray> inputs) = 0;

  // Of the plan, as often as wanted.
  virtual std::vector<OutputSpec> outputs() const = 0;
  virtual std::size_t scratch_bytes(const Device& device) const = 0;
  virtual Cost cost() const = 0;
  /// True: the outputs' shapes are upper bounds, and final_shapes, after the run, says what they are.
  virtual bool sized_by_its_run() const = 0;

  /// `report` is host memory, pinned on a GPU, that `conclude` reads once the work is done.
  virtual void run(CpuExecutor& executor, const Inputs<Space::kHost>& inputs,
                   const Outputs<Space::kHost>& outputs, std::byte* report) = 0;
  virtual void run(CudaExecutor& executor, const Inputs<Space::kDevice>& inputs,
                   const Outputs<Space::kDevice>& outputs, std::byte* report) = 0;
  virtual absl::Status conclude(const std::byte* report) const = 0;
  virtual std::vector<ArrayShape> final_shapes(const std::byte* report) const = 0;
};

/// A run of operation `Op`: nothing but the bridge to the operation's functions. `request` outlives it.
template <Operation Op>
class TypedRun final : public OperationRun {
  using Report = typename Op::Report;
  static_assert(std::is_trivially_copyable_v<Report> && sizeof(Report) <= kStepReportBytes);

 public:
  explicit TypedRun(const typename Op::Request& request) : request_(request) {}

  std::string_view name() const override { return Op::kName; }
  absl::StatusOr<std::vector<SourceField>> sources() override { return Op::sources(request_); }
  absl::Status make_plan(std::span<const InputArray> inputs) override {
    absl::StatusOr<std::shared_ptr<const Planned<Op>>> planned = plan_of<Op>(request_, inputs);
    if (!planned.ok()) return planned.status();
    planned_ = *std::move(planned);
    return absl::OkStatus();
  }
  std::vector<OutputSpec> outputs() const override { return planned_->outputs; }
  std::size_t scratch_bytes(const Device& device) const override { return planned_->scratch_bytes(device); }
  Cost cost() const override { return planned_->cost; }
  bool sized_by_its_run() const override { return SizedByItsRun<Op>; }
  void run(CpuExecutor& executor, const Inputs<Space::kHost>& inputs, const Outputs<Space::kHost>& outputs,
           std::byte* report) override {
    Op::run(executor, planned_->plan, inputs, outputs, *new (report) Report{});
  }
  void run(CudaExecutor& executor, const Inputs<Space::kDevice>& inputs,
           const Outputs<Space::kDevice>& outputs, std::byte* report) override {
#if CUMULUS_WITH_CUDA
    Op::run(executor, planned_->plan, inputs, outputs, *new (report) Report{});
#else
    (void)executor, (void)inputs, (void)outputs, (void)report;  // no device of that kind exists in this build
#endif
  }
  absl::Status conclude(const std::byte* report) const override {
    return Op::conclude(planned_->plan, *read(report));
  }
  std::vector<ArrayShape> final_shapes(const std::byte* report) const override {
    if constexpr (SizedByItsRun<Op>) {
      return Op::final_shapes(planned_->plan, *read(report));
    } else {
      (void)report;
      return {};
    }
  }

 private:
  static const Report* read(const std::byte* report) {
    return std::launder(reinterpret_cast<const Report*>(report));
  }

  const typename Op::Request& request_;
  std::shared_ptr<const Planned<Op>> planned_;
};

}  // namespace cumulus::server
