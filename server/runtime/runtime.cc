#include "server/runtime/runtime.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "kernels/core/unused_memory.h"
#include "proto/steady_time.h"
#include "server/runtime/idle_trim.h"
#include "server/runtime/instance.h"

namespace cumulus::server {
namespace {

/// That this process has used so far.
absl::Duration processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

std::size_t free_bytes(const DeviceSlot& slot) {
  const MemoryBudget& budget = *slot.device->budget();
  return budget.limit_bytes() - budget.reserved_bytes();
}

}  // namespace

Runtime::Runtime(const Configuration& settings, std::vector<DeviceSlot> device_slots,
                 std::shared_ptr<DecodeHelper> helper, std::shared_ptr<const Identity> callers,
                 std::shared_ptr<const FileRoot> files)
    : configuration(settings),
      identity(callers != nullptr ? std::move(callers)
                                  : std::make_shared<const Identity>(settings.principals)),
      file_root(std::move(files)),
      instance(new_instance()),
      telemetry(settings.principals.names()),
      devices(std::move(device_slots)),
      sessions({settings.limits.max_sessions, settings.limits.max_buffers_per_session}, &alarm),
      decoded_images(
          MemoryBudget::create("limits:decoded_images_bytes", settings.limits.decoded_images_bytes)),
      decode_helper(std::move(helper)),
      decoders(settings.decoding) {
  for (DeviceSlot& slot : devices) slot.queue->sweep_by(alarm);
  janitor_ = std::thread([this] { sweep(); });
}

Runtime::~Runtime() {
  alarm.stop();
  janitor_.join();
}

DeviceSlot* Runtime::find_device(std::string_view name) {
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const DeviceSlot& slot) { return slot.device->name() == name; });
  return found != devices.end() ? &*found : nullptr;
}

absl::StatusOr<DeviceSlot*> Runtime::place_call() { return least_loaded(absl::ZeroDuration()); }

absl::StatusOr<DeviceSlot*> Runtime::place_session() { return least_loaded(absl::Seconds(1)); }

absl::StatusOr<DeviceSlot*> Runtime::least_loaded(absl::Duration of_a_session) {
  struct Load {
    absl::Duration work;
    std::size_t free_bytes;
  };
  DeviceSlot* best = nullptr;
  Load least{};
  for (DeviceSlot& slot : devices) {
    if (!slot.device->healthy()) continue;
    const auto leases = static_cast<double>(sessions.session_count(slot));
    const Load load{slot.queue->backlog() + leases * of_a_session, free_bytes(slot)};
    const bool better =
        load.work < least.work || (load.work == least.work && load.free_bytes > least.free_bytes);
    if (best != nullptr && !better) continue;
    best = &slot;
    least = load;
  }
  if (best == nullptr) return failed_device(*devices.front().device);
  return best;
}

bool Runtime::healthy() const {
  return std::all_of(devices.begin(), devices.end(),
                     [](const DeviceSlot& slot) { return slot.device->healthy(); });
}

void Runtime::sweep() {
  IdleTrim trim;
  do {
    const absl::Time now = steady_now();
    sessions.expire(now);
    // Not sooner, or leases that end one shortly after the other would have a sweep each.
    alarm.ask(std::max(sessions.next_due(), now + DeviceQueue::kSweepInterval));
    for (DeviceSlot& slot : devices) {
      if (slot.queue->sweep(steady_now())) alarm.ask(now + DeviceQueue::kSweepInterval);
    }
    if (trim.due(now, processor_time())) release_unused_host_memory();
    alarm.ask(now + trim.next_look());
  } while (alarm.wait());
}

}  // namespace cumulus::server
