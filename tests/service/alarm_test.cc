#include "server/runtime/alarm.h"

#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>

#include "server/runtime/device_queue.h"
#include "tests/support/blocking_job.h"

namespace cumulus::server {
namespace {

using testing::BlockingJob;

/// A thread that waits for the alarm once.
std::future<bool> wait_for(Alarm& alarm) {
  return std::async(std::launch::async, [&] { return alarm.wait(); });
}

bool comes_within(std::future<bool>& answer, std::chrono::milliseconds limit) {
  return answer.wait_for(limit) == std::future_status::ready;
}

TEST(Alarm, ComesAtTheTimeThatWasAskedForAndNotBefore) {
  Alarm alarm;
  const absl::Time when = absl::Now() + absl::Milliseconds(50);
  alarm.ask(when);
  EXPECT_TRUE(alarm.wait());
  EXPECT_GE(absl::Now(), when);
}

TEST(Alarm, ComesForAnEarlierTimeThatIsAskedForWhileItWaits) {
  Alarm alarm;
  alarm.ask(absl::Now() + absl::Hours(1));
  std::future<bool> answer = wait_for(alarm);
  EXPECT_FALSE(comes_within(answer, std::chrono::milliseconds(20)));
  alarm.ask(absl::Now() + absl::Hours(2));
  alarm.ask(absl::Now());
  ASSERT_TRUE(comes_within(answer, std::chrono::seconds(10)));
  EXPECT_TRUE(answer.get());
}

TEST(Alarm, ComesOnceForAllTimesThatAreOver) {
  Alarm alarm;
  alarm.ask(absl::Now());
  alarm.ask(absl::Now() - absl::Seconds(1));
  alarm.ask(absl::InfiniteFuture());
  EXPECT_TRUE(alarm.wait());
  std::future<bool> answer = wait_for(alarm);
  EXPECT_FALSE(comes_within(answer, std::chrono::milliseconds(20)));
  alarm.stop();
  EXPECT_FALSE(answer.get());
  EXPECT_FALSE(alarm.wait());
}

TEST(Alarm, IsAskedByAQueueWhereAJobWaits) {
  const auto device = make_cpu_device({.threads = 1, .budget_bytes = 1 << 20, .landing_bytes = 4096});
  DeviceQueue queue(*device);
  Alarm alarm;
  queue.sweep_by(alarm);
  const auto running = std::make_shared<BlockingJob>();
  ASSERT_TRUE(queue.push(running).ok());
  running->wait_until_running();
  ASSERT_TRUE(alarm.wait());
  EXPECT_FALSE(queue.sweep(absl::Now())) << "it runs, and none waits";
  const auto waiting = std::make_shared<BlockingJob>();
  ASSERT_TRUE(queue.push(waiting).ok());
  ASSERT_TRUE(alarm.wait());
  EXPECT_TRUE(queue.sweep(absl::Now()));
  running->release();
  waiting->release();
  EXPECT_TRUE(waiting->outcome().ok());
}

/// Finds no memory the first time, which takes longer than a sweep.
class LateShortage final : public BlockingJob {
 public:
  absl::Status reserve() override {
    if (tries_++ > 0) return absl::OkStatus();
    trying_.set_value();
    swept_.get_future().wait();
    return absl::UnavailableError("not now");
  }
  void wait_until_trying() { trying_.get_future().wait(); }
  void let_fail() { swept_.set_value(); }

 private:
  int tries_ = 0;
  std::promise<void> trying_;
  std::promise<void> swept_;
};

TEST(Alarm, IsAskedForAJobThatASweepDidNotSee) {
  const auto device = make_cpu_device({.threads = 1, .budget_bytes = 1 << 20, .landing_bytes = 4096});
  DeviceQueue queue(*device);
  Alarm alarm;
  queue.sweep_by(alarm);
  const auto job = std::make_shared<LateShortage>();
  ASSERT_TRUE(queue.push(job).ok());
  job->wait_until_trying();
  ASSERT_TRUE(alarm.wait());
  EXPECT_FALSE(queue.sweep(absl::Now()));
  // It would see that memory may have come back meanwhile, and try at once.
  job->let_fail();
  ASSERT_TRUE(alarm.wait());
  queue.sweep(absl::Now());
  job->wait_until_running();
  job->release();
  EXPECT_TRUE(job->outcome().ok());
}

}  // namespace
}  // namespace cumulus::server
