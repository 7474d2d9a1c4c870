#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "server/runtime/session_store.h"

namespace cumulus::server {

/// Waits, on a thread of its own, for a device to fail.
class FaultWatch {
 public:
  /// Calls `failed` once, with the first device that does. Before calls use the devices.
  FaultWatch(std::vector<DeviceSlot>& devices, std::function<void(DeviceSlot&)> failed);
  ~FaultWatch();
  FaultWatch(const FaultWatch&) = delete;
  FaultWatch& operator=(const FaultWatch&) = delete;

 private:
  void run();

  const std::function<void(DeviceSlot&)> failed_;
  std::mutex mutex_;
  std::condition_variable wake_;
  DeviceSlot* first_ = nullptr;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cumulus::server
