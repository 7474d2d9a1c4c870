// Chains of operations in one call: what they give, what they keep, what they leave when they fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "server/pipeline/chain_run.h"
#include "tests/service/run_pipeline_fixture.h"
#include "tests/support/blocking_job.h"
#include "tests/support/operation_calls.h"

namespace cumulus::testing {
namespace {

using ::testing::HasSubstr;

const v1::InlineArray& inline_of(const v1::OperationResult& result, const std::string& name) {
  return find_array(result, name)->inline_array();
}

TEST_P(RunPipelineTest, GivesWhatSeparateCallsGiveBitForBit) {
  grpc::Status status = run(five_steps());
  ASSERT_TRUE(status.ok()) << status.error_message();
  v1::Operations::Stub& operations = *server_->operations;
  const auto call = [](auto method, v1::Operations::Stub& stub, const auto& request) {
    grpc::ClientContext context;
    v1::OperationResult result;
    const grpc::Status ended = (stub.*method)(&context, request, &result);
    EXPECT_TRUE(ended.ok()) << ended.error_message();
    return result;
  };
  auto blurring = blur();
  set_inline(*blurring.mutable_image(), v1::FLOAT32, {kHeight, kWidth}, map());
  const auto blurred = call(&v1::Operations::Stub::ApplyRecursiveFilter, operations, blurring);
  auto building = table();
  *building.mutable_weights()->mutable_inline_array() = inline_of(blurred, "image");
  const auto built = call(&v1::Operations::Stub::BuildSamplingTable, operations, building);
  auto drawing = draw();
  *drawing.mutable_table()->mutable_inline_array() = inline_of(built, "table");
  const auto drawn = call(&v1::Operations::Stub::DrawSamples, operations, drawing);
  auto boxing = box();
  *boxing.mutable_image()->mutable_inline_array() = inline_of(blurred, "image");
  const auto boxed = call(&v1::Operations::Stub::FilterBox, operations, boxing);
  v1::BuildSummedAreaTableRequest summing;
  *summing.mutable_image()->mutable_inline_array() = inline_of(boxed, "image");
  const auto summed = call(&v1::Operations::Stub::BuildSummedAreaTable, operations, summing);

  ASSERT_EQ(result_.arrays_size(), 3);
  const auto expect_equal = [&](int place, const std::string& name, const v1::InlineArray& separate) {
    EXPECT_EQ(result_.arrays(place).name(), name);
    EXPECT_EQ(result_.arrays(place).inline_array().SerializeAsString(), separate.SerializeAsString()) << name;
  };
  expect_equal(0, "position", inline_of(drawn, "position"));
  expect_equal(1, "density", inline_of(drawn, "pdf"));
  expect_equal(2, "sums", inline_of(summed, "sums"));
  expect_held(0);
}

TEST_P(RunPipelineTest, KeepsAsBuffersOnlyWhatIsNamed) {
  auto request = five_steps_in_session();
  ASSERT_TRUE(run(request).ok());
  ASSERT_EQ(result_.arrays_size(), 3);
  std::size_t bytes = 0;
  for (const v1::NamedArray& array : result_.arrays())
    bytes += align_block(static_cast<std::size_t>(array.buffer().size_bytes()));
  EXPECT_EQ(buffers_of(request.options().session()), 3);
  expect_held(bytes);
}

TEST_P(RunPipelineTest, ATableThatIsKeptIsKnownAsOne) {
  auto request = five_steps_in_session();
  request.clear_outputs();
  keep(request, 1, "table");
  ASSERT_TRUE(run(request).ok());
  v1::DrawSamplesRequest drawing = draw();
  drawing.mutable_options()->set_session(request.options().session());
  drawing.mutable_table()->set_buffer(result_.arrays(0).buffer().name());
  grpc::ClientContext context;
  const grpc::Status drawn = server_->operations->DrawSamples(&context, drawing, &result_);
  EXPECT_TRUE(drawn.ok()) << drawn.error_message();
}

TEST_P(RunPipelineTest, ReadsBuffersOfItsSession) {
  auto request = five_steps_in_session();
  CallMaker maker(*server_, request.options().session());
  request.mutable_steps(0)->mutable_apply_recursive_filter()->mutable_image()->set_buffer(
      maker.put(v1::FLOAT32, {kHeight, kWidth}, map()));
  request.mutable_options()->mutable_output()->mutable_inline_array();
  ASSERT_TRUE(run(request).ok());
  const std::string in_session = result_.arrays(2).inline_array().data();
  ASSERT_TRUE(run(five_steps()).ok());
  EXPECT_EQ(result_.arrays(2).inline_array().data(), in_session);
}

TEST_P(RunPipelineTest, AStepWithoutAnAnswerEndsTheWholeAndIsNamed) {
  auto request = five_steps_in_session();
  set_inline(*request.mutable_steps(0)->mutable_apply_recursive_filter()->mutable_image(), v1::FLOAT32,
             {kHeight, kWidth}, std::vector<float>(kHeight * kWidth));
  const grpc::Status black = run(request);
  expect_reason(black, grpc::StatusCode::FAILED_PRECONDITION, "ALL_WEIGHTS_ZERO");
  EXPECT_THAT(black.error_message(), HasSubstr("steps[1].build_sampling_table: weights: "));
  EXPECT_EQ(detail_of<google::rpc::ErrorInfo>(black).metadata().at("step"), "1");
  EXPECT_EQ(buffers_of(request.options().session()), 0);
  expect_held(0);
}

TEST_P(RunPipelineTest, TheFirstStepWithoutAnAnswerIsTheOneThatIsNamed) {
  auto request = five_steps();
  std::vector<float> texels = map();
  texels[7] = std::numeric_limits<float>::quiet_NaN();
  set_inline(*request.mutable_steps(0)->mutable_apply_recursive_filter()->mutable_image(), v1::FLOAT32,
             {kHeight, kWidth}, texels);
  const grpc::Status status = run(request);
  expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "NON_FINITE_PIXEL");
  const auto info = detail_of<google::rpc::ErrorInfo>(status);
  EXPECT_EQ(info.metadata().at("step"), "0");
  EXPECT_EQ(info.metadata().at("column"), "7");
  expect_held(0);
}

TEST_P(RunPipelineTest, IsAdmittedWhole) {
  v1::RunPipelineRequest request;
  request.mutable_options()->set_session(server_->create_session());
  CallMaker maker(*server_, request.options().session());
  const std::string image = maker.put_floats({1024, 2048});
  const std::size_t before = server_->reserved_bytes();
  for (int step = 0; step < 8; ++step) {  // 8 MiB each, as the image has: the last does not fit
    auto& boxing = *request.add_steps()->mutable_filter_box() = box();
    if (step == 0) {
      boxing.mutable_image()->set_buffer(image);
    } else {
      read(*boxing.mutable_image(), step - 1, "image");
    }
  }
  keep(request, 7, "image");
  const grpc::Status refused = run(request);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << refused.error_message();
  expect_held(before);
  EXPECT_EQ(buffers_of(request.options().session()), 1);
}

TEST_P(RunPipelineTest, ACancellationInMidChainFreesAll) {
  v1::RunPipelineRequest request;
  request.mutable_options()->set_session(server_->create_session());
  CallMaker maker(*server_, request.options().session());
  const std::string image = maker.put_floats({256, 512});
  const std::size_t before = server_->reserved_bytes();
  for (int step = 0; step < static_cast<int>(server::kMaxPipelineSteps); ++step) {
    auto& blurring = *request.add_steps()->mutable_apply_recursive_filter() = blur();
    if (step == 0) {
      blurring.mutable_image()->set_buffer(image);
    } else {
      read(*blurring.mutable_image(), step - 1, "image");
    }
  }
  keep(request, static_cast<int>(server::kMaxPipelineSteps) - 1, "image");
  bool cancelled = false;
  for (int i = 0; i < 20 && !cancelled; ++i) {  // it may be done before it is stopped
    grpc::ClientContext context;
    auto answer = std::async(std::launch::async, [&] {
      v1::OperationResult result;
      return server_->operations->RunPipeline(&context, request, &result);
    });
    while (server_->slot().queue->running() == 0 &&
           answer.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      std::this_thread::yield();
    context.TryCancel();
    cancelled = answer.get().error_code() == grpc::StatusCode::CANCELLED;
  }
  EXPECT_TRUE(cancelled);
  if (!cancelled) return;
  EXPECT_TRUE(eventually([&] { return server_->slot().queue->running() == 0; }));
  EXPECT_TRUE(eventually([&] { return server_->reserved_bytes() <= before + align_block(256 * 512 * 4); }));
}

TEST_P(RunPipelineTest, OfASessionThatEndsMeanwhileNothingIsKept) {
  if (GetParam().gpu) GTEST_SKIP() << "a GPU has more than one lane, so that none can be kept busy";
  const auto request = five_steps_in_session();
  const auto busy = std::make_shared<BlockingJob>();
  ASSERT_TRUE(server_->slot().queue->push(busy).ok());
  busy->wait_until_running();
  auto answer = std::async(std::launch::async, [&] { return run(request); });
  ASSERT_TRUE(eventually([&] { return server_->slot().queue->depth() == 1; })) << "one entry for all steps";
  v1::DeleteSessionRequest end;
  end.set_name(request.options().session());
  google::protobuf::Empty empty;
  grpc::ClientContext context;
  ASSERT_TRUE(server_->sessions->DeleteSession(&context, end, &empty).ok());
  busy->release();
  expect_reason(answer.get(), grpc::StatusCode::NOT_FOUND, "SESSION_NOT_FOUND");
  expect_held(0);
}

const auto kNames = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(OnTheCpu, RunPipelineTest, ::testing::Values(PipelinePlace{"Cpu", false}), kNames);
INSTANTIATE_TEST_SUITE_P(OnCuda, RunPipelineTest, ::testing::Values(PipelinePlace{"Cuda", true}), kNames);

}  // namespace
}  // namespace cumulus::testing
