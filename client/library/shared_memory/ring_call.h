#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <mutex>
#include <string>

#include "library/shared_memory/region_call.h"
#include "library/shared_memory/shared_memory.h"

namespace cumulus {

/// A call that uses one of its connection's rings.
class RingCall final : public RegionCall {
 public:
  /// Null where there is no ring to be had.
  static std::shared_ptr<RingCall> make(Connection& connection);

  /// Ends the call, by the end of its ring; from any thread, and at any time.
  void abandon();

  /// Waits for the call's end. The ring is kept for the next transfer where it is as before.
  absl::StatusOr<std::string> finish();

 private:
  RingCall(Connection& connection, std::unique_ptr<SharedMemory::Ring> ring);

  std::mutex ring_mutex_;  // between finish() and abandon()
  std::unique_ptr<SharedMemory::Ring> ring_;
};

}  // namespace cumulus
