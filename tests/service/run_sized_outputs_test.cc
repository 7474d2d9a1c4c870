// Operations whose outputs have sizes that only their run knows, seen through one that has no kernel.
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cumulus/v1/summed_area_table.pb.h"
#include "kernels/core/views.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/pipeline.h"
#include "server/runtime/open_devices.h"
#include "tests/support/test_server.h"

namespace cumulus::server {
namespace {

/// Keeps as many of its input's numbers as the first of them says, twice: as they are, and halved in number.
struct KeepFirst {
  using Request = v1::BuildSummedAreaTableRequest;
  struct Report {
    float kept;
  };
  struct Plan {
    ArrayShape numbers;
  };
  static constexpr std::string_view kName = "KeepFirst";

  static std::vector<SourceField> sources(const Request& request) { return {{"image", &request.image()}}; }
  static absl::StatusOr<Plan> validate(const Request& /*request*/, std::span<const InputArray> inputs) {
    return Plan{inputs[0].shape};
  }
  static Cost cost(const Plan& /*plan*/) { return {}; }
  static std::vector<OutputSpec> outputs(const Plan& plan) {
    return {{"all", plan.numbers}, {"half", plan.numbers}};
  }
  template <Space S>
  static std::size_t scratch_bytes(const Plan& /*plan*/) {
    return 0;
  }
  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& report) {
    const auto numbers = inputs.template as<const std::byte>(0);
    EXPECT_EQ(numbers.size(), plan.numbers.bytes());
    executor.copy(numbers, outputs.template as<std::byte>(0));
    executor.copy(numbers, outputs.template as<std::byte>(1));
    executor.download(numbers.subspan(0, sizeof(float)),
                      {reinterpret_cast<std::byte*>(&report.kept), sizeof(float)});
  }
  static absl::Status conclude(const Plan& /*plan*/, const Report& report) {
    if (report.kept < 0) return no_answer("NEGATIVE", "cannot keep fewer than none");
    return absl::OkStatus();
  }
  static std::vector<ArrayShape> final_shapes(const Plan& plan, const Report& report) {
    const auto kept = static_cast<std::int64_t>(report.kept);
    return {{plan.numbers.type, {kept}}, {plan.numbers.type, {kept / 2}}};
  }
};

/// One call, started without gRPC.
struct Call {
  v1::BuildSummedAreaTableRequest request;
  v1::OperationResult result;
  std::promise<grpc::Status> answered;

  explicit Call(const std::vector<float>& numbers, const std::string& session = "") {
    request.mutable_options()->set_session(session);
    testing::set_inline(*request.mutable_image(), v1::FLOAT32, {static_cast<std::int64_t>(numbers.size())},
                        numbers);
  }
  grpc::Status run(Runtime& runtime) {
    std::make_shared<OperationCall>(runtime, std::make_unique<TypedRun<KeepFirst>>(request),
                                    request.options(), result,
                                    OperationCall::Context{{absl::Now() + absl::Seconds(30)}, "test"},
                                    [this](grpc::Status status) { answered.set_value(std::move(status)); })
        ->begin();
    return answered.get_future().get();
  }
};

class RunSizedOutputs : public ::testing::Test {
 protected:
  virtual Configuration configuration() const { return testing::TestServer::configuration(); }
  void SetUp() override {
    Configuration settings = configuration();
    auto devices = open_devices(settings);
    ASSERT_TRUE(devices.ok()) << devices.status();
    runtime_ = std::make_unique<Runtime>(settings, *std::move(devices));
    session_ = *runtime_->sessions.create_session({"s", &slot(), absl::Minutes(1), std::size_t{64} << 20});
  }

  DeviceSlot& slot() { return runtime_->devices.front(); }
  std::size_t reserved_bytes() { return slot().device->budget()->reserved_bytes(); }
  /// `count` numbers, of which `kept` are to be kept.
  static std::vector<float> numbers(std::size_t count, float kept) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.0f);
    values[0] = kept;
    return values;
  }
  std::vector<float> read(const std::string& name) {
    const auto buffer = runtime_->sessions.find_buffer(name, {});
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    std::vector<float> values((*buffer)->shape.elements());
    std::promise<absl::Status> done;
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span<float>(values));
    slot().device->copy_out((*buffer)->memory, 0, bytes,
                            [&](const absl::Status& status) { done.set_value(status); });
    EXPECT_TRUE(done.get_future().get().ok());
    return values;
  }
  void expect_resident_results_of_their_own_sizes();
  void expect_inline_results_of_their_own_sizes();

  std::unique_ptr<Runtime> runtime_;
  SessionHandle session_;
};

std::vector<float> first(const std::vector<float>& values, std::ptrdiff_t count) {
  return {values.begin(), values.begin() + count};
}

