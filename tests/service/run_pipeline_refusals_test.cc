// What is wrong with a chain is said before anything runs, by its place in the request.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/service/run_pipeline_fixture.h"

namespace cumulus::testing {
namespace {

class RunPipelineRefusals : public RunPipelineTest {
 protected:
  void expect_bad(const v1::RunPipelineRequest& request, const std::string& field, const std::string& what) {
    expect_bad_field(run(request), field, what);
    expect_held(0);
  }
};

TEST_P(RunPipelineRefusals, FieldsAreNamedFromTheRequestOn) {
  auto request = five_steps();
  auto& gaussian =
      *request.mutable_steps(0)->mutable_apply_recursive_filter()->mutable_x()->mutable_gaussian();
  gaussian.set_sigma(-1);
  expect_bad(request, "steps[0].apply_recursive_filter.x.gaussian.sigma",
             "RunPipeline: steps[0].apply_recursive_filter.x.gaussian.sigma: is -1");
  request = five_steps();
  request.mutable_steps(2)->mutable_draw_samples()->set_count(0);
  expect_bad(request, "steps[2].draw_samples.count", "steps[2].draw_samples.count: is 0");
  request = five_steps();
  request.mutable_steps(0)->mutable_apply_recursive_filter()->clear_image();
  expect_bad(request, "steps[0].apply_recursive_filter.image", "is missing");
  request = five_steps();
  request.mutable_steps(0)
      ->mutable_apply_recursive_filter()
      ->mutable_image()
      ->mutable_inline_array()
      ->mutable_data()
      ->pop_back();
  expect_bad(request, "steps[0].apply_recursive_filter.image.inline_array.data", "the spec says");
}

TEST_P(RunPipelineRefusals, AStepReadsOnlyWhatEarlierOnesMade) {
  const std::string field = "steps[3].filter_box.image.step_output.step";
  for (const int step : {3, 4, 5, -1, 1 << 30}) {  // itself, a later one, none
    auto request = five_steps();
    read(*request.mutable_steps(3)->mutable_filter_box()->mutable_image(), step, "image");
    expect_bad(request, field, "a step reads what earlier ones made, 0 to 2");
  }
  auto request = five_steps();  // a circle
  read(*request.mutable_steps(0)->mutable_apply_recursive_filter()->mutable_image(), 3, "image");
  expect_bad(request, "steps[0].apply_recursive_filter.image.step_output.step",
             "the first step has no earlier one");
}

TEST_P(RunPipelineRefusals, AnArrayThatAStepDoesNotMake) {
  auto request = five_steps();
  read(*request.mutable_steps(3)->mutable_filter_box()->mutable_image(), 0, "picture");
  expect_bad(request, "steps[3].filter_box.image.step_output.array",
             "is 'picture'; steps[0].apply_recursive_filter makes image");
}

TEST_P(RunPipelineRefusals, ArraysOfTheWrongKind) {
  auto request = five_steps();
  read(*request.mutable_steps(2)->mutable_draw_samples()->mutable_table(), 0, "image");
  expect_bad(request, "steps[2].draw_samples.table", "a table is UINT8 [bytes]");
  request = five_steps();
  read(*request.mutable_steps(3)->mutable_filter_box()->mutable_image(), 1, "table");
  expect_bad(request, "steps[3].filter_box.image", "has shape [");
}

TEST_P(RunPipelineRefusals, StepsWithoutAnOperationOrWithOptionsOfTheirOwn) {
  auto request = five_steps();
  request.add_steps();
  expect_bad(request, "steps[5]", "is missing; set one of its operations");
  request = five_steps();
  request.mutable_steps(3)->mutable_filter_box()->mutable_options()->set_request_id("mine");
  expect_bad(request, "steps[3].filter_box.options", "the pipeline's own options hold for all steps");
}

TEST(PipelineSteps, HaveAMemberForEveryOperation) {
  const auto* service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("cumulus.v1.Operations");
  const auto* members = v1::PipelineStep::descriptor()->FindOneofByName("operation");
  std::vector<std::string> expected;
  for (int i = 0; i < service->method_count(); ++i) {
    const auto* request = service->method(i)->input_type();
    if (request != v1::RunPipelineRequest::descriptor()) expected.push_back(request->name());
  }
  std::vector<std::string> actual;
  for (int i = 0; i < members->field_count(); ++i)
    actual.push_back(members->field(i)->message_type()->name());
  EXPECT_THAT(actual, ::testing::UnorderedElementsAreArray(expected));
}

TEST_P(RunPipelineRefusals, OperationsWhoseOutputsAreSizedByTheirRuns) {
  auto request = five_steps();
  read(*request.add_steps()->mutable_encode_run_lengths()->mutable_array(), 3, "image");
  expect_bad(request, "steps[5].encode_run_lengths", "EncodeRunLengths by itself is right");
  request.mutable_steps(5)->mutable_decode_run_lengths();
  expect_bad(request, "steps[5].decode_run_lengths", "known only after its run");
  request.mutable_steps(5)->mutable_find_neighbors();
  expect_bad(request, "steps[5].find_neighbors", "known only after its run");
}

TEST_P(RunPipelineRefusals, MoreStepsThanTheCapabilitiesSay) {
  v1::Capabilities capabilities;
  grpc::ClientContext context;
  ASSERT_TRUE(server_->server->GetCapabilities(&context, {}, &capabilities).ok());
  EXPECT_EQ(capabilities.max_pipeline_steps(), 64);
  auto request = five_steps();
  while (request.steps_size() < 64) *request.add_steps() = request.steps(3);
  EXPECT_TRUE(run(request).ok());
  *request.add_steps() = request.steps(3);
  expect_bad(request, "steps", "has 65 steps; at most 64 (max_pipeline_steps) are right");
  request.clear_steps();
  expect_bad(request, "steps", "is missing; 1 to 64 steps are right");
}

TEST_P(RunPipelineRefusals, OutputsThatCannotBeKept) {
  const auto keeping = [](int step, const std::string& array, const std::string& name = "") {
    auto request = five_steps();
    keep(request, step, array, name);
    return request;
  };
  expect_bad(keeping(5, "image"), "outputs[3].output.step", "is 5; 0 to 4 is right");
  expect_bad(keeping(-1, "image"), "outputs[3].output.step", "is -1");
  expect_bad(keeping(0, "picture"), "outputs[3].output.array", "makes image");
  expect_bad(keeping(2, "position", "again"), "outputs[3].output", "a second time");
  expect_bad(keeping(0, "image", "sums"), "outputs[3].name", "is 'sums' a second time");
  expect_bad(keeping(0, "image", std::string(65, 'x')), "outputs[3].name", "has 65 bytes; at most 64");
  auto request = five_steps();
  request.add_outputs()->set_name("nothing");
  expect_bad(request, "outputs[3].output", "is missing");
  request.clear_outputs();
  expect_bad(request, "outputs", "is missing; 1 to 16");
  for (int i = 0; i < 17; ++i) keep(request, 0, "image");
  expect_bad(request, "outputs", "has 17 arrays; at most 16");
}

TEST_P(RunPipelineRefusals, OutputsOfStepsOutsideOfAPipeline) {
  auto boxing = box();
  read(*boxing.mutable_image(), 0, "image");
  grpc::ClientContext context;
  expect_bad_field(server_->operations->FilterBox(&context, boxing, &result_), "image.step_output",
                   "only steps of RunPipeline");
}

TEST_P(RunPipelineRefusals, ValidateOnlyChecksTheWholeChainAndRunsNothing) {
  auto request = five_steps();
  request.mutable_options()->set_validate_only(true);
  EXPECT_TRUE(run(request).ok());
  EXPECT_EQ(result_.arrays_size(), 0);
  request.mutable_steps(4)->mutable_build_summed_area_table()->set_accumulator(v1::UINT32);
  expect_bad(request, "steps[4].build_summed_area_table.accumulator", "FLOAT64");
}

const auto kNames = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(OnTheCpu, RunPipelineRefusals, ::testing::Values(PipelinePlace{"Cpu", false}),
                         kNames);

}  // namespace
}  // namespace cumulus::testing
