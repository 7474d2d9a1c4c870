// How the steps of a chain run one after the other, with steps that say what they see.
#include "server/pipeline/chain_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

/// What the steps of a test did, and what they are to do.
struct Script {
  std::vector<int> ran;
  int without_answer = -1;  // this step
  int cancelled_in = -1;    // the call, while this step runs
  bool cancelled = false;
};
Script script;

/// Adds 1 to a byte, which is its input's and its output's only one.
class AddOne final : public OperationRun {
 public:
  explicit AddOne(const v1::FilterBoxRequest& request) : request_(request), place_(request.radius()) {}

  std::string_view name() const override { return "AddOne"; }
  absl::StatusOr<std::vector<SourceField>> sources() override {
    return std::vector<SourceField>{{"image", &request_.image()}};
  }
  absl::Status make_plan(std::span<const InputArray> /*inputs*/) override { return absl::OkStatus(); }
  std::vector<OutputSpec> outputs() const override { return {{"image", {v1::UINT8, {1}}}}; }
  std::size_t scratch_bytes(const Device& /*device*/) const override { return 0; }
  Cost cost() const override { return {.core_seconds = 1, .gpu_seconds = 2}; }
  bool sized_by_its_run() const override { return false; }
  void run(CpuExecutor& executor, const Inputs<Space::kHost>& inputs, const Outputs<Space::kHost>& outputs,
           std::byte* /*report*/) override {
    (void)executor.scratch<std::byte>(100);  // all that there is
    script.ran.push_back(place_);
    outputs.as<std::uint8_t>(0).data()[0] =
        static_cast<std::uint8_t>(inputs.as<const std::uint8_t>(0).data()[0] + 1);
    script.cancelled = script.cancelled_in == place_;
  }
  void run(CudaExecutor& /*executor*/, const Inputs<Space::kDevice>& /*inputs*/,
           const Outputs<Space::kDevice>& /*outputs*/, std::byte* /*report*/) override {}
  absl::Status conclude(const std::byte* /*report*/) const override {
    return script.without_answer == place_ ? no_answer("NONE", "image: has none") : absl::OkStatus();
  }
  std::vector<ArrayShape> final_shapes(const std::byte* /*report*/) const override { return {}; }

 private:
  const v1::FilterBoxRequest& request_;
  const int place_;
};

std::unique_ptr<OperationRun> make_step(const v1::PipelineStep& step) {
  return std::make_unique<AddOne>(step.filter_box());
}

/// Three steps in a row; the last one's output is kept.
class ChainRunTest : public ::testing::Test, public Interrupt {
 protected:
  ChainRunTest() {
    script = {};
    for (int step = 0; step < 3; ++step) {
      auto& request = *request_.add_steps()->mutable_filter_box();
      request.set_radius(step);
      auto& made = *request.mutable_image()->mutable_step_output();
      made.set_step(step - 1);
      made.set_array("image");
    }
    request_.mutable_steps(0)->mutable_filter_box()->mutable_image()->set_buffer("first");
    request_.add_outputs()->mutable_output()->set_step(2);
    request_.mutable_outputs(0)->mutable_output()->set_array("image");
    EXPECT_EQ(chain_.sources()->size(), 1U);
    const InputArray input{"", {v1::UINT8, {1}}, {}};
    EXPECT_EQ(chain_.make_plan({&input, 1}), absl::OkStatus());
    executor_.set_interrupt(this);
    executor_.reserve_scratch(256);
  }
  bool requested() const override { return script.cancelled; }

  void run() {
    static const std::byte kFirst{40};
    std::vector<HostSpan<std::byte>> outputs;
    for (std::byte& array : arrays_) outputs.emplace_back(&array, 1);
    chain_.run(executor_, Inputs<Space::kHost>({{&kFirst, 1}}), Outputs<Space::kHost>(std::move(outputs)),
               report_.data());
  }

  v1::RunPipelineRequest request_;
  ChainRun chain_{request_, make_step};
  CpuExecutor executor_{1};
  std::array<std::byte, 3> arrays_{};
  alignas(64) std::array<std::byte, kReportBytes> report_{};
};

TEST_F(ChainRunTest, HandsArraysFromStepToStepAndScratchMemoryToEach) {
  run();
  EXPECT_THAT(script.ran, ::testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(arrays_[0], std::byte{43});
  EXPECT_EQ(chain_.conclude(report_.data()), absl::OkStatus());
  EXPECT_EQ(chain_.cost().core_seconds, 3);
  EXPECT_EQ(chain_.cost().gpu_seconds, 6);
  const std::vector<OutputSpec> outputs = chain_.outputs();
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_TRUE(outputs[0].kept);
  EXPECT_FALSE(outputs[1].kept || outputs[2].kept);
}

TEST_F(ChainRunTest, OnTheCpuNothingRunsBehindAStepWithoutAnAnswer) {
  script.without_answer = 1;
  run();
  EXPECT_THAT(script.ran, ::testing::ElementsAre(0, 1));
  EXPECT_EQ(chain_.conclude(report_.data()).message(), "steps[1].filter_box: image: has none");
}

TEST_F(ChainRunTest, ACancellationIsSeenBetweenSteps) {
  script.cancelled_in = 1;
  EXPECT_THROW(run(), Interrupted);
  EXPECT_THAT(script.ran, ::testing::ElementsAre(0, 1));
}

}  // namespace
}  // namespace cumulus::server
