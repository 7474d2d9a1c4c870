#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/runtime/alarm.h"
#include "server/runtime/configuration.h"
#include "server/runtime/decode/decode_queue.h"
#include "server/runtime/decode/helper.h"
#include "server/runtime/drain.h"
#include "server/runtime/file_root.h"
#include "server/runtime/identity/identity.h"
#include "server/runtime/memory_budget.h"
#include "server/runtime/metrics/telemetry.h"
#include "server/runtime/session_store.h"

namespace cumulus::server {

/// What the services work with, and the thread that ends leases and late requests. Built by main;
/// outlives the services.
class Runtime {
 public:
  /// At least one device. Without a helper no images are decoded; without an identity callers are known by
  /// their addresses; without files requests name none.
  Runtime(const Configuration& settings, std::vector<DeviceSlot> device_slots,
          std::shared_ptr<DecodeHelper> helper = nullptr, std::shared_ptr<const Identity> callers = nullptr,
          std::shared_ptr<const FileRoot> files = nullptr);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// The device of that name; null where there is none.
  DeviceSlot* find_device(std::string_view name);
  /// The healthy device with the least to do; of equals, the one with most memory free. INTERNAL
  /// (DEVICE_FAULT) where none is healthy.
  absl::StatusOr<DeviceSlot*> place_call();
  /// As place_call; each session that the device has counts as a second of work.
  absl::StatusOr<DeviceSlot*> place_session();
  bool healthy() const;

  const Configuration configuration;
  const std::shared_ptr<const Identity> identity;
  const std::shared_ptr<const FileRoot> file_root;
  const std::string instance;  // new at every start
  Telemetry telemetry;         // before what may end calls
  Drain drain;
  Alarm alarm;  // of what sweeps; before what asks for it
  // In this order: sessions give their buffers back before the devices that hold them go.
  std::vector<DeviceSlot> devices;
  SessionStore sessions;
  const std::shared_ptr<MemoryBudget> decoded_images;  // host memory of encoded images, decoding and decoded
  const std::shared_ptr<DecodeHelper> decode_helper;
  DecodeQueue decoders;

 private:
  absl::StatusOr<DeviceSlot*> least_loaded(absl::Duration of_a_session);
  void sweep();

  std::thread janitor_;
};

}  // namespace cumulus::server
