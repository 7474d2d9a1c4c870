#include "server/runtime/device_queue.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "kernels/core/slice.h"
#include "proto/steady_time.h"
#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

constexpr absl::Duration kRetryAfter = absl::Milliseconds(50);
/// What a flow begins with below the others, unless it has had its share of late: 20 ms of an interactive
/// call, so that short calls need not wait.
constexpr double kCredit = 0.02 / DeviceQueue::kInteractiveWeight;
/// Calls that are predicted to take longer leave half of the lanes to those that do not.
constexpr double kLongSeconds = 0.25;
/// Calls that are predicted to take no longer may keep the thread that brought one of them, which is gRPC's:
/// one after the other, while they take no longer together. One such thread at a time: the others of gRPC's
/// go on to hear of cancellations.
constexpr double kShortSeconds = 0.001;
/// How late a call that is parked may notice that its turn has come or that nobody wants it any more.
constexpr std::chrono::milliseconds kTurnCheck{2};

absl::Status expired(bool short_of_memory) {
  return absl::DeadlineExceededError(
      short_of_memory ? "the deadline passed while the request waited for memory of the device, which others "
                        "hold; allow it more time, or use less memory"
                      : "the deadline passed while the request waited for the device");
}

absl::Status cancelled() { return absl::CancelledError("the client cancelled the request"); }

absl::Status shutting_down() {
  return unavailable("DRAINING", "the server is shutting down; connect to another one", kRetryAfter);
}

void ask_for_sweep(Alarm* alarm) {
  if (alarm != nullptr) alarm->ask(steady_now() + DeviceQueue::kSweepInterval);
}

/// Whose worker this thread is.
thread_local const DeviceQueue* worker_of = nullptr;

}  // namespace

DeviceQueue::DeviceQueue(Device& device, bool stays_awake) : device_(device), stays_awake_(stays_awake) {
  for (const auto& lane : device.lanes()) free_lanes_.push_back(lane.get());
  // One for each lane: on the CPU backend it runs the call, on a GPU it submits it.
  for (std::size_t i = 0; i < device.lanes().size(); ++i) threads_.emplace_back([this] { work(); });
}

DeviceQueue::~DeviceQueue() {
  std::vector<std::shared_ptr<Job>> left;
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    left = take_waiting();
    changed_.notify_all();
    changed_.wait(lock, [this] { return free_lanes_.size() == device_.lanes().size(); });
  }
  for (std::thread& thread : threads_) thread.join();
  for (const auto& job : left) job->abandon(shutting_down());
}

absl::Status DeviceQueue::push(std::shared_ptr<Job> job, Starts starts) {
  const double cost = history_.corrected(job->operation(), job->cost_seconds());
  std::unique_lock lock(mutex_);
  const absl::Status queued = enqueue(std::move(job), cost);
  const auto next = next_flow();
  if (!queued.ok() || next == flows_.end() || call_awake_worker()) return queued;
  if (starts == Starts::kCaller && may_start_here(next->second)) {
    const bool often = come_often();
    start_here(next, lock);
    keep_one_awake(often);
    if (next_flow() == flows_.end()) return queued;
  }
  lock.unlock();  // or the thread that wakes would wait for the lock
  changed_.notify_one();
  return queued;
}

bool DeviceQueue::may_start_here(const Flow& flow) const {
  return !starts_here_ && worker_of == nullptr && flow.waiting.front().cost <= kShortSeconds;
}

void DeviceQueue::start_here(std::map<FlowKey, Flow>::iterator flow, std::unique_lock<std::mutex>& lock) {
  starts_here_ = true;
  worker_of = this;
  double budget = kShortSeconds;
  do {
    budget -= flow->second.waiting.front().cost;
    start_next(flow, lock);
    flow = next_flow();
  } while (flow != flows_.end() && flow->second.waiting.front().cost <= budget);
  worker_of = nullptr;
  starts_here_ = false;
  if (stopping_) changed_.notify_all();  // the destructor waits for the lane
}

absl::Status DeviceQueue::enqueue(std::shared_ptr<Job> job, double cost) {
  if (draining_ || stopping_) return shutting_down();
  if (!failure_.ok()) return failure_;
  const Principal& principal = job->principal();
  if (depth_of(principal.name) >= principal.limits.max_queue_depth) {
    return unavailable(
        "QUEUE_FULL",
        absl::StrCat(principal.limits.max_queue_depth, " requests of ", principal.name, " wait for ",
                     device_.name(), " already, the limit (max_queue_depth); try again later"),
        kRetryAfter);
  }
  const absl::Duration wait = absl::Seconds(wait_seconds(*job));
  if (steady_now() + wait > job->deadline()) {
    return absl::DeadlineExceededError(absl::StrCat("the wait for ", device_.name(), " would be about ",
                                                    absl::FormatDuration(wait),
                                                    ", beyond the request's deadline"));
  }
  Flow& flow = flow_of(*job);
  flow.waiting_cost += cost;
  flow.waiting.push_back({std::move(job), cost});
  ask_for_sweep(alarm_);
  return absl::OkStatus();
}

