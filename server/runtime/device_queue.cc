#include "server/runtime/device_queue.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <utility>

#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

constexpr absl::Duration kRetryAfter = absl::Milliseconds(50);
// Weight of the newest job in the running estimate of a device's speed.
constexpr double kSpeedGain = 0.2;

absl::Status expired() {
  return absl::DeadlineExceededError("the deadline passed while the request waited for the device");
}

}  // namespace

DeviceQueue::DeviceQueue(Device& device) : device_(device) {
  for (const auto& lane : device.lanes()) free_lanes_.push_back(lane.get());
  thread_ = std::thread([this] { run(); });
}

DeviceQueue::~DeviceQueue() {
  std::list<std::shared_ptr<Job>> left;
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    left.splice(left.end(), interactive_);
    left.splice(left.end(), batch_);
    waiting_cost_ = 0;
    changed_.notify_all();
    changed_.wait(lock, [this] { return free_lanes_.size() == device_.lanes().size(); });
  }
  thread_.join();
  for (const auto& job : left)
    job->abandon(unavailable("DRAINING", "the server is shutting down", kRetryAfter));
}

absl::Status DeviceQueue::push(std::shared_ptr<Job> job) {
  const std::lock_guard lock(mutex_);
  if (draining_ || stopping_) {
    return unavailable("DRAINING", "the server is shutting down; connect to another one", kRetryAfter);
  }
  const Principal& principal = job->principal();
  if (depth_of(principal) >= principal.limits.max_queue_depth) {
    return unavailable(
        "QUEUE_FULL",
        absl::StrCat(principal.limits.max_queue_depth, " requests of ", principal.name, " wait for ",
                     device_.name(), " already, the limit (max_queue_depth); try again later"),
        kRetryAfter);
  }
  const absl::Duration wait = absl::Seconds(static_cast<double>(waiting_cost_) * seconds_per_byte_ /
                                            static_cast<double>(device_.lanes().size()));
  if (absl::Now() + wait > job->deadline()) {
    return absl::DeadlineExceededError(absl::StrCat("the wait for ", device_.name(), " would be about ",
                                                    absl::FormatDuration(wait),
                                                    ", beyond the request's deadline"));
  }
  waiting_cost_ += job->cost_bytes();
  waiting(job->job_class()).push_back(std::move(job));
  changed_.notify_one();
  return absl::OkStatus();
}

bool DeviceQueue::withdraw(const Job& job) {
  const std::lock_guard lock(mutex_);
  auto& jobs = waiting(job.job_class());
  const auto found =
      std::find_if(jobs.begin(), jobs.end(), [&](const auto& each) { return each.get() == &job; });
  if (found == jobs.end()) return false;
  waiting_cost_ -= job.cost_bytes();
  jobs.erase(found);
  return true;
}

void DeviceQueue::sweep(absl::Time now) {
  std::list<std::shared_ptr<Job>> late;
  {
    const std::lock_guard lock(mutex_);
    for (auto* jobs : {&interactive_, &batch_}) {
      for (auto job = jobs->begin(); job != jobs->end();) {
        const auto next = std::next(job);
        if ((*job)->deadline() <= now) {
          waiting_cost_ -= (*job)->cost_bytes();
          late.splice(late.end(), *jobs, job);
        }
        job = next;
      }
    }
  }
  for (const auto& job : late) job->abandon(expired());
}

void DeviceQueue::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

std::size_t DeviceQueue::depth() const {
  const std::lock_guard lock(mutex_);
  return interactive_.size() + batch_.size();
}

std::size_t DeviceQueue::depth_of(const Principal& principal) const {
  const auto is_its = [&](const auto& job) { return job->principal().name == principal.name; };
  return static_cast<std::size_t>(std::count_if(interactive_.begin(), interactive_.end(), is_its) +
                                  std::count_if(batch_.begin(), batch_.end(), is_its));
}

std::shared_ptr<Job> DeviceQueue::take_next() {
  auto& jobs = interactive_.empty() ? batch_ : interactive_;
  std::shared_ptr<Job> job = std::move(jobs.front());
  jobs.pop_front();
  waiting_cost_ -= job->cost_bytes();
  return job;
}

void DeviceQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] {
      return stopping_ || (!free_lanes_.empty() && (!interactive_.empty() || !batch_.empty()));
    });
    if (stopping_) return;
    const std::shared_ptr<Job> job = take_next();
    Lane* lane = free_lanes_.back();
    free_lanes_.pop_back();
    lock.unlock();
    start(job, *lane);
    lock.lock();
  }
}

void DeviceQueue::start(const std::shared_ptr<Job>& job, Lane& lane) {
  const absl::Time now = absl::Now();
  if (job->deadline() <= now || job->requested()) {
    job->abandon(job->deadline() <= now ? expired()
                                        : absl::CancelledError("the client cancelled the request"));
    const std::lock_guard lock(mutex_);
    free_lanes_.push_back(&lane);
    changed_.notify_all();
    return;
  }
  job->submit(lane);
  watch(job, lane, now);
}

void DeviceQueue::watch(const std::shared_ptr<Job>& job, Lane& lane, absl::Time started) {
  device_.when_done(lane, [this, job, &lane, started](const absl::Status& status) {
    if (!job->finish(lane, status)) return watch(job, lane, started);
    lane_done(lane, *job, started);
  });
}

void DeviceQueue::lane_done(Lane& lane, const Job& job, absl::Time started) {
  const double seconds = absl::ToDoubleSeconds(absl::Now() - started);
  const std::lock_guard lock(mutex_);
  if (job.cost_bytes() > 0) {
    const double speed = seconds / static_cast<double>(job.cost_bytes());
    seconds_per_byte_ =
        seconds_per_byte_ == 0 ? speed : seconds_per_byte_ + kSpeedGain * (speed - seconds_per_byte_);
  }
  free_lanes_.push_back(&lane);
  changed_.notify_all();
}

}  // namespace cumulus::server
