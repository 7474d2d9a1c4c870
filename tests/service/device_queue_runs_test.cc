// Which jobs of a device's queue run, and what their runs teach and cost.
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/runtime/device_queue.h"
#include "tests/support/blocking_job.h"
#include "tests/support/eventually.h"

namespace cumulus::server {
namespace {

using testing::BlockingJob;
using testing::eventually;
using Options = BlockingJob::Options;

/// Takes no time, and notes its principal where it runs.
class NotedJob : public BlockingJob {
 public:
  NotedJob(const Options& options, std::vector<std::string>& order) : BlockingJob(options), order_(order) {}
  void submit(Lane& /*lane*/) noexcept override { order_.push_back(principal().name); }

 private:
  std::vector<std::string>& order_;
};

/// One that nobody wants any more.
class CancelledJob final : public NotedJob {
 public:
  using NotedJob::NotedJob;
  bool requested() const override { return true; }
};

class FailedJob final : public NotedJob {
 public:
  using NotedJob::NotedJob;
  bool succeeded() const override { return false; }
};

/// One that a caller brings. Notes the thread on which it runs, and may bring another one there.
class BroughtJob final : public BlockingJob {
 public:
  using BlockingJob::BlockingJob;
  void submit(Lane& /*lane*/) noexcept override {
    thread_ = std::this_thread::get_id();
    if (meanwhile) meanwhile();
  }
  bool ran_on_this_thread() const { return thread_ == std::this_thread::get_id(); }

  std::function<void()> meanwhile;

 private:
  std::thread::id thread_;
};

class DeviceQueueRuns : public ::testing::Test {
 protected:
  explicit DeviceQueueRuns(int lanes = 1)
      : device_(
            make_cpu_device({.threads = 1, .lanes = lanes, .budget_bytes = 1 << 20, .landing_bytes = 4096})) {
  }

  std::shared_ptr<BlockingJob> occupy(const Options& options = {.principal = "before"}) {
    auto job = std::make_shared<BlockingJob>(options);
    EXPECT_TRUE(queue_.push(job).ok());
    job->wait_until_running();
    return job;
  }
  template <class J = NotedJob>
  std::shared_ptr<J> push(const Options& options) {
    auto job = std::make_shared<J>(options, order_);
    EXPECT_TRUE(queue_.push(job).ok());
    return job;
  }

