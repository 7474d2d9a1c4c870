#include "server/runtime/device_queue.h"

// What the queue shows of itself.

namespace cumulus::server {

std::size_t DeviceQueue::depth() const {
  const std::lock_guard lock(mutex_);
  std::size_t depth = 0;
  for (const auto& [key, flow] : flows_) depth += flow.waiting.size();
  return depth;
}

std::size_t DeviceQueue::running() const {
  const std::lock_guard lock(mutex_);
  return runs_.size();
}

std::size_t DeviceQueue::depth(JobClass job_class) const {
  const std::lock_guard lock(mutex_);
  std::size_t depth = 0;
  for (const auto& [key, flow] : flows_) depth += key.second == job_class ? flow.waiting.size() : 0;
  return depth;
}

std::vector<DeviceQueue::FlowView> DeviceQueue::flow_views(std::size_t at_most) const {
  std::vector<FlowView> views;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, flow] : flows_) {
    if (flow.is_idle() || views.size() == at_most) continue;
    views.push_back({key.first, key.second, flow.waiting.size(), flow.running, flow.waiting_cost});
  }
  return views;
}

std::size_t DeviceQueue::depth_of(const std::string& principal) const {
  std::size_t depth = 0;
  for (const JobClass job_class : {JobClass::kInteractive, JobClass::kBatch}) {
    const auto flow = flows_.find({principal, job_class});
    if (flow != flows_.end()) depth += flow->second.waiting.size();
  }
  return depth;
}

}  // namespace cumulus::server
