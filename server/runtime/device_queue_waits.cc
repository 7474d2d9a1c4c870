// How long calls will wait for a device, and what flows have paid for it.

#include <algorithm>
#include <limits>
#include <map>

#include "proto/steady_time.h"
#include "server/runtime/device_queue.h"

namespace cumulus::server {

double DeviceQueue::weight_of(const Job& job) {
  const double weight = job.principal().limits.weight;
  return job.job_class() == JobClass::kInteractive ? kInteractiveWeight * weight : weight;
}

absl::Duration DeviceQueue::predicted_wait(const Job& job) const {
  const std::lock_guard lock(mutex_);
  return absl::Seconds(wait_seconds(job));
}

absl::Duration DeviceQueue::backlog() const {
  const absl::Time now = steady_now();
  const std::lock_guard lock(mutex_);
  double seconds = 0;
  for (const Run& run : runs_) seconds += seconds_left(run, now);
  for (const auto& [key, flow] : flows_) seconds += flow.waiting_cost;
  return absl::Seconds(seconds);
}

double DeviceQueue::seconds_left(const Run& run, absl::Time now) {
  const double ran = absl::ToDoubleSeconds(run.ran(now));
  // One that takes longer than predicted: half as long again.
  return std::max(run.cost - ran, 0.0) + (ran > run.cost ? ran / 2 : 0.0);
}

absl::Duration DeviceQueue::expected_rest(const Run& run) const {
  const std::optional<double> last = history_.last_of(run.job->operation(), run.job->cost_seconds());
  if (!last.has_value()) return absl::InfiniteDuration();
  return absl::Seconds(*last) - run.ran(steady_now());
}

std::optional<double> DeviceQueue::least_paid() const {
  const absl::Time now = steady_now();
  std::map<const Flow*, double> unused;
  for (const Run& run : runs_)
    unused[run.flow] += (run.cost - absl::ToDoubleSeconds(run.ran(now))) / run.flow->weight;
  std::optional<double> least;
  for (const auto& [key, flow] : flows_) {
    if (flow.is_idle()) continue;
    const double paid = flow.paid - unused[&flow];
    least = least.has_value() ? std::min(*least, paid) : paid;
  }
  return least;
}

double DeviceQueue::wait_seconds(const Job& job) const {
  const absl::Time now = steady_now();
  const double weight = weight_of(job);
  std::map<const Flow*, double> left;  // of each flow's work
  double soonest = std::numeric_limits<double>::infinity();
  for (const Run& run : runs_) {
    const double rest = seconds_left(run, now);
    left[run.flow] += rest;
    soonest = std::min(soonest, rest);
  }
  for (const auto& [key, flow] : flows_) left[&flow] += flow.waiting_cost;
  const auto found = flows_.find(key_of(job));
  const Flow* own = found != flows_.end() && !found->second.is_idle() ? &found->second : nullptr;
  const bool has_a_lane =
      !free_lanes_.empty() &&
      (own == nullptr || (own->waiting.empty() && own->running < device_.lanes_of_a_flow()));
  if (has_a_lane) return 0;
  if (own == nullptr) {  // a lane has to come free, and flows that wait have a turn each
    double turns = 0;
    for (const auto& [key, flow] : flows_) turns += flow.waiting.empty() ? 0 : flow.waiting.front().cost;
    return soonest + turns / static_cast<double>(device_.lanes().size());
  }
  const double before = left[own] / static_cast<double>(device_.lanes_of_a_flow());
  double wait = before;
  for (const auto& [key, flow] : flows_) {
    // While the work before it goes on, others have as much of the device's time as their weights say.
    if (&flow != own) wait += std::min(left[&flow], before * flow.weight / weight);
  }
  return wait;
}

}  // namespace cumulus::server
