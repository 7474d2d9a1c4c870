// The ends of short runs are waited for by the threads that began them, as far as the device says; those of
// long ones are expected when they came the last time.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "server/runtime/device_queue.h"
#include "server/runtime/expected_end.h"
#include "tests/support/blocking_job.h"

namespace cumulus::server {
namespace {

class MarklessLane final : public Lane {
 public:
  using Lane::Lane;
  void mark_compute_begin() override {}
  void mark_compute_end() override {}
  double compute_seconds() const override { return 0; }
};

/// One lane, whose runs end while they are waited for briefly, or else when another thread says so.
class SlowlyEndingDevice final : public Device {
 public:
  explicit SlowlyEndingDevice(bool ends_briefly) : Device("slow", "a test's", 1 << 20), brief_(ends_briefly) {
    lanes_.push_back(std::make_unique<MarklessLane>(CpuExecutor(1), allocate_host(64)));
  }
  ~SlowlyEndingDevice() override {
    if (other_.joinable()) other_.join();
  }

  std::string_view backend() const override { return "test"; }
  Space space() const override { return Space::kHost; }
  std::size_t lanes_of_a_flow() const override { return 1; }
  BufferMemory allocate(std::size_t bytes) override { return allocate_host(bytes); }
  HostMemory allocate_staging(std::size_t bytes) override { return allocate_host(bytes); }
  void copy_in(std::span<const std::byte>, const BufferMemory&, std::size_t, Done) override {}
  void copy_out(const BufferMemory&, std::size_t, std::span<std::byte>, Done) override {}
  void when_done(Lane& /*lane*/, absl::Duration expected, Done done) override {
    expected_ = expected;
    if (other_.joinable()) other_.join();
    other_ = std::thread([end = std::move(done)] { end(absl::OkStatus()); });
  }
  std::optional<absl::Status> wait_briefly(Lane& /*lane*/) override {
    ++waits_;
    return brief_ ? std::optional(absl::OkStatus()) : std::nullopt;
  }

  int waits() const { return waits_; }
  /// Of the last run, how long its end was expected to take.
  absl::Duration expected() const { return expected_; }

 private:
  const bool brief_;
  std::atomic<int> waits_ = 0;
  absl::Duration expected_;
  std::thread other_;
};

/// Notes where it ends.
class EndingJob final : public testing::BlockingJob {
 public:
  explicit EndingJob(double cost_seconds, int stages = 1, absl::Duration takes = absl::ZeroDuration())
      : BlockingJob({.cost_seconds = cost_seconds}), stages_(stages), takes_(takes) {}
  void submit(Lane& /*lane*/) noexcept override {}
  bool finish(Lane& lane, const absl::Status& device) noexcept override {
    if (--stages_ > 0) return false;
    absl::SleepFor(takes_);
    thread_ = std::this_thread::get_id();
    return BlockingJob::finish(lane, device);
  }
  bool ended_on_this_thread() const { return thread_ == std::this_thread::get_id(); }

 private:
  int stages_;
  const absl::Duration takes_;
  std::thread::id thread_;
};

class BriefWaits : public ::testing::Test {
 protected:
  static std::shared_ptr<EndingJob> run(DeviceQueue& queue, double cost_seconds, int stages = 1) {
    auto job = std::make_shared<EndingJob>(cost_seconds, stages);
    EXPECT_TRUE(queue.push(job, DeviceQueue::Starts::kCaller).ok());
    EXPECT_TRUE(job->outcome().ok());
    return job;
  }
};

TEST_F(BriefWaits, EndShortRunsWhereTheyBegan) {
  SlowlyEndingDevice device(true);
  DeviceQueue queue(device);
  EXPECT_TRUE(run(queue, 0.0005)->ended_on_this_thread());
  EXPECT_EQ(device.waits(), 1);
}

TEST_F(BriefWaits, AreAsManyAsARunHasStages) {
  SlowlyEndingDevice device(true);
  DeviceQueue queue(device);
  EXPECT_TRUE(run(queue, 0.0005, 2)->ended_on_this_thread());
  EXPECT_EQ(device.waits(), 2);
}

TEST_F(BriefWaits, LeaveRunsThatGoOnToTheDevicesThread) {
  SlowlyEndingDevice device(false);
  DeviceQueue queue(device);
  EXPECT_FALSE(run(queue, 0.0005)->ended_on_this_thread());
  EXPECT_EQ(device.waits(), 1);
}

TEST_F(BriefWaits, AreNotForLongRuns) {
  SlowlyEndingDevice device(true);
  DeviceQueue queue(device);
  EXPECT_FALSE(run(queue, 0.1)->ended_on_this_thread());
  EXPECT_EQ(device.waits(), 0);
}

TEST(ExpectedEnds, AreThoseOfTheSameCallTheLastTime) {
  SlowlyEndingDevice device(false);
  DeviceQueue queue(device);
  const auto run = [&](double cost_seconds, absl::Duration takes) {
    const auto job = std::make_shared<EndingJob>(cost_seconds, 1, takes);
    EXPECT_TRUE(queue.push(job).ok());
    EXPECT_TRUE(job->outcome().ok());
    while (queue.running() > 0) std::this_thread::yield();
    return device.expected();
  };
  EXPECT_EQ(run(0.1, absl::Milliseconds(40)), absl::InfiniteDuration());
  EXPECT_EQ(run(0.2, absl::ZeroDuration()), absl::InfiniteDuration()) << "of another call";
  const absl::Duration known = run(0.1, absl::ZeroDuration());
  EXPECT_GT(known, absl::Milliseconds(20));
  EXPECT_LT(known, absl::Seconds(20));
}

TEST(ExpectedEnds, AreNearForASmallPartOfTheTime) {
  const ExpectedEnd::Clock::time_point now;
  const auto near_at = [&](const ExpectedEnd& end, absl::Duration time) {
    return end.is_near(now + absl::ToChronoNanoseconds(time));
  };
  const ExpectedEnd of_milliseconds(now, absl::Milliseconds(20));
  EXPECT_FALSE(near_at(of_milliseconds, absl::Microseconds(19500)));
  EXPECT_TRUE(near_at(of_milliseconds, absl::Microseconds(19700)));
  EXPECT_TRUE(near_at(of_milliseconds, absl::Microseconds(20300)));
  EXPECT_FALSE(near_at(of_milliseconds, absl::Microseconds(20500)));
  const ExpectedEnd of_a_second(now, absl::Seconds(1));
  EXPECT_FALSE(near_at(of_a_second, absl::Milliseconds(999)));
  EXPECT_TRUE(near_at(of_a_second, absl::Microseconds(999600)));
  const ExpectedEnd late(now, -absl::Milliseconds(1));
  EXPECT_FALSE(near_at(late, absl::ZeroDuration()));
  const ExpectedEnd unknown(now, absl::InfiniteDuration());
  EXPECT_FALSE(near_at(unknown, absl::ZeroDuration()));
}

}  // namespace
}  // namespace cumulus::server
