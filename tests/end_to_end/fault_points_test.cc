// Faults at named places of the daemon, which its configuration asks for.
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cumulus/client.h"
#include "cumulus/errors.h"
#include "cumulus/summed_area_table.h"
#include "kernels/core/cuda_executor.h"
#include "tests/end_to_end/program.h"
#include "tests/support/process_tree.h"

namespace cumulus::testing {
namespace {

constexpr std::int64_t kSide = 16;
const std::vector<float> kImage(kSide* kSide, 1.0F);

/// A daemon with `text` as its configuration, and a client of it.
class FaultPoints : public ::testing::Test {
 protected:
  void SetUp() override {
    if (CUMULUS_FAULT_POINTS == 0) GTEST_SKIP() << "this build has no fault points (CUMULUS_FAULT_POINTS)";
  }
  void start(const std::string& text, const std::vector<std::string>& flags = {}) {
    std::ofstream(folder_ / "config") << text;
    std::vector<std::string> arguments = {"--config", folder_ / "config", "--lame-duck", "0", "--drain", "1"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    daemon_ = std::make_unique<Daemon>(arguments);
    client_ = std::make_unique<Client>(Client::connect(daemon_->address()).value());
  }
  Session session(bool recreate = false) {
    SessionOptions options;
    options.recreate = recreate;
    return client_->create_session(options).value();
  }
  static absl::StatusOr<Buffer> upload(const Session& session) {
    return session.upload(ArrayView(kImage, {kSide, kSide}));
  }
  /// What the second of two calls of the session is told.
  static absl::Status second_call(const Session& session) {
    const auto image = upload(session);
    if (!image.ok()) return image.status();
    const absl::Status first = session.run(filter_box(*image, {1})).status();
    return first.ok() ? session.run(filter_box(*image, {1})).status() : first;
  }
  absl::Duration time_until(const std::function<bool()>& condition) const {
    const absl::Time begin = absl::Now();
    while (!condition() && absl::Now() - begin < absl::Seconds(60)) absl::SleepFor(absl::Milliseconds(2));
    return absl::Now() - begin;
  }
  pid_t worker() {
    const std::vector<pid_t> children = children_of(daemon_->program().id());
    return children.empty() ? -1 : children.front();
  }

  const TemporaryFolder folder_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Client> client_;
};

TEST_F(FaultPoints, AnAllocationThatFailsIsSaidAndLeavesTheRest) {
  start("fault_points { place: ALLOCATION nth: 2 }");
  const Session own = session();
  const auto first = upload(own);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(absl::IsResourceExhausted(upload(own).status()));
  EXPECT_TRUE(own.run(filter_box(*first, {1})).ok());
}

TEST_F(FaultPoints, AFlippedChecksumIsNoticed) {
  start("fault_points { place: FLIPPED_CHECKSUM }");
  const Session own = session();
  const auto buffer = upload(own);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_TRUE(absl::IsDataLoss(own.download<float>(*buffer).status()));
  EXPECT_EQ(*own.download<float>(*buffer), kImage);
}

TEST_F(FaultPoints, ASlowDeviceIsSlowOnce) {
  start("fault_points { place: SLOW_DEVICE delay { seconds: 3 } }");
  RunOptions hasty;
  hasty.call.timeout = absl::Seconds(1);
  const Operation sums = build_summed_area_table(ArrayView(kImage, {kSide, kSide}));
  EXPECT_TRUE(absl::IsDeadlineExceeded(client_->run(sums, hasty).status()));
  EXPECT_TRUE(client_->run(sums).ok());
}

TEST_F(FaultPoints, AnUploadThatIsNotReadEnds) {
  start("fault_points { place: STALLED_READER } limits { stalled_transfer { seconds: 1 } }");
  const Session own = session();
  EXPECT_TRUE(absl::IsDeadlineExceeded(upload(own).status()));
  EXPECT_TRUE(upload(own).ok());
}

TEST_F(FaultPoints, AWorkerThatIsKilledInACallIsNoErrorForASessionThatIsMadeAgain) {
  start("fault_points { place: KILL_WORKER nth: 3 }", {"--supervise"});
  const Session own = session(true);
  const auto image = upload(own);
  ASSERT_TRUE(image.ok()) << image.status();
  const std::string instance = own.instance();
  for (int i = 0; i < 4; ++i) {
    const absl::Status status = own.run(filter_box(*image, {1})).status();
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_NE(own.instance(), instance);
}

TEST_F(FaultPoints, AStickyErrorIsToldAndBringsANewWorker) {
  start("fault_points { place: STICKY_ERROR nth: 2 }", {"--supervise"});
  const pid_t first = worker();
  const absl::Status fault = second_call(session());
  EXPECT_TRUE(absl::IsInternal(fault)) << fault;
  EXPECT_EQ(error_reason(fault), "DEVICE_FAULT");
  EXPECT_LT(time_until([&] { return worker() > 0 && worker() != first; }), absl::Seconds(20));
  EXPECT_TRUE(client_->create_session().ok());
}

class FaultTimes : public FaultPoints {
 protected:
  /// Of the fault `place` in the second call: the health, the worker's end and the next worker.
  void expect_kept(const std::string& place, const std::vector<std::string>& flags) {
    start("fault_points { place: " + place + " nth: 2 }", flags);
    const pid_t first = worker();
    const Session own = session();
    const absl::Status fault = second_call(own);
    EXPECT_EQ(error_reason(fault), "DEVICE_FAULT") << fault;
    EXPECT_LT(time_until([&] { return health() != Health::kServing; }), absl::Milliseconds(100));
    EXPECT_LT(time_until([&] { return worker() != first; }), absl::Seconds(2));
    EXPECT_LT(time_until([&] { return health() == Health::kServing; }), absl::Seconds(5));
    EXPECT_NE(client_->create_session().value().instance(), own.instance());
  }

 private:
  Health health() const { return client_->health().value_or(Health::kNotServing); }
};

class NightlyFaults : public FaultTimes {};

TEST_F(NightlyFaults, OfADeviceKeepTheirTimes) { expect_kept("STICKY_ERROR", {"--supervise"}); }

class FaultingKernelCuda : public FaultTimes {
 protected:
  void SetUp() override {
    FaultTimes::SetUp();
    if (!IsSkipped() && cuda_device_count() == 0)
      GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
  }
  const std::vector<std::string> flags_ = {"--supervise", "--backend", "cuda"};
};

TEST_F(FaultingKernelCuda, KeepsItsTimes) { expect_kept("FAULTING_KERNEL", flags_); }

TEST_F(FaultingKernelCuda, EndsAllThatIsInFlight) {
  start("fault_points { place: FAULTING_KERNEL nth: 40 }", flags_);
  const Session own = session();
  const auto image = upload(own);
  ASSERT_TRUE(image.ok()) << image.status();
  std::vector<absl::Status> ends(8);
  std::vector<std::thread> callers;
  for (absl::Status& end : ends) {
    callers.emplace_back([&] {
      while (end.ok()) end = own.run(filter_box(*image, {1})).status();
    });
  }
  for (std::thread& caller : callers) caller.join();
  std::size_t faults = 0;
  for (const absl::Status& end : ends) {
    const std::string reason = error_reason(end);
    // Who was between two calls meets a worker that has ended, or the next one.
    EXPECT_TRUE(reason == "DEVICE_FAULT" || reason == "INSTANCE_RESTARTED" || absl::IsUnavailable(end))
        << end;
    if (reason == "DEVICE_FAULT") ++faults;
  }
  EXPECT_GE(faults, 1U);
}

TEST(FaultPointsOfARelease, AreRefused) {
  if (CUMULUS_FAULT_POINTS != 0) GTEST_SKIP() << "this build has fault points";
  const TemporaryFolder folder;
  std::ofstream(folder / "config") << "fault_points { place: KILL_WORKER }";
  const Ended ended = Program(test_program("cumulusd"), {"--config", folder / "config"}).wait();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.errors.find("this build has none"), std::string::npos) << ended.errors;
}

}  // namespace
}  // namespace cumulus::testing
