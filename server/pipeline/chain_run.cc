#include "server/pipeline/chain_run.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kUnplaced = ~std::size_t{0};

/// steps[2].filter_box; steps[2] where no operation is set.
std::string path_of(std::size_t index, const v1::PipelineStep& wire) {
  const auto* operation = wire.GetReflection()->GetOneofFieldDescriptor(
      wire, v1::PipelineStep::descriptor()->FindOneofByName("operation"));
  const std::string place = concat("steps[", index, "]");
  return operation == nullptr ? place : concat(place, ".", operation->name());
}

bool has_options(const v1::PipelineStep& wire) {
  const google::protobuf::Reflection& reflection = *wire.GetReflection();
  const auto* operation =
      reflection.GetOneofFieldDescriptor(wire, v1::PipelineStep::descriptor()->FindOneofByName("operation"));
  const google::protobuf::Message& request = reflection.GetMessage(wire, operation);
  return request.GetReflection()->HasField(request, request.GetDescriptor()->FindFieldByName("options"));
}

std::string names_of(const std::vector<OutputSpec>& outputs) {
  std::string names;
  for (const OutputSpec& output : outputs) names += (names.empty() ? "" : ", ") + output.name;
  return names;
}

template <Space S>
Span<const std::byte, S> read_only(Span<std::byte, S> bytes, std::size_t size) {
  return {bytes.data(), size};
}

}  // namespace

absl::StatusOr<std::vector<SourceField>> ChainRun::sources() {
  std::vector<SourceField> sources;
  absl::Status status = check_request();
  for (int i = 0; status.ok() && i < request_.steps_size(); ++i)
    status = add_step(request_.steps(i), sources);
  if (!status.ok()) return status;
  return sources;
}

absl::Status ChainRun::check_request() const {
  const auto steps = static_cast<std::size_t>(request_.steps_size());
  if (steps == 0)
    return bad_field("steps", concat("is missing; 1 to ", kMaxPipelineSteps, " steps are right"));
  if (steps > kMaxPipelineSteps) {
    return bad_field("steps", concat("has ", steps, " steps; at most ", kMaxPipelineSteps,
                                     " (max_pipeline_steps) are right"));
  }
  const auto outputs = static_cast<std::size_t>(request_.outputs_size());
  if (outputs == 0)
    return bad_field("outputs", concat("is missing; 1 to ", kMaxOutputs, " arrays to keep are right"));
  if (outputs <= kMaxOutputs) return absl::OkStatus();
  return bad_field("outputs", concat("has ", outputs, " arrays; at most ", kMaxOutputs, " are right"));
}

absl::Status ChainRun::add_step(const v1::PipelineStep& wire, std::vector<SourceField>& sources) {
  Step& step = steps_.emplace_back();
  step.path = path_of(steps_.size() - 1, wire);
  step.run = make_step_run_(wire);
  absl::Status status = check_step(step, wire);
  if (!status.ok()) return status;
  const absl::StatusOr<std::vector<SourceField>> own = step.run->sources();
  if (!own.ok()) return own.status();
  step.inputs.reserve(own->size());  // the call's sources name the inputs' paths
  for (const SourceField& source : *own) {
    status = add_input(step, source, sources);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ChainRun::check_step(const Step& step, const v1::PipelineStep& wire) const {
  if (step.run == nullptr) return bad_field(step.path, "is missing; set one of its operations");
  if (step.run->sized_by_its_run()) {
    return bad_field(step.path,
                     concat("is no step of a pipeline, since the sizes of its outputs are known only after "
                            "its run; ",
                            step.run->name(), " by itself is right, on an array that the pipeline keeps"));
  }
  if (!has_options(wire)) return absl::OkStatus();
  return bad_field(concat(step.path, ".options"), "is set; the pipeline's own options hold for all steps");
}

absl::Status ChainRun::add_input(Step& step, const SourceField& source, std::vector<SourceField>& sources) {
  Input& input = step.inputs.emplace_back();
  input.field = source.field;
  input.path = concat(step.path, ".", source.field);
  if (!source.source->has_step_output()) {
    input.place = sources.size();
    sources.push_back({input.path, source.source});
    return absl::OkStatus();
  }
  input.made = &source.source->step_output();
  const std::size_t own = steps_.size() - 1;
  const std::int32_t named = input.made->step();
  if (named >= 0 && static_cast<std::size_t>(named) < own) return absl::OkStatus();
  const std::string right = own == 0 ? "the first step has no earlier one"
                                     : concat("a step reads what earlier ones made, 0 to ", own - 1);
  return bad_field(concat(input.path, ".step_output.step"), concat("is ", named, "; ", right));
}

absl::Status ChainRun::make_plan(std::span<const InputArray> inputs) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const absl::Status status = plan_step(i, inputs);
    if (!status.ok()) return status;
  }
  return place_outputs();
}

absl::Status ChainRun::plan_step(std::size_t index, std::span<const InputArray> inputs) {
  Step& step = steps_[index];
  std::vector<InputArray> described;
  for (Input& input : step.inputs) {
    if (input.made == nullptr) {
      described.push_back({input.field, inputs[input.place].shape, inputs[input.place].head});
      continue;
    }
    const absl::StatusOr<std::size_t> output =
        find_output(*input.made, concat(input.path, ".step_output.array"));
    if (!output.ok()) return output.status();
    input.place = *output;
    const OutputSpec& made = steps_[static_cast<std::size_t>(input.made->step())].outputs[*output];
    described.push_back({input.field, made.shape, made.head});
  }
  const absl::Status planned = step.run->make_plan(described);
  if (!planned.ok()) return in_step(index, planned);
  step.outputs = step.run->outputs();
  step.places.assign(step.outputs.size(), kUnplaced);
  return absl::OkStatus();
}

