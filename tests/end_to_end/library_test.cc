// The client library against the real daemon, and the example that README shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cumulus/client.h"
#include "cumulus/errors.h"
#include "cumulus/kd_tree.h"
#include "cumulus/recursive_filter.h"
#include "cumulus/sampling_table.h"
#include "cumulus/summed_area_table.h"
#include "tests/end_to_end/program.h"
#include "tests/support/test_data.h"

namespace cumulus::testing {
namespace {

Client connect(const Daemon& daemon) {
  absl::StatusOr<Client> client = Client::connect(daemon.address());
  EXPECT_TRUE(client.ok()) << client.status();
  return *client;
}

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

/// One operation that computes for about as long as wanted, on any machine: the neighbours of many queries
/// within a radius that all points are in.
class LongCounts {
 public:
  explicit LongCounts(const Session& session) : session_(&session) {
    constexpr std::int64_t kPoints = 1 << 17;
    std::vector<float> cloud(3 * kPoints);
    for (std::size_t i = 0; i < cloud.size(); ++i) cloud[i] = static_cast<float>(i * 2654435761U % 4096);
    points_ = std::make_unique<Buffer>(*session.upload(ArrayView(cloud, {kPoints, 3})));
    tree_ = std::make_unique<Result>(*session.run(build_kd_tree(*points_)));
    constexpr std::int64_t kProbe = 64;
    const auto probe = session.run(of_queries(kProbe));
    seconds_a_query_ = absl::ToDoubleSeconds(probe->timings().compute) / kProbe;
  }

  Operation of_seconds(double seconds) {
    const auto queries = static_cast<std::int64_t>(seconds / seconds_a_query_);
    return of_queries(std::clamp<std::int64_t>(queries, 1, 1 << 20));
  }

 private:
  Operation of_queries(std::int64_t count) {
    const std::vector<float> queries(3 * static_cast<std::size_t>(count));
    queries_ = std::make_unique<Buffer>(*session_->upload(ArrayView(queries, {count, 3})));
    const auto part = [this](const char* name) -> const Buffer& { return *tree_->buffer(name); };
    return count_neighbors({part("points"), part("idx_array"), part("node_data"), part("node_bounds")},
                           *queries_, {.radius = 1e6});
  }

