#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proto/cores.h"
#include "proto/steady_time.h"
#include "server/runtime/alarm.h"
#include "server/runtime/cost_history.h"
#include "server/runtime/job.h"

namespace cumulus::server {

/// The calls that wait for one device, and the threads that run them. Thread-safe.
///
/// Each principal's interactive calls, and its batch calls, are a flow. A flow pays for the device's time, by
/// its weight; whoever has paid least has the next turn. docs/decisions/0016 says why, and what that
/// promises.
class DeviceQueue {
 public:
  /// Of an interactive call's weight to a batch call's.
  static constexpr double kInteractiveWeight = 16;
  /// Whose thread starts a job.
  enum class Starts { kWorker, kCaller };

  /// `stays_awake`: one of its threads looks for jobs all the time while short ones come often.
  explicit DeviceQueue(Device& device, bool stays_awake = has_many_cores());
  /// Abandons what waits and lets what runs finish.
  ~DeviceQueue();
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  /// UNAVAILABLE (QUEUE_FULL of the job's own principal, DRAINING), or DEADLINE_EXCEEDED where the predicted
  /// wait is longer than the job can wait; the job is then untouched.
  ///
  /// With kCaller the next job runs on this thread, before push returns, where it is short and no other
  /// caller does so at the moment: a call on an idle device need not wait for a thread to wake. Nor where a
  /// thread of the queue is awake, which runs it then.
  absl::Status push(std::shared_ptr<Job> job, Starts starts = Starts::kWorker);
  /// Takes `job` out of the queue; false where it no longer waits. It is not abandoned.
  bool withdraw(const Job& job);
  /// Abandons every waiting job whose deadline has passed, and looks again for memory for the others; false
  /// where there are no others.
  bool sweep(absl::Time now);
  /// Asks `alarm` for a sweep where a job has come to wait. Before the first push.
  void sweep_by(Alarm& alarm) { alarm_ = &alarm; }
  /// How late a deadline, or memory that others gave back, may be noticed.
  static constexpr absl::Duration kSweepInterval = absl::Milliseconds(100);
  /// Short jobs that come one after the other within this time come often.
  static constexpr std::chrono::microseconds kAwake{1000};
  /// Refuses new jobs from now on.
  void drain() {
    const std::lock_guard lock(mutex_);
    draining_ = true;
  }
  /// Abandons every waiting job with `why`, and refuses new ones: the device has failed.
  void fail(const absl::Status& why);

  /// Jobs that wait.
  std::size_t depth() const;
  std::size_t depth(JobClass job_class) const;
  /// A flow that is not idle.
  struct FlowView {
    std::string principal;
    JobClass job_class;
    std::size_t waiting;
    std::size_t running;
    double waiting_cost;  // in seconds
  };
  std::vector<FlowView> flow_views(std::size_t at_most) const;
  /// Jobs that run.
  std::size_t running() const;
  /// How long `job` would wait for its first turn, were it pushed now.
  absl::Duration predicted_wait(const Job& job) const;
  /// What the calls that wait and run are still predicted to take of the device.
  absl::Duration backlog() const;
  const CostHistory& history() const { return history_; }
  Device& device() const { return device_; }

 private:
  struct Waiting {
    std::shared_ptr<Job> job;
    double cost;  // in seconds
  };
  struct Flow {
    double weight = 1;
    double paid = 0;  // seconds of the device, divided by the weight
    double waiting_cost = 0;
    std::list<Waiting> waiting;
    std::size_t running = 0;
    bool short_of_memory = false;  // its first job has to wait until some is given back

    bool is_idle() const { return waiting.empty() && running == 0; }
  };
  using FlowKey = std::pair<std::string, JobClass>;
  struct Run {
    Run(std::shared_ptr<Job> its_job, Flow* its_flow, double its_cost)
        : job(std::move(its_job)),
          flow(its_flow),
          cost(its_cost),
          paid_before(its_flow->paid),
          started(steady_now()) {}

    std::shared_ptr<Job> job;
    Flow* flow;
    double cost;
    double paid_before;  // by the flow
    absl::Time started;
    std::atomic<bool> gives_way = false;  // a call that goes before it has started since its last turn
    absl::Duration parked = {};           // in which others had their turn
    absl::Time parked_since = absl::InfiniteFuture();  // that: it runs