absl::StatusOr<std::size_t> ChainRun::find_output(const v1::StepOutput& output,
                                                  const std::string& field) const {
  const Step& step = steps_[static_cast<std::size_t>(output.step())];
  const auto found = std::find_if(step.outputs.begin(), step.outputs.end(),
                                  [&](const OutputSpec& each) { return each.name == output.array(); });
  if (found != step.outputs.end()) return static_cast<std::size_t>(found - step.outputs.begin());
  return bad_field(field, concat("is '", cut_text(output.array(), kMaxNameBytes), "'; ", step.path, " makes ",
                                 names_of(step.outputs)));
}

absl::Status ChainRun::place_outputs() {
  for (int i = 0; i < request_.outputs_size(); ++i) {
    const absl::Status kept = keep(request_.outputs(i), concat("outputs[", i, "]"));
    if (!kept.ok()) return kept;
  }
  for (Step& step : steps_) {
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.places[i] != kUnplaced) continue;
      step.places[i] = outputs_.size();
      outputs_.push_back({.name = concat(step.path, ".", step.outputs[i].name),
                          .shape = step.outputs[i].shape,
                          .kept = false});
    }
    // From a place among a step's outputs to one among the call's: the steps before are placed.
    for (Input& input : step.inputs) {
      if (input.made != nullptr)
        input.place = steps_[static_cast<std::size_t>(input.made->step())].places[input.place];
    }
  }
  return absl::OkStatus();
}

absl::Status ChainRun::keep(const v1::PipelineOutput& output, const std::string& field) {
  const std::int32_t named = output.output().step();
  if (!output.has_output())
    return bad_field(concat(field, ".output"), "is missing; a step and one of its arrays are right");
  if (named < 0 || static_cast<std::size_t>(named) >= steps_.size()) {
    return bad_field(concat(field, ".output.step"),
                     concat("is ", named, "; 0 to ", steps_.size() - 1, " is right"));
  }
  const absl::StatusOr<std::size_t> found = find_output(output.output(), concat(field, ".output.array"));
  if (!found.ok()) return found.status();
  Step& step = steps_[static_cast<std::size_t>(named)];
  if (step.places[*found] != kUnplaced)
    return bad_field(concat(field, ".output"), "comes a second time; each array once is right");
  if (output.name().size() > kMaxNameBytes) {
    return bad_field(concat(field, ".name"),
                     concat("has ", output.name().size(), " bytes; at most ", kMaxNameBytes, " are right"));
  }
  const std::string& name = output.name().empty() ? step.outputs[*found].name : output.name();
  for (const OutputSpec& other : outputs_) {
    if (other.name != name) continue;
    return bad_field(concat(field, ".name"), concat("is '", name, "' a second time; another is right"));
  }
  step.places[*found] = outputs_.size();
  outputs_.push_back({.name = name, .shape = step.outputs[*found].shape, .head = step.outputs[*found].head});
  return absl::OkStatus();
}

absl::Status ChainRun::in_step(std::size_t step, const absl::Status& status) const {
  return below_field(status, steps_[step].path, {{"step", concat(step)}});
}

std::size_t ChainRun::scratch_bytes(const Device& device) const {
  std::size_t most = 0;
  for (const Step& step : steps_) most = std::max(most, step.run->scratch_bytes(device));
  return most;
}

Cost ChainRun::cost() const {
  Cost sum;
  for (const Step& step : steps_) {
    const Cost cost = step.run->cost();
    sum.core_seconds += cost.core_seconds;
    sum.gpu_seconds += cost.gpu_seconds;
  }
  return sum;
}

template <class E>
void ChainRun::run_on(E& executor, const Inputs<E::kSpace>& inputs, const Outputs<E::kSpace>& outputs,
                      std::byte* report) {
  for (const Step& step : steps_) {
    executor.check_interrupt();
    executor.reuse_scratch();
    std::vector<Span<const std::byte, E::kSpace>> reads;
    for (const Input& input : step.inputs) {
      if (input.made == nullptr) {
        reads.push_back(inputs.template as<const std::byte>(input.place));
      } else {
        reads.push_back(
            read_only(outputs.template as<std::byte>(input.place), outputs_[input.place].shape.bytes()));
      }
    }
    std::vector<Span<std::byte, E::kSpace>> writes;
    for (const std::size_t place : step.places) writes.push_back(outputs.template as<std::byte>(place));
    step.run->run(executor, Inputs<E::kSpace>(std::move(reads)), Outputs<E::kSpace>(std::move(writes)),
                  report);
    // What a step that failed leaves is no input. On a GPU nobody knows yet; there, kernels take whatever
    // bytes a client may have uploaded, and the answer has none of what they make of it.
    if (E::kSpace == Space::kHost && !step.run->conclude(report).ok()) return;
    report += kStepReportBytes;
  }
}

void ChainRun::run(CpuExecutor& executor, const Inputs<Space::kHost>& inputs,
                   const Outputs<Space::kHost>& outputs, std::byte* report) {
  run_on(executor, inputs, outputs, report);
}

void ChainRun::run(CudaExecutor& executor, const Inputs<Space::kDevice>& inputs,
                   const Outputs<Space::kDevice>& outputs, std::byte* report) {
#if CUMULUS_WITH_CUDA
  run_on(executor, inputs, outputs, report);
#else
  (void)executor, (void)inputs, (void)outputs, (void)report;  // no device of that kind exists in this build
#endif
}

absl::Status ChainRun::conclude(const std::byte* report) const {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const absl::Status status = steps_[i].run->conclude(report + i * kStepReportBytes);
    if (!status.ok()) return in_step(i, status);
  }
  return absl::OkStatus();
}

}  // namespace cumulus::server
