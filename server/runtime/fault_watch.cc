#include "server/runtime/fault_watch.h"

#include <utility>

namespace cumulus::server {

FaultWatch::FaultWatch(std::vector<DeviceSlot>& devices, std::function<void(DeviceSlot&)> failed)
    : failed_(std::move(failed)), thread_([this] { run(); }) {
  for (DeviceSlot& slot : devices) {
    slot.device->on_failure([this, &slot] {
      const std::lock_guard lock(mutex_);
      if (first_ == nullptr) first_ = &slot;
      wake_.notify_one();
    });
  }
}

FaultWatch::~FaultWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void FaultWatch::run() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stopping_ || first_ != nullptr; });
  if (stopping_) return;
  DeviceSlot& failed = *first_;
  lock.unlock();
  failed_(failed);
}

}  // namespace cumulus::server
