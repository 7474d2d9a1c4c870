#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "server/runtime/configuration.h"
#include "server/runtime/session_store.h"
#include "server/runtime/shared_memory/region.h"

namespace cumulus::server {

/// A ring that is made before a client asks for one, where that takes milliseconds: on a GPU, whose driver
/// registers all of its pages. Counted by nobody's share until it is taken. Thread-safe.
class SpareRing {
 public:
  SpareRing(const std::vector<DeviceSlot>& devices, const Configuration::SharedMemory& limits);

  /// The ring, which is the caller's from now on; null where there is none.
  std::shared_ptr<SharedRegion> take();
  /// Makes one where there is none and one is of use.
  void fill();

 private:
  const std::vector<DeviceSlot>& devices_;
  const bool wanted_;
  std::mutex mutex_;
  std::shared_ptr<SharedRegion> ring_;
};

}  // namespace cumulus::server