  const std::unique_ptr<Device> device_;
  DeviceQueue queue_{*device_};
  std::vector<std::string> order_;
};

TEST_F(DeviceQueueRuns, AreNotOfJobsWhoseDeadlineHasPassed) {
  const auto running = occupy();
  const absl::Time deadline = absl::Now() + absl::Milliseconds(50);
  const auto late = push({.deadline = deadline});
  absl::SleepFor(deadline + absl::Milliseconds(1) - absl::Now());
  running->release();
  EXPECT_EQ(late->outcome().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(order_.empty());
}

TEST_F(DeviceQueueRuns, AreNotOfJobsThatNobodyWants) {
  EXPECT_EQ(push<CancelledJob>({})->outcome().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(order_.empty());
}

TEST_F(DeviceQueueRuns, TeachWhatAnOperationTakes) {
  EXPECT_TRUE(push({.operation = "Blur", .cost_seconds = 1})->outcome().ok());
  EXPECT_TRUE(eventually([&] { return queue_.history().corrected("Blur", 1) < 0.6; }));
}

TEST_F(DeviceQueueRuns, TeachNothingWhereTheyFailed) {
  EXPECT_TRUE(push<FailedJob>({.operation = "Blur", .cost_seconds = 1})->outcome().ok());
  ASSERT_TRUE(eventually([&] { return queue_.running() == 0; }));
  EXPECT_EQ(queue_.history().corrected("Blur", 1), 1);
}

TEST_F(DeviceQueueRuns, ArePaidByWhatTheyTookAndNotByWhatWasPredicted) {
  const auto running = occupy();
  // The first of "quick" takes nothing, so that its second, which is the cheaper one, goes before the other.
  push({.principal = "quick", .cost_seconds = 10});
  push({.principal = "quick", .cost_seconds = 1});
  const auto other = push({.principal = "other", .cost_seconds = 10.5});
  running->release();
  EXPECT_TRUE(other->outcome().ok());
  EXPECT_EQ(order_, (std::vector<std::string>{"quick", "quick", "other"}));
}

class DeviceQueueLanes : public DeviceQueueRuns {
 protected:
  DeviceQueueLanes() : DeviceQueueRuns(4) {}
};

TEST_F(DeviceQueueLanes, AreNotAllForOneFlow) {
  const auto first = occupy({.principal = "a"});
  const auto second = push({.principal = "a"});
  absl::SleepFor(absl::Milliseconds(30));  // in which it would begin, where it may
  EXPECT_EQ(queue_.depth(), 1u);
  EXPECT_TRUE(push({.principal = "b"})->outcome().ok());
  first->release();
  EXPECT_TRUE(second->outcome().ok());
  EXPECT_EQ(order_, (std::vector<std::string>{"b", "a"}));
}

using Starts = DeviceQueue::Starts;

TEST_F(DeviceQueueRuns, OfShortCallsOnAnIdleDeviceAreOnTheirCallersThread) {
  const auto job = std::make_shared<BroughtJob>(Options{.cost_seconds = 0.0005});
  ASSERT_TRUE(queue_.push(job, Starts::kCaller).ok());
  EXPECT_TRUE(job->outcome().ok());
  EXPECT_TRUE(job->ran_on_this_thread());
  EXPECT_EQ(queue_.running(), 0U);
}

TEST_F(DeviceQueueRuns, OfLongCallsAreOnTheQueuesThreads) {
  const auto job = std::make_shared<BroughtJob>(Options{.cost_seconds = 0.1});
  ASSERT_TRUE(queue_.push(job, Starts::kCaller).ok());
  EXPECT_TRUE(job->outcome().ok());
  EXPECT_FALSE(job->ran_on_this_thread());
}

TEST_F(DeviceQueueRuns, OfACallersJobAreWhateverHasItsTurn) {
  const auto running = occupy();
  const auto waiting = push({.principal = "other"});
  const auto job = std::make_shared<BroughtJob>(Options{.cost_seconds = 0.0005});
  ASSERT_TRUE(queue_.push(job, Starts::kCaller).ok());
  running->release();
  EXPECT_TRUE(waiting->outcome().ok());
  EXPECT_TRUE(job->outcome().ok());
  EXPECT_FALSE(job->ran_on_this_thread()) << "the lane was taken, and a caller does not wait for it";
}

TEST_F(DeviceQueueRuns, OfShortCallsThatCameMeanwhileAreOnTheSameThread) {
  const auto second = std::make_shared<BroughtJob>(Options{.cost_seconds = 0.0003});
  const auto beyond = std::make_shared<BroughtJob>(Options{.cost_seconds = 0.0009});
  const auto first = std::make_shared<BroughtJob>(Options{.cost_seconds = 0.0003});
  first->meanwhile = [&] {
    std::thread([&] {
      ASSERT_TRUE(queue_.push(second, Starts::kCaller).ok());
      ASSERT_TRUE(queue_.push(beyond, Starts::kCaller).ok());
    }).join();
  };
  ASSERT_TRUE(queue_.push(first, Starts::kCaller).ok());
  EXPECT_TRUE(second->outcome().ok());
  EXPECT_TRUE(beyond->outcome().ok());
  EXPECT_TRUE(second->ran_on_this_thread());
  EXPECT_FALSE(beyond->ran_on_this_thread())
      << "together they take longer than a caller's thread may be kept";
}

/// Short calls of one caller, one after the other.
class AwakeWorkers : public DeviceQueueRuns {
 protected:
  /// Whether the queue's own thread ran one of them, within some time.
  bool run_a_call(DeviceQueue& queue, absl::Duration within) {
    const absl::Time end = absl::Now() + within;
    do {
      const auto job = std::make_shared<BroughtJob>(Options{.cost_seconds = 0.0005});
      EXPECT_TRUE(queue.push(job, Starts::kCaller).ok());
      EXPECT_TRUE(job->outcome().ok());
      while (queue.running() > 0) std::this_thread::yield();
      if (!job->ran_on_this_thread()) return true;
    } while (absl::Now() < end);
    return false;
  }
};

TEST_F(AwakeWorkers, RunShortCallsThatComeOften) {
  DeviceQueue queue(*device_, true);
  EXPECT_TRUE(run_a_call(queue, absl::Seconds(10)));
  // One that sleeps again is no call's.
  EXPECT_TRUE(eventually([&] {
    absl::SleepFor(100 * absl::FromChrono(DeviceQueue::kAwake));
    return !run_a_call(queue, absl::ZeroDuration());
  }));
  EXPECT_TRUE(run_a_call(queue, absl::Seconds(10)));
}

TEST_F(AwakeWorkers, AreNotWhereThereAreFewCores) {
  DeviceQueue queue(*device_, false);
  EXPECT_FALSE(run_a_call(queue, absl::Milliseconds(50)));
}

TEST_F(AwakeWorkers, LeaveLongCallsAndOthersCallsAsTheyAre) {
  DeviceQueue queue(*device_, true);
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&queue, i] {
      for (int call = 0; call < 200; ++call) {
        const auto job = std::make_shared<BroughtJob>(
            Options{.principal = std::to_string(i), .cost_seconds = call % 10 == 0 ? 0.1 : 0.0005});
        ASSERT_TRUE(queue.push(job, Starts::kCaller).ok());
        ASSERT_TRUE(job->outcome().ok());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(eventually([&] { return queue.running() == 0 && queue.depth() == 0; }));
}

class DeviceQueueRunsOfTwoLanes : public DeviceQueueRuns {
 protected:
  DeviceQueueRunsOfTwoLanes() : DeviceQueueRuns(2) {}
};

TEST_F(DeviceQueueRunsOfTwoLanes, KeepOneCallersThreadAtATime) {
  const auto second = std::make_shared<BroughtJob>(Options{.principal = "second", .cost_seconds = 0.0005});
  bool on_its_callers_thread = true;
  const auto first = std::make_shared<BroughtJob>(Options{.principal = "first", .cost_seconds = 0.0005});
  first->meanwhile = [&] {
    std::thread([&] {
      ASSERT_TRUE(queue_.push(second, Starts::kCaller).ok());
      EXPECT_TRUE(second->outcome().ok());
      on_its_callers_thread = second->ran_on_this_thread();
    }).join();
  };
  ASSERT_TRUE(queue_.push(first, Starts::kCaller).ok());
  EXPECT_TRUE(first->ran_on_this_thread());
  EXPECT_FALSE(on_its_callers_thread);
}

}  // namespace
}  // namespace cumulus::server
