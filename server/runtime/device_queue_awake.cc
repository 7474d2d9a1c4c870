// The worker that stays awake while short calls come one after the other.

#include <thread>

#include "proto/steady_time.h"
#include "server/runtime/device_queue.h"

namespace cumulus::server {

using Clock = std::chrono::steady_clock;

bool DeviceQueue::come_often() const {
  return stays_awake_ && steady_now() - last_end_ < absl::FromChrono(kAwake);
}

void DeviceQueue::keep_one_awake(bool often) {
  if (!often || any_awake_ || wants_awake_) return;
  wants_awake_ = true;
  changed_.notify_one();
}

bool DeviceQueue::call_awake_worker() {
  if (!looks_ || called_) return false;
  called_ = true;
  return true;
}

void DeviceQueue::call_worker() {
  if (!call_awake_worker()) changed_.notify_one();
}

void DeviceQueue::work_awake(std::unique_lock<std::mutex>& lock) {
  wants_awake_ = false;
  any_awake_ = true;
  Clock::time_point end = Clock::now() + kAwake;
  while (!stopping_ && Clock::now() < end) {
    if (const auto flow = next_flow(); flow != flows_.end()) {
      start_next(flow, lock);
      end = Clock::now() + kAwake;
      continue;
    }
    looks_ = true;
    called_ = false;
    lock.unlock();
    while (!called_ && Clock::now() < end) std::this_thread::yield();
    lock.lock();
    looks_ = false;
  }
  any_awake_ = false;
}

}  // namespace cumulus::server
