#include "server/runtime/device_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/blocking_job.h"

namespace cumulus::server {
namespace {

using testing::BlockingJob;

class DeviceQueueTest : public ::testing::Test {
 protected:
  std::shared_ptr<BlockingJob> push(std::shared_ptr<BlockingJob> job) {
    EXPECT_TRUE(queue_.push(job).ok());
    return job;
  }
  /// A job that runs, so that all others wait.
  std::shared_ptr<BlockingJob> occupy() {
    auto job = push(std::make_shared<BlockingJob>());
    job->wait_until_running();
    return job;
  }

  std::unique_ptr<Device> device_ =
      make_cpu_device({.threads = 1, .budget_bytes = 1 << 20, .landing_bytes = 4096});
  DeviceQueue queue_{*device_};
};

TEST_F(DeviceQueueTest, RunsInteractiveJobsBeforeBatchJobs) {
  const auto running = occupy();
  const auto batch = push(std::make_shared<BlockingJob>(JobClass::kBatch));
  const auto interactive = push(std::make_shared<BlockingJob>());
  running->release();
  interactive->wait_until_running();
  EXPECT_EQ(queue_.depth(), 1u) << "the batch job still waits";
  interactive->release();
  batch->release();
  EXPECT_TRUE(batch->outcome().ok());
}

TEST_F(DeviceQueueTest, AFullQueueRefusesItsOwnerOnly) {
  const auto running = occupy();
  const auto job_of = [](const char* name) {
    return std::make_shared<BlockingJob>(JobClass::kInteractive, absl::InfiniteFuture(),
                                         Principal{name, {.max_queue_depth = 2}});
  };
  std::vector<std::shared_ptr<BlockingJob>> waiting;
  for (int i = 0; i < 2; ++i) waiting.push_back(push(job_of("greedy")));
  const absl::Status refused = queue_.push(job_of("greedy"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(std::string(refused.message()).find("2 requests of greedy wait"), std::string::npos) << refused;
  waiting.push_back(push(job_of("modest")));
  for (const auto& job : waiting) job->release();
  running->release();
  for (const auto& job : waiting) EXPECT_TRUE(job->outcome().ok());
}

TEST_F(DeviceQueueTest, SweepAbandonsOnlyJobsWhoseDeadlineHasPassed) {
  const auto running = occupy();
  const absl::Time soon = absl::Now() + absl::Seconds(5);
  const auto late = push(std::make_shared<BlockingJob>(JobClass::kInteractive, soon));
  const auto patient = push(std::make_shared<BlockingJob>());
  queue_.sweep(soon - absl::Seconds(1));
  EXPECT_EQ(queue_.depth(), 2u);
  queue_.sweep(soon);
  EXPECT_EQ(late->outcome().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(queue_.depth(), 1u);
  patient->release();
  running->release();
  EXPECT_TRUE(patient->outcome().ok());
}

TEST_F(DeviceQueueTest, WithdrawsAJobThatWaitsButNotOneThatRuns) {
  const auto running = occupy();
  const auto waiting = push(std::make_shared<BlockingJob>());
  EXPECT_TRUE(queue_.withdraw(*waiting));
  EXPECT_FALSE(queue_.withdraw(*waiting));
  EXPECT_FALSE(queue_.withdraw(*running));
  EXPECT_EQ(queue_.depth(), 0u);
  running->release();
  EXPECT_TRUE(running->outcome().ok());
}

/// Asks for its lane twice: its second step follows from what the first found.
class TwoStepJob final : public BlockingJob {
 public:
  bool finish(Lane& lane, const absl::Status& device) noexcept override {
    return ++steps_ == 2 && BlockingJob::finish(lane, device);
  }
  int steps() const { return steps_; }

 private:
  int steps_ = 0;
};

TEST_F(DeviceQueueTest, AJobKeepsItsLaneUntilItsLastStepIsDone) {
  const auto job = std::make_shared<TwoStepJob>();
  push(job);
  const auto next = push(std::make_shared<BlockingJob>());
  job->release();
  EXPECT_TRUE(job->outcome().ok());
  EXPECT_EQ(job->steps(), 2);
  next->wait_until_running();  // the lane came back
  next->release();
  EXPECT_TRUE(next->outcome().ok());
}

TEST_F(DeviceQueueTest, ADrainingQueueRefusesNewJobsAndRunsTheOldOnes) {
  const auto running = occupy();
  const auto waiting = push(std::make_shared<BlockingJob>());
  queue_.drain();
  EXPECT_EQ(queue_.push(std::make_shared<BlockingJob>()).code(), absl::StatusCode::kUnavailable);
  waiting->release();
  running->release();
  EXPECT_TRUE(waiting->outcome().ok());
}

TEST(DeviceQueueEnd, AbandonsWhatWaitsAndFinishesWhatRuns) {
  const auto device = make_cpu_device({.threads = 1, .budget_bytes = 1 << 20, .landing_bytes = 4096});
  const auto running = std::make_shared<BlockingJob>();
  const auto waiting = std::make_shared<BlockingJob>();
  auto queue = std::make_unique<DeviceQueue>(*device);
  ASSERT_TRUE(queue->push(running).ok());
  running->wait_until_running();
  ASSERT_TRUE(queue->push(waiting).ok());
  DeviceQueue* const ended = queue.get();
  std::thread ending([&] { queue.reset(); });
  while (ended->depth() > 0) std::this_thread::yield();  // the destructor waits for the job that runs
  running->release();
  ending.join();
  EXPECT_TRUE(running->outcome().ok());
  EXPECT_EQ(waiting->outcome().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace cumulus::server