  const Session* session_;
  std::unique_ptr<Buffer> points_;
  std::unique_ptr<Buffer> queries_;
  std::unique_ptr<Result> tree_;
  double seconds_a_query_ = 0;
};

TEST(ClientLibrary, ChainsOperationsOnBuffers) {
  Daemon daemon;
  const Client client = connect(daemon);
  absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::StatusOr<Buffer> image = session->upload(ArrayView(ramp(12), {3, 4}));
  ASSERT_TRUE(image.ok()) << image.status();
  const absl::StatusOr<Result> blurred = session->run(filter_box(*image, {0}));
  ASSERT_TRUE(blurred.ok()) << blurred.status();
  absl::StatusOr<Result> sums = session->run(build_summed_area_table(*blurred->buffer("image")));
  ASSERT_TRUE(sums.ok()) << sums.status();
  const absl::StatusOr<Array> array = sums->fetch("sums");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->values<double>()->back(), 78.0);
  EXPECT_EQ(sums->timings().device, "cpu");
}

TEST(ClientLibrary, AddsFilteredImagesWithAWeight) {
  Daemon daemon;
  const Client client = connect(daemon);
  absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::StatusOr<Buffer> image = session->upload(ArrayView(ramp(12), {3, 4}));  // 1 to 12
  ASSERT_TRUE(image.ok()) << image.status();
  RecursiveFilterOptions options;
  options.x = AxisKernel{ExponentialKernel{0}, ImageBoundary::kClamp};  // leaves the image as it is
  options.weight = -0.5;
  const absl::StatusOr<Result> lost = session->run(apply_recursive_filter(*image, options));
  EXPECT_EQ(lost.status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(field_violations(lost.status()).size(), 1U) << lost.status();
  EXPECT_EQ(field_violations(lost.status()).front().field, "weight");
  options.accumulate = Source(*image);
  absl::StatusOr<Result> sum = session->run(apply_recursive_filter(*image, options));
  ASSERT_TRUE(sum.ok()) << sum.status();
  const absl::StatusOr<Array> array = sum->fetch("image");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->values<float>()->back(), 6.0F);
}

TEST(ClientLibrary, AsksAResidentTableForRectangles) {
  Daemon daemon;
  const Client client = connect(daemon);
  absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::StatusOr<Buffer> image = session->upload(ArrayView(ramp(12), {3, 4}));  // 1 to 12
  ASSERT_TRUE(image.ok()) << image.status();
  absl::StatusOr<Result> tables =
      session->run(build_summed_area_table(*image, {.exclusive = true, .squares = true}));
  ASSERT_TRUE(tables.ok()) << tables.status();
  const std::vector<std::int32_t> edges = {0, 0, 3, 4, 1, 1, 2, 3};
  SumRectanglesOptions options;
  options.statistics = {RectangleStatistic::kSum, RectangleStatistic::kMean, RectangleStatistic::kVariance};
  options.squares = Source(*tables->buffer("squares"));
  options.exclusive = true;
  options.refuse_outside = true;
  absl::StatusOr<Result> answers =
      session->run(sum_rectangles(*tables->buffer("sums"), ArrayView(edges, {2, 4}), options));
  ASSERT_TRUE(answers.ok()) << answers.status();
  const auto values = [&](const char* name) {
    const absl::StatusOr<Array> array = answers->fetch(name);
    EXPECT_TRUE(array.ok()) << array.status();
    const auto elements = array->values<double>();
    return std::vector<double>(elements->begin(), elements->end());
  };
  EXPECT_EQ(values("sums"), (std::vector<double>{78, 13}));
  EXPECT_EQ(values("means"), (std::vector<double>{6.5, 6.5}));
  EXPECT_DOUBLE_EQ(values("variances")[1], 0.25);
  const std::vector<std::int32_t> outside = {0, 0, 4, 4};
  EXPECT_FALSE(
      session->run(sum_rectangles(*tables->buffer("sums"), ArrayView(outside, {1, 4}), options)).ok());
}

TEST(ClientLibrary, AsksATileLocalTableForRectangles) {
  Daemon daemon;
  const Client client = connect(daemon);
  absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::StatusOr<Buffer> image = session->upload(ArrayView(ramp(70 * 200), {70, 200}));
  ASSERT_TRUE(image.ok()) << image.status();
  absl::StatusOr<Result> table =
      session->run(build_summed_area_table(*image, {.precision = SumPrecision::kTileLocal}));
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<std::int32_t> edges = {63, 127, 65, 129};  // a pixel of each of four tiles
  SumRectanglesOptions options;
  options.statistics = {RectangleStatistic::kMean};
  options.above = Source(*table->buffer("above"));
  options.left = Source(*table->buffer("left"));
  absl::StatusOr<Result> answer =
      session->run(sum_rectangles(*table->buffer("sums"), ArrayView(edges, {1, 4}), options));
  ASSERT_TRUE(answer.ok()) << answer.status();
  const absl::StatusOr<Array> means = answer->fetch("means");
  ASSERT_TRUE(means.ok()) << means.status();
  EXPECT_NEAR(means->values<double>()->front(), (63 * 200 + 64 * 200) / 2.0 + 127.5 + 1, 1e-2);
}

TEST(ClientLibrary, BlursByTheRadiusOfEachPixel) {
  Daemon daemon;
  const Client client = connect(daemon);
  const std::vector<float> radii = {0, 1, 1, 0};
  BoxFilterOptions options;
  options.radius = 0;
  options.radius_map = Source(ArrayView(radii, {1, 4}));
  options.boundary_x = BoxBoundary::kRepeat;
  options.deviation = true;
  absl::StatusOr<Result> blurred = client.run(filter_box(ArrayView(ramp(4), {1, 4}), options));
  ASSERT_TRUE(blurred.ok()) << blurred.status();
  const absl::StatusOr<Array> means = blurred->fetch("image");
  ASSERT_TRUE(means.ok()) << means.status();
  const auto values = means->values<float>();
  EXPECT_EQ(std::vector<float>(values->begin(), values->end()), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(blurred->fetch("deviation").ok());
}

TEST(ClientLibrary, RunsASmallJobInOneCall) {
  Daemon daemon;
  const Client client = connect(daemon);
  absl::StatusOr<Result> result = client.run(build_summed_area_table(ArrayView(ramp(6), {2, 3})));
  ASSERT_TRUE(result.ok()) << result.status();
  const absl::StatusOr<Array> sums = result->fetch("sums");
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_EQ(sums->values<double>()->back(), 21.0);
}

TEST(ClientLibrary, CoefficientsOfAnotherLuminanceAreRefused) {
  Daemon daemon;
  const Client client = connect(daemon);
  absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::StatusOr<Buffer> weights = session->upload(ArrayView(ramp(12), {2, 2, 3}));
  ASSERT_TRUE(weights.ok()) << weights.status();
  SamplingTableOptions options;
  options.luminance_coefficients = {0.5F, 0.25F, 0.25F};
  const absl::StatusOr<Result> lost = session->run(build_sampling_table(*weights, options));
  ASSERT_EQ(field_violations(lost.status()).size(), 1U) << lost.status();
  EXPECT_EQ(field_violations(lost.status()).front().field, "luminance_coefficients");
  options.luminance = Luminance::kCustom;
  EXPECT_TRUE(session->run(build_sampling_table(*weights, options)).ok());
}

TEST(ClientLibrary, HandlesOfAnotherSessionAreNotFound) {
  Daemon daemon;
  const Client client = connect(daemon);
  absl::StatusOr<Session> mine = client.create_session();
  absl::StatusOr<Session> yours = client.create_session();
  ASSERT_TRUE(mine.ok() && yours.ok());
  const absl::StatusOr<Buffer> image = mine->upload(ArrayView(ramp(6), {2, 3}));
  ASSERT_TRUE(image.ok()) << image.status();
  const absl::Status refused = yours->run(filter_box(*image, {1})).status();
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(error_reason(refused), "");
}

TEST(ClientLibrary, SaysThatASessionIsGone) {
  Daemon daemon;
  const Client client = connect(daemon);
  absl::StatusOr<Buffer> orphan = absl::UnknownError("not yet");
  {
    const absl::StatusOr<Session> session = client.create_session();
    ASSERT_TRUE(session.ok()) << session.status();
    orphan = session->upload(ArrayView(ramp(6), {2, 3}));
    ASSERT_TRUE(orphan.ok()) << orphan.status();
  }
  const absl::StatusOr<Session> other = client.create_session();
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(other->run(filter_box(*orphan, {1})).ok());
  EXPECT_TRUE(absl::IsNotFound(other->download<float>(*orphan).status()));
}

TEST(ClientLibrary, ManyThreadsShareOneSession) {
  Daemon daemon;
  const Client client = connect(daemon);
  const absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<std::thread> threads;
  for (std::size_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&session, t] {
      const std::vector<float> values = ramp(t * 400'000);
      for (int i = 0; i < 5; ++i) {
        const auto shape = Shape{static_cast<std::int64_t>(t), 400'000};
        const absl::StatusOr<Buffer> buffer = session->upload(ArrayView(values, shape));
        ASSERT_TRUE(buffer.ok()) << buffer.status();
        const auto back = session->download<float>(*buffer);
        ASSERT_TRUE(back.ok()) << back.status();
        ASSERT_EQ(*back, values);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ClientLibrary, FinishesItsCallsWhileTheDaemonDrains) {
  Daemon daemon({"--lame-duck", "2", "--drain", "3"});
  const Client client = connect(daemon);
  const absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::StatusOr<Buffer> image = session->upload(ArrayView(ramp(1'000'000), {1000, 1000}));
  ASSERT_TRUE(image.ok()) << image.status();
  std::vector<std::future<absl::StatusOr<Result>>> calls;
  for (int i = 0; i < 8; ++i) calls.push_back(session->run_async(filter_box(*image, {10})));
  daemon.program().send(SIGTERM);
  for (auto& call : calls) {
    const absl::StatusOr<Result> result = call.get();
    EXPECT_TRUE(result.ok()) << result.status();
  }
  EXPECT_EQ(daemon.program().wait().exit_code, 0);
}

TEST(ClientLibrary, NoticesAServerThatDiesInTheMiddleOfACall) {
  Daemon daemon;
  const Client client = connect(daemon);
  const absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  LongCounts counts(*session);
  auto call = session->run_async(counts.of_seconds(60));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const absl::Time killed = absl::Now();
  daemon.program().send(SIGKILL);
  EXPECT_TRUE(absl::IsUnavailable(call.get().status()));
  EXPECT_LT(absl::Now() - killed, absl::Seconds(10));
}

TEST(ClientLibrary, NoticesAServerThatStandsStillInTheMiddleOfACall) {
  Daemon daemon;
  const absl::StatusOr<Client> client =
      Client::connect(daemon.address(), {.call_timeout = absl::Minutes(2), .dead_after = absl::Seconds(2)});
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<Session> session = client->create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  LongCounts counts(*session);
  auto call = session->run_async(counts.of_seconds(60));
  daemon.program().send(SIGSTOP);
  const absl::Time stopped = absl::Now();
  EXPECT_TRUE(absl::IsUnavailable(call.get().status()));
  EXPECT_LT(absl::Now() - stopped, absl::Seconds(60));
}

TEST(ClientLibrary, LetsACallComputeForLongerThanADeadServerIsSilent) {
  Daemon daemon;
  const absl::StatusOr<Client> client = Client::connect(daemon.address(), {.dead_after = absl::Seconds(4)});
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<Session> session = client->create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  LongCounts counts(*session);
  absl::Duration longest;
  for (double seconds = 8; seconds < 300 && longest < absl::Seconds(6); seconds *= 2) {
    const absl::StatusOr<Result> counted = session->run(counts.of_seconds(seconds));
    ASSERT_TRUE(counted.ok()) << counted.status();
    longest = counted->timings().compute;
  }
  EXPECT_GT(longest, absl::Seconds(6));
}

TEST(Example, EstimatesTheIrradianceOfItsSky) {
  Daemon daemon;
  const Ended ended = Program(CUMULUS_EXAMPLE_IRRADIANCE, {daemon.address()}).wait();
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  // By hand: a white sky gives pi; the sun, 4 pixels at rows 60 and 61 of 256, adds its radiance times
  // cosine times solid angle.
  double irradiance = M_PI;
  for (const double row : {60.0, 61.0}) {
    const double theta = M_PI * (row + 0.5) / 256.0;
    const double solid_angle = (M_PI / 256.0) * (2 * M_PI / 512.0) * std::sin(theta);
    irradiance += 2 * (50000.0 - 1.0) * std::cos(theta) * solid_angle;
  }
  std::istringstream lines(ended.output);
  std::string words;
  double estimate = 0;
  while (lines >> words) {
    if (words == "irradiance") lines >> estimate;
  }
  EXPECT_NEAR(estimate, irradiance, 0.01 * irradiance) << ended.output;  // of the last line, 4096 samples
}

}  // namespace
}  // namespace cumulus::testing
