#include "server/runtime/device_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/core/slice.h"
#include "tests/support/blocking_job.h"
#include "tests/support/eventually.h"
#include "tests/support/tries.h"

namespace cumulus::server {
namespace {

using testing::BlockingJob;
using testing::eventually;
using Options = BlockingJob::Options;

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

TEST_F(DeviceQueueTest, AnInteractiveJobGoesBeforeABatchJobThatWaitsLonger) {
  const auto running = occupy();
  const auto batch =
      push(std::make_shared<BlockingJob>(Options{.job_class = JobClass::kBatch, .cost_seconds = 1}));
  const auto interactive = push(std::make_shared<BlockingJob>(Options{.cost_seconds = 1}));
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
    return std::make_shared<BlockingJob>(Options{.principal = name, .limits = {.max_queue_depth = 2}});
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

/// The names of those that ran, in their order, when `jobs` have been pushed while another job ran.
std::vector<std::string> order_of(DeviceQueue& queue, const std::vector<Options>& jobs) {
  const auto running = std::make_shared<BlockingJob>(Options{.principal = "before"});
  EXPECT_TRUE(queue.push(running).ok());
  running->wait_until_running();
  std::vector<std::string> order;
  struct Recorder final : BlockingJob {
    Recorder(const Options& options, std::vector<std::string>& names) : BlockingJob(options), names_(names) {}
    void submit(Lane& /*lane*/) noexcept override {
      names_.push_back(principal().name);
      absl::SleepFor(absl::Seconds(cost_seconds()));
    }
    std::vector<std::string>& names_;
  };
  std::vector<std::shared_ptr<Recorder>> recorders;
  for (const Options& job : jobs) {
    recorders.push_back(std::make_shared<Recorder>(job, order));
    EXPECT_TRUE(queue.push(recorders.back()).ok());
  }
  running->release();
  for (const auto& each : recorders) EXPECT_TRUE(each->outcome().ok());
  return order;
}

TEST_F(DeviceQueueTest, OneJobOfAnotherPrincipalDoesNotWaitForAllThatCameBefore) {
  std::vector<Options> jobs(20, Options{.principal = "many", .cost_seconds = 0.005});
  jobs.push_back({.principal = "one", .cost_seconds = 0.005});
  const std::vector<std::string> order = order_of(queue_, jobs);
  const auto place = std::find(order.begin(), order.end(), "one") - order.begin();
  EXPECT_LE(place, 1);
}

TEST_F(DeviceQueueTest, CostDecidesWhoseTurnItIsAndNotTheNumberOfCalls) {
  // Ten cheap calls cost as much as one dear one; a busy machine makes them dearer.
  std::vector<Options> jobs(3, Options{.principal = "dear", .cost_seconds = 0.1});
  for (int i = 0; i < 40; ++i) jobs.push_back({.principal = "cheap", .cost_seconds = 0.01});
  const std::vector<std::string> order = order_of(queue_, jobs);
  const auto second_dear = std::find(std::find(order.begin(), order.end(), "dear") + 1, order.end(), "dear");
  const auto cheap_before = std::count(order.begin(), second_dear, "cheap");
  EXPECT_GE(cheap_before, 5);
  EXPECT_LE(cheap_before, 30);
}

TEST_F(DeviceQueueTest, APrincipalOfTwiceTheWeightHasTwiceTheCalls) {
  std::vector<Options> jobs(30, Options{.principal = "heavy", .limits = {.weight = 2}, .cost_seconds = 0.01});
  for (int i = 0; i < 30; ++i) jobs.push_back({.principal = "light", .cost_seconds = 0.01});
  EXPECT_TRUE(testing::once_in_three([&] {
    const std::vector<std::string> order = order_of(queue_, jobs);
    const auto heavy = std::count(order.begin(), order.begin() + 30, "heavy");
    return heavy >= 16 && heavy <= 24;
  }));
}

TEST_F(DeviceQueueTest, ThePredictedWaitCountsTheJobThatRuns) {
  const auto running = push(std::make_shared<BlockingJob>(Options{.cost_seconds = 40}));
  running->wait_until_running();
  const BlockingJob other({.principal = "other", .cost_seconds = 1});
  EXPECT_NEAR(absl::ToDoubleSeconds(queue_.predicted_wait(other)), 40, 1);
  const BlockingJob same({.cost_seconds = 1});
  EXPECT_NEAR(absl::ToDoubleSeconds(queue_.predicted_wait(same)), 40, 1);
  const absl::Status refused = queue_.push(
      std::make_shared<BlockingJob>(Options{.deadline = absl::Now() + absl::Seconds(10), .cost_seconds = 1}));
  EXPECT_EQ(refused.code(), absl::StatusCode::kDeadlineExceeded);
  running->release();
}

TEST_F(DeviceQueueTest, JobsThatAreWithdrawnOrLateLeaveThePredictedWait) {
  const auto running = occupy();
  const absl::Time soon = absl::Now() + absl::Seconds(1000);
  const auto withdrawn = push(std::make_shared<BlockingJob>(Options{.cost_seconds = 100}));
  const auto late = push(std::make_shared<BlockingJob>(Options{.deadline = soon, .cost_seconds = 200}));
  const BlockingJob next({.cost_seconds = 1});
  EXPECT_NEAR(absl::ToDoubleSeconds(queue_.predicted_wait(next)), 300, 1);
  EXPECT_TRUE(queue_.withdraw(*withdrawn));
  EXPECT_NEAR(absl::ToDoubleSeconds(queue_.predicted_wait(next)), 200, 1);
  queue_.sweep(soon);
  EXPECT_NEAR(absl::ToDoubleSeconds(queue_.predicted_wait(next)), 0, 1);
  running->release();
}

/// Memory that others hold at first.
class ShortJob final : public BlockingJob {
 public:
  ShortJob(Options options, int shortages) : BlockingJob(std::move(options)), shortages_(shortages) {}
  absl::Status reserve() override {
    ++tries_;
    return shortages_-- > 0 ? absl::UnavailableError("not now") : absl::OkStatus();
  }
  int tries() const { return tries_; }

 private:
  std::atomic<int> shortages_;
  std::atomic<int> tries_ = 0;
};

TEST_F(DeviceQueueTest, AShortageOfMemoryWaitsItsTurnWhileOthersGoOn) {
  const auto running = occupy();
  const auto short_job = std::make_shared<ShortJob>(Options{.principal = "short"}, 2);
  ASSERT_TRUE(queue_.push(short_job).ok());
  const auto other = push(std::make_shared<BlockingJob>(Options{.principal = "other", .cost_seconds = 1}));
  running->release();
  other->wait_until_running();
  EXPECT_EQ(short_job->tries(), 1) << "which found no memory; and it is not asked again and again";
  EXPECT_EQ(queue_.depth(), 1u);
  other->release();
  EXPECT_TRUE(other->outcome().ok());
  while (short_job->tries() < 2) std::this_thread::yield();  // memory came back with the other's end
  queue_.sweep(absl::Now());                                 // and may have, whenever that runs
  short_job->wait_until_running();
  short_job->release();
  EXPECT_TRUE(short_job->outcome().ok());
}

TEST_F(DeviceQueueTest, AShortageOfMemoryEndsWithTheDeadline) {
  const absl::Time soon = absl::Now() + absl::Seconds(5);
  const auto job = std::make_shared<ShortJob>(Options{.deadline = soon}, 1000000);
  ASSERT_TRUE(queue_.push(job).ok());
  while (job->tries() < 1) std::this_thread::yield();
  while (queue_.depth() < 1) std::this_thread::yield();
  queue_.sweep(soon);
  const absl::Status outcome = job->outcome();
  EXPECT_EQ(outcome.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(std::string(outcome.message()).find("memory"), std::string::npos) << outcome;
}

TEST_F(DeviceQueueTest, SweepAbandonsOnlyJobsWhoseDeadlineHasPassed) {
  const auto running = occupy();
  const absl::Time soon = absl::Now() + absl::Seconds(5);
  const auto late = push(std::make_shared<BlockingJob>(Options{.deadline = soon}));
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

/// Runs in slices of no work until it is stopped, and counts them.
class SlicedJob final : public BlockingJob {
 public:
  using BlockingJob::BlockingJob;
  void submit(Lane& lane) noexcept override {
    while (!stopped_) {
      const Slice slice(std::get<CpuExecutor>(lane.executor()));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++slices_;
    }
  }
  void stop() { stopped_ = true; }
  int slices() const { return slices_; }

 private:
  std::atomic<bool> stopped_ = false;
  std::atomic<int> slices_ = 0;
};

/// Runs in one slice, which ends for nothing but a call that goes first.
class OneSliceJob final : public BlockingJob {
 public:
  using BlockingJob::BlockingJob;
  void submit(Lane& lane) noexcept override {
    const Slice slice(std::get<CpuExecutor>(lane.executor()));
    while (!slice.wanted() && !stopped_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    gave_way_ = slice.wanted();
  }
  void stop() { stopped_ = true; }
  bool gave_way() const { return gave_way_; }

 private:
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> gave_way_ = false;
};

class SharedDevice : public ::testing::Test {
 protected:
  /// Slices of two jobs that run side by side for a while.
  std::pair<int, int> shares(const Options& first, const Options& second) {
    const auto a = std::make_shared<SlicedJob>(first);
    const auto b = std::make_shared<SlicedJob>(second);
    EXPECT_TRUE(queue_.push(a).ok());
    EXPECT_TRUE(queue_.push(b).ok());
    while (a->slices() == 0 || b->slices() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // who came last begins with a credit
    const int before_a = a->slices();
    const int before_b = b->slices();
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    const std::pair<int, int> slices(a->slices() - before_a, b->slices() - before_b);
    a->stop();
    b->stop();
    EXPECT_TRUE(a->outcome().ok());
    EXPECT_TRUE(b->outcome().ok());
    return slices;
  }

  std::unique_ptr<Device> device_ =
      make_cpu_device({.threads = 1, .lanes = 4, .budget_bytes = 1 << 20, .landing_bytes = 4096});
  DeviceQueue queue_{*device_};
};

TEST_F(SharedDevice, CallsOfTwoPrincipalsTakeTurns) {
  EXPECT_TRUE(testing::once_in_three([&] {
    const auto [a, b] = shares({.principal = "a"}, {.principal = "b"});
    return a > b / 2 && a < b * 2;
  }));
}

TEST_F(SharedDevice, ABatchCallHasASixteenthOfAnInteractiveCallsTime) {
  EXPECT_TRUE(testing::once_in_three([&] {
    const auto [interactive, batch] =
        shares({.principal = "a"}, {.principal = "b", .job_class = JobClass::kBatch});
    return interactive > 5 * batch && batch > 0;
  }));
}

TEST_F(SharedDevice, ASliceEndsEarlyForACallThatGoesFirst) {
  const auto hog = std::make_shared<OneSliceJob>(Options{.principal = "a", .job_class = JobClass::kBatch});
  ASSERT_TRUE(queue_.push(hog).ok());
  ASSERT_TRUE(eventually([&] { return queue_.running() == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(hog->gave_way()) << "nobody else is there";
  const auto brief = std::make_shared<BlockingJob>(Options{.principal = "b"});
  ASSERT_TRUE(queue_.push(brief).ok());
  EXPECT_TRUE(eventually([&] { return hog->gave_way(); }));
  hog->stop();
  brief->release();
  EXPECT_TRUE(brief->outcome().ok());
  EXPECT_TRUE(hog->outcome().ok());
}

TEST_F(SharedDevice, LongCallsLeaveHalfOfTheLanesToShortOnes) {
  std::vector<std::shared_ptr<BlockingJob>> jobs;
  for (const char* name : {"a", "b", "c"}) {
    jobs.push_back(std::make_shared<BlockingJob>(Options{.principal = name, .cost_seconds = 100}));
    ASSERT_TRUE(queue_.push(jobs.back()).ok());
    if (jobs.size() < 3) jobs.back()->wait_until_running();
  }
  const auto brief = std::make_shared<BlockingJob>(Options{.principal = "d", .cost_seconds = 0.01});
  ASSERT_TRUE(queue_.push(brief).ok());
  brief->wait_until_running();
  EXPECT_EQ(queue_.depth(), 1u) << "the third long call";
  brief->release();
  for (const auto& job : jobs) job->release();
  for (const auto& job : jobs) EXPECT_TRUE(job->outcome().ok());
}

TEST(CostHistory, LearnsADevicesSpeedFromItsCalls) {
  CostHistory history;
  for (int i = 0; i < 20; ++i) history.record("Blur", 0.01, 0.05);
  EXPECT_NEAR(history.corrected("Blur", 0.02), 0.1, 0.01);
  EXPECT_EQ(history.corrected("Other", 0.02), 0.02);
}

TEST(CostHistory, ACallThatStallsChangesAPredictionAtMostTwofold) {
  CostHistory history;
  for (int i = 0; i < 20; ++i) history.record("Blur", 0.01, 0.01);
  history.record("Blur", 0.01, 60);
  EXPECT_LE(history.corrected("Blur", 0.01), 0.0201);
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