    absl::Duration ran(absl::Time now) const { return std::min(now, parked_since) - started - parked; }
    double paid(absl::Time now) const { return paid_before + absl::ToDoubleSeconds(ran(now)) / flow->weight; }
  };

  static double weight_of(const Job& job);
  static FlowKey key_of(const Job& job) { return {job.principal().name, job.job_class()}; }

  absl::Status enqueue(std::shared_ptr<Job> job, double cost);
  bool may_start_here(const Flow& flow) const;
  void start_here(std::map<FlowKey, Flow>::iterator flow, std::unique_lock<std::mutex>& lock);
  void work();
  /// A worker's time in which it does not sleep; it ends when no job has come for a while.
  void work_awake(std::unique_lock<std::mutex>& lock);
  /// Where short jobs come often, and no worker is awake: lets one be so for the next.
  void keep_one_awake(bool often);
  bool come_often() const;
  /// Has a worker look for a job: the one that is awake, or another.
  void call_worker();
  bool call_awake_worker();
  std::vector<std::shared_ptr<Job>> take_waiting();
  Flow& flow_of(const Job& job);
  /// Of the flows that are not idle, what the one has paid that has paid least, without what its running
  /// calls have been charged but not used yet.
  std::optional<double> least_paid() const;
  /// False where all flows are idle.
  bool raise_floor();
  /// Those that would begin with as much had they never been there.
  void forget_idle_flows();
  std::size_t depth_of(const std::string& principal) const;
  /// The flow whose turn it is; flows_.end() where none can go on.
  std::map<FlowKey, Flow>::iterator next_flow();
  bool may_start(const Flow& flow) const;
  double wait_seconds(const Job& job) const;
  /// Of the run's work.
  static double seconds_left(const Run& run, absl::Time now);
  /// Runs the first job of the flow, on a lane, or puts it back. The lock is held before and after.
  void start_next(std::map<FlowKey, Flow>::iterator flow, std::unique_lock<std::mutex>& lock);
  absl::Status make_ready(Job& job) const;
  /// Why a job that is short of memory does not wait on.
  absl::Status no_longer_wanted(const Job& job) const;
  void launch(const std::list<Run>::iterator& run, Lane& lane);
  /// Ends the slices of the calls that `fresh` goes before.
  void let_pass(const Run& fresh);
  /// By the thread of the run's call: waits while others have paid less.
  void yield(Run& run);
  /// Waits here for the end of a short run; false where it goes on.
  bool ends_briefly(const std::list<Run>::iterator& run, Lane& lane);
  void watch(const std::list<Run>::iterator& run, Lane& lane);
  /// How long it is from now on until the run has taken what the same call took the last time.
  absl::Duration expected_rest(const Run& run) const;
  void end_run(const std::list<Run>::iterator& run, Lane& lane);
  void forget_shortages();
  /// Wakes a thread where a job can start and none that is awake would; it wakes the next where another can.
  void wake_worker();

  Device& device_;
  const bool stays_awake_;
  Alarm* alarm_ = nullptr;
  CostHistory history_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // something waits, or a lane is free
  std::condition_variable turns_;    // a job that runs has paid, or has ended
  std::size_t parked_ = 0;           // jobs that run and wait for their turn
  bool starts_here_ = false;         // a thread that is not the queue's runs a job
  bool wants_awake_ = false;         // a worker is to stay awake
  bool any_awake_ = false;           // one does so, with a job or without
  bool looks_ = false;               // that one, for a job, until `called_`
  std::atomic<bool> called_ = false;
  absl::Time last_end_ = absl::InfinitePast();  // of a run
  std::map<FlowKey, Flow> flows_;               // that have jobs, or had more than their share of late
  std::list<Run> runs_;
  double floor_ = 0;  // the most that least_paid has been
  std::vector<Lane*> free_lanes_;
  std::uint64_t memory_frees_ = 0;  // how often memory may have been given back
  bool draining_ = false;
  absl::Status failure_;  // why the device takes no more jobs
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cumulus::server
