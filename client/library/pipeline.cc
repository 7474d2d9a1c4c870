#include "cumulus/pipeline.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <vector>

#include "cumulus/v1/pipeline.pb.h"
#include "library/operation_access.h"
#include "library/operation_request.h"
#include "library/wire.h"

namespace cumulus {
namespace {

/// The step's member that holds a request of `method`; null where there is none.
const google::protobuf::FieldDescriptor* find_operation(const std::string& method) {
  const std::string type = absl::StrCat(method.substr(method.rfind('/') + 1), "Request");
  const auto* operations = v1::PipelineStep::descriptor()->FindOneofByName("operation");
  for (int i = 0; i < operations->field_count(); ++i) {
    if (operations->field(i)->message_type()->name() == type) return operations->field(i);
  }
  return nullptr;
}

}  // namespace

struct Pipeline::State {
  v1::RunPipelineRequest request;
  OperationInputs inputs;
};

Pipeline::Pipeline() : state_(std::make_unique<State>()) {}
Pipeline::~Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;

PipelineStep Pipeline::add(const Operation& operation) {
  const auto& own = OperationAccess::request(operation);
  std::vector<std::string> places;
  for (const auto& buffer : own.buffers) places.push_back(state_->inputs.add(buffer));
  v1::PipelineStep& step = *state_->request.add_steps();
  // Of a pipeline there is no member: the server then says that this step has no operation.
  if (const auto* member = find_operation(own.method)) {
    grpc::ByteBuffer body = own.body_with(places);
    // It was a message of this type a moment ago.
    (void)wire::parse(body, *step.GetReflection()->MutableMessage(&step, member));
  }
  return PipelineStep(state_->request.steps_size() - 1);
}

void Pipeline::keep(const StepOutput& output, const std::string& name) {
  v1::PipelineOutput& kept = *state_->request.add_outputs();
  kept.mutable_output()->set_step(output.step);
  kept.mutable_output()->set_array(output.array);
  kept.set_name(name);
}

Pipeline::operator Operation() const {
  return OperationAccess::make("RunPipeline", state_->request, state_->inputs);
}

}  // namespace cumulus
