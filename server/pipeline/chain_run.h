#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cumulus/v1/pipeline.pb.h"
#include "server/pipeline/operation_run.h"

namespace cumulus::server {

/// Steps of one pipeline. Each has its own report.
inline constexpr std::size_t kMaxPipelineSteps = 64;
static_assert(kMaxPipelineSteps * kStepReportBytes <= kReportBytes);

/// The run of a step's operation; null where the step names none.
using MakeStepRun = std::unique_ptr<OperationRun> (*)(const v1::PipelineStep& step);

/// The steps of a RunPipelineRequest as one run. What a step makes for later ones, or for nobody, is an
/// output that is not kept. Steps use one block of scratch memory, one after the other.
class ChainRun final : public OperationRun {
 public:
  static constexpr std::string_view kName = "RunPipeline";

  /// `request` outlives it.
  ChainRun(const v1::RunPipelineRequest& request, MakeStepRun make_step_run)
      : request_(request), make_step_run_(make_step_run) {}

  std::string_view name() const override { return kName; }
  /// Those that are no outputs of steps.
  absl::StatusOr<std::vector<SourceField>> sources() override;
  absl::Status make_plan(std::span<const InputArray> inputs) override;
  std::vector<OutputSpec> outputs() const override { return outputs_; }
  std::size_t scratch_bytes(const Device& device) const override;
  Cost cost() const override;
  bool sized_by_its_run() const override { return false; }
  void run(CpuExecutor& executor, const Inputs<Space::kHost>& inputs, const Outputs<Space::kHost>& outputs,
           std::byte* report) override;
  void run(CudaExecutor& executor, const Inputs<Space::kDevice>& inputs,
           const Outputs<Space::kDevice>& outputs, std::byte* report) override;
  absl::Status conclude(const std::byte* report) const override;
  std::vector<ArrayShape> final_shapes(const std::byte* /*report*/) const override { return {}; }

 private:
  struct Input {
    std::string_view field;                // as the operation has it
    std::string path;                      // as the request has it
    const v1::StepOutput* made = nullptr;  // by an earlier step; null: an input of the call
    std::size_t place = 0;                 // among the call's inputs, or its outputs
  };
  struct Step {
    std::string path;  // steps[2].filter_box
    std::unique_ptr<OperationRun> run;
    std::vector<Input> inputs;
    std::vector<OutputSpec> outputs;
    std::vector<std::size_t> places;  // of each output among the call's
  };

  absl::Status check_request() const;
  absl::Status add_step(const v1::PipelineStep& wire, std::vector<SourceField>& sources);
  absl::Status check_step(const Step& step, const v1::PipelineStep& wire) const;
  absl::Status add_input(Step& step, const SourceField& source, std::vector<SourceField>& sources);
  absl::Status plan_step(std::size_t index, std::span<const InputArray> inputs);
  absl::Status place_outputs();
  absl::Status keep(const v1::PipelineOutput& output, const std::string& field);
  /// Where the array stands among its step's outputs. INVALID_ARGUMENT where there is none, by `field`.
  absl::StatusOr<std::size_t> find_output(const v1::StepOutput& output, const std::string& field) const;
  absl::Status in_step(std::size_t step, const absl::Status& status) const;
  template <class E>
  void run_on(E& executor, const Inputs<E::kSpace>& inputs, const Outputs<E::kSpace>& outputs,
              std::byte* report);

  const v1::RunPipelineRequest& request_;
  const MakeStepRun make_step_run_;
  std::vector<Step> steps_;
  std::vector<OutputSpec> outputs_;
};

}  // namespace cumulus::server