bool DeviceQueue::withdraw(const Job& job) {
  const std::lock_guard lock(mutex_);
  const auto flow = flows_.find(key_of(job));
  if (flow == flows_.end()) return false;
  auto& jobs = flow->second.waiting;
  const auto found =
      std::find_if(jobs.begin(), jobs.end(), [&](const Waiting& each) { return each.job.get() == &job; });
  if (found == jobs.end()) return false;
  if (found == jobs.begin()) flow->second.short_of_memory = false;
  flow->second.waiting_cost -= found->cost;
  jobs.erase(found);
  forget_idle_flows();
  wake_worker();
  return true;
}

bool DeviceQueue::sweep(absl::Time now) {
  std::vector<std::pair<std::shared_ptr<Job>, bool>> late;
  bool any_left = false;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [key, flow_of_key] : flows_) {
      Flow& flow = flow_of_key;  // which a lambda may capture
      flow.waiting.remove_if([&](Waiting& waiting) {
        if (waiting.job->deadline() > now) return false;
        flow.waiting_cost -= waiting.cost;
        late.emplace_back(std::move(waiting.job), flow.short_of_memory);
        return true;
      });
      any_left = any_left || !flow.waiting.empty();
    }
    forget_idle_flows();
    forget_shortages();  // a client may have deleted buffers
  }
  for (const auto& [job, short_of_memory] : late) job->abandon(expired(short_of_memory));
  return any_left;
}

void DeviceQueue::fail(const absl::Status& why) {
  std::vector<std::shared_ptr<Job>> left;
  {
    const std::lock_guard lock(mutex_);
    failure_ = why;
    left = take_waiting();
    forget_idle_flows();
  }
  for (const auto& job : left) job->abandon(why);
}

std::vector<std::shared_ptr<Job>> DeviceQueue::take_waiting() {
  std::vector<std::shared_ptr<Job>> taken;
  for (auto& [key, flow] : flows_) {
    for (Waiting& waiting : flow.waiting) taken.push_back(std::move(waiting.job));
    flow.waiting.clear();
    flow.waiting_cost = 0;
  }
  return taken;
}

DeviceQueue::Flow& DeviceQueue::flow_of(const Job& job) {
  const auto [found, fresh] = flows_.try_emplace(key_of(job));
  Flow& flow = found->second;
  flow.weight = weight_of(job);
  if (!flow.is_idle()) return flow;
  raise_floor();
  const double begin = floor_ - kCredit;
  flow.paid = fresh ? begin : std::max(flow.paid, begin);
  return flow;
}

bool DeviceQueue::raise_floor() {
  const std::optional<double> least = least_paid();
  floor_ = std::max(floor_, least.value_or(floor_));
  return least.has_value();
}

void DeviceQueue::forget_idle_flows() {
  const bool any_work = raise_floor();
  std::erase_if(flows_, [&](const auto& each) {
    const Flow& flow = each.second;
    return flow.is_idle() && (!any_work || flow.paid <= floor_ - kCredit);
  });
}

bool DeviceQueue::may_start(const Flow& flow) const {
  if (free_lanes_.empty() || flow.waiting.empty() || flow.short_of_memory) return false;
  if (flow.running >= device_.lanes_of_a_flow()) return false;
  if (flow.waiting.front().cost <= kLongSeconds) return true;
  const auto long_runs =
      std::count_if(runs_.begin(), runs_.end(), [](const Run& run) { return run.cost > kLongSeconds; });
  return static_cast<std::size_t>(long_runs) < (device_.lanes().size() + 1) / 2;
}

std::map<DeviceQueue::FlowKey, DeviceQueue::Flow>::iterator DeviceQueue::next_flow() {
  auto next = flows_.end();
  if (free_lanes_.empty()) return next;
  double least = std::numeric_limits<double>::infinity();
  for (auto flow = flows_.begin(); flow != flows_.end(); ++flow) {
    if (!may_start(flow->second)) continue;
    const double paid_then = flow->second.paid + flow->second.waiting.front().cost / flow->second.weight;
    if (paid_then >= least) continue;
    least = paid_then;
    next = flow;
  }
  return next;
}

void DeviceQueue::work() {
  worker_of = this;
  std::unique_lock lock(mutex_);
  while (true) {
    auto flow = flows_.end();
    changed_.wait(lock, [&] { return stopping_ || wants_awake_ || (flow = next_flow()) != flows_.end(); });
    if (stopping_) return;
    if (wants_awake_) {
      work_awake(lock);
    } else {
      start_next(flow, lock);
    }
  }
}