void RunSizedOutputs::expect_resident_results_of_their_own_sizes() {
  const std::vector<float> values = numbers(50000, 1001);
  Call call(values, session_->name);
  const grpc::Status status = call.run(*runtime_);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(call.result.arrays_size(), 2);
  EXPECT_EQ(call.result.arrays(0).buffer().size_bytes(), 4004);
  EXPECT_EQ(read(call.result.arrays(0).buffer().name()), first(values, 1001));
  EXPECT_EQ(read(call.result.arrays(1).buffer().name()), first(values, 500));
  EXPECT_TRUE(testing::eventually([&] { return reserved_bytes() == align_block(4004) + align_block(2000); }))
      << reserved_bytes() << " bytes are held: the room of the bounds has not come back";
}

void RunSizedOutputs::expect_inline_results_of_their_own_sizes() {
  const std::vector<float> values = numbers(200000, 3);  // the bounds are beyond what may come back inline
  Call call(values);
  const grpc::Status status = call.run(*runtime_);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(testing::values_of<float>(call.result.arrays(0).inline_array()), first(values, 3));
  EXPECT_EQ(testing::values_of<float>(call.result.arrays(1).inline_array()), first(values, 1));
  EXPECT_EQ(call.result.arrays(1).inline_array().spec().shape(0), 1);
  EXPECT_TRUE(testing::eventually([&] { return reserved_bytes() == 0; }));
}

TEST_F(RunSizedOutputs, StayOnTheDeviceInBuffersOfTheirOwnSizes) {
  expect_resident_results_of_their_own_sizes();
}

TEST_F(RunSizedOutputs, ComeBackInlineByTheirOwnSizes) { expect_inline_results_of_their_own_sizes(); }

TEST_F(RunSizedOutputs, MayBeEmptyAndMayFillTheirBounds) {
  Call none(numbers(1000, 0), session_->name);
  ASSERT_TRUE(none.run(*runtime_).ok());
  EXPECT_EQ(none.result.arrays(0).buffer().size_bytes(), 0);
  EXPECT_EQ(reserved_bytes(), 0U);
  const std::vector<float> values = numbers(1000, 1000);
  Call all(values, session_->name);
  ASSERT_TRUE(all.run(*runtime_).ok());
  EXPECT_EQ(read(all.result.arrays(0).buffer().name()), values);
  EXPECT_EQ(reserved_bytes(), align_block(4000) + align_block(2000));
}

TEST_F(RunSizedOutputs, AreInputsOfExactlyTheirSizeToTheNextCall) {
  // 999 of 1000 numbers fill the block that was reserved for 1000: no copy, and yet 999 numbers.
  Call made(numbers(1000, 999), session_->name);
  ASSERT_TRUE(made.run(*runtime_).ok());
  Call next({}, session_->name);
  next.request.mutable_image()->set_buffer(made.result.arrays(0).buffer().name());
  ASSERT_TRUE(next.run(*runtime_).ok());
  EXPECT_EQ(read(next.result.arrays(0).buffer().name()), first(numbers(1000, 999), 999));
}

TEST_F(RunSizedOutputs, BeyondTheInlineLimitAreRefusedAfterTheRun) {
  Call call(numbers(200000, 200000));
  const grpc::Status status = call.run(*runtime_);
  testing::expect_reason(status, grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED");
  EXPECT_NE(status.error_message().find("1200000 bytes"), std::string::npos) << status.error_message();
  EXPECT_EQ(call.result.arrays_size(), 0);
  EXPECT_EQ(reserved_bytes(), 0U);
}

TEST_F(RunSizedOutputs, AreNotMadeWhereTheRunFoundNoAnswer) {
  Call call(numbers(10, -1), session_->name);
  testing::expect_reason(call.run(*runtime_), grpc::StatusCode::FAILED_PRECONDITION, "NEGATIVE");
  EXPECT_EQ(reserved_bytes(), 0U);
  EXPECT_EQ(runtime_->sessions.buffer_count(), 0U);
}

TEST_F(RunSizedOutputs, CountTheirBoundsAndTheirCopiesBeforeTheyRun) {
  Call call(numbers(200000, 100), session_->name);
  ASSERT_TRUE(call.run(*runtime_).ok());
  EXPECT_EQ(slot().device->budget()->high_water_bytes(), 4 * align_block(800000));
}

class RunSizedOutputsCuda : public RunSizedOutputs {
 protected:
  Configuration configuration() const override { return testing::TestServer::gpu_configuration(); }
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
    RunSizedOutputs::SetUp();
  }
};

TEST_F(RunSizedOutputsCuda, StayOnTheDeviceInBuffersOfTheirOwnSizes) {
  expect_resident_results_of_their_own_sizes();
}

TEST_F(RunSizedOutputsCuda, ComeBackInlineByTheirOwnSizes) { expect_inline_results_of_their_own_sizes(); }

}  // namespace
}  // namespace cumulus::server