void DeviceQueue::start_next(std::map<FlowKey, Flow>::iterator found, std::unique_lock<std::mutex>& lock) {
  Flow& flow = found->second;
  Waiting waiting = std::move(flow.waiting.front());
  flow.waiting.pop_front();
  flow.waiting_cost -= waiting.cost;
  ++flow.running;
  Lane* const lane = free_lanes_.back();
  free_lanes_.pop_back();
  const std::uint64_t frees = memory_frees_;
  if (next_flow() != flows_.end()) call_worker();
  lock.unlock();
  const absl::Status ready = make_ready(*waiting.job);
  lock.lock();
  if (ready.ok()) {
    runs_.emplace_back(waiting.job, &flow, waiting.cost);
    const auto run = std::prev(runs_.end());
    flow.paid += waiting.cost / flow.weight;
    let_pass(*run);
    lock.unlock();
    launch(run, *lane);
    lock.lock();
    return;
  }
  free_lanes_.push_back(lane);
  --flow.running;
  if (absl::IsUnavailable(ready) && !stopping_ && !waiting.job->requested()) {
    flow.short_of_memory = frees == memory_frees_;
    flow.waiting_cost += waiting.cost;
    flow.waiting.push_front(std::move(waiting));
    ask_for_sweep(alarm_);  // one that came meanwhile has not seen it
    wake_worker();
    return;
  }
  forget_idle_flows();
  wake_worker();
  lock.unlock();
  waiting.job->abandon(absl::IsUnavailable(ready) ? no_longer_wanted(*waiting.job) : ready);
  lock.lock();
}

absl::Status DeviceQueue::no_longer_wanted(const Job& job) const {
  if (job.deadline() <= steady_now()) return expired(true);
  return job.requested() ? cancelled() : shutting_down();
}

absl::Status DeviceQueue::make_ready(Job& job) const {
  if (job.deadline() <= steady_now()) return expired(false);
  if (job.requested()) return cancelled();
  return job.reserve();
}

void DeviceQueue::launch(const std::list<Run>::iterator& run, Lane& lane) {
  class RunTurns final : public Turns {
   public:
    RunTurns(DeviceQueue& queue, Run& run) : queue_(queue), run_(run) {}
    void yield() override { queue_.yield(run_); }
    bool wanted() const override { return run_.gives_way.load(std::memory_order_relaxed); }

   private:
    DeviceQueue& queue_;
    Run& run_;
  };
  RunTurns turns(*this, *run);
  const SlicedCall sliced(turns);
  run->job->submit(lane);
  if (run->cost > kShortSeconds || !ends_briefly(run, lane)) watch(run, lane);
}

bool DeviceQueue::ends_briefly(const std::list<Run>::iterator& run, Lane& lane) {
  std::optional<absl::Status> end;
  do {
    end = device_.wait_briefly(lane);
    if (!end.has_value()) return false;
  } while (!run->job->finish(lane, *end));
  end_run(run, lane);
  return true;
}

void DeviceQueue::let_pass(const Run& fresh) {
  const absl::Time now = steady_now();
  for (Run& run : runs_) {
    if (fresh.paid(now) < run.paid(now)) run.gives_way = true;
  }
}

void DeviceQueue::yield(Run& run) {
  std::unique_lock lock(mutex_);
  run.gives_way = false;
  absl::Time now;
  const auto others_first = [&] {
    now = steady_now();
    const double mine = run.paid(now);
    return std::any_of(runs_.begin(), runs_.end(), [&](const Run& each) { return each.paid(now) < mine; });
  };
  if (!others_first()) return;
  run.parked_since = now;
  if (parked_++ > 0) turns_.notify_all();
  while (others_first() && !run.job->requested()) turns_.wait_for(lock, kTurnCheck);
  --parked_;
  run.parked += now - run.parked_since;
  run.parked_since = absl::InfiniteFuture();
}

void DeviceQueue::watch(const std::list<Run>::iterator& run, Lane& lane) {
  device_.when_done(lane, expected_rest(*run), [this, run, &lane](const absl::Status& status) {
    if (!run->job->finish(lane, status)) return watch(run, lane);
    end_run(run, lane);
  });
}

void DeviceQueue::end_run(const std::list<Run>::iterator& run, Lane& lane) {
  std::shared_ptr<Job> job;  // which may go with the lock given back
  const std::lock_guard lock(mutex_);
  last_end_ = steady_now();
  const double seconds = absl::ToDoubleSeconds(run->ran(last_end_));
  if (run->job->succeeded()) history_.record(run->job->operation(), run->job->cost_seconds(), seconds);
  run->flow->paid += (seconds - run->cost) / run->flow->weight;
  --run->flow->running;
  job = std::move(run->job);
  runs_.erase(run);
  free_lanes_.push_back(&lane);
  forget_idle_flows();
  forget_shortages();
  if (parked_ > 0) turns_.notify_all();
}

void DeviceQueue::forget_shortages() {
  ++memory_frees_;
  for (auto& [key, flow] : flows_) flow.short_of_memory = false;
  wake_worker();
}

void DeviceQueue::wake_worker() {
  if (stopping_) return changed_.notify_all();  // the destructor waits too
  if (worker_of == this) return;                // it looks for a job itself when it comes back
  if (next_flow() != flows_.end()) call_worker();
}

}  // namespace cumulus::server
