#include "server/runtime/runtime.h"

#include <absl/random/random.h>
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <utility>

#include "kernels/core/unused_memory.h"
#include "server/runtime/idle_trim.h"

namespace cumulus::server {
namespace {

std::string new_instance() {
  absl::BitGen random;
  return absl::StrFormat("%016x", absl::Uniform<std::uint64_t>(random));
}

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
      sessions({settings.limits.max_sessions, settings.limits.max_buffers_per_session}),
      decoded_images(
          MemoryBudget::create("limits:decoded_images_bytes", settings.limits.decoded_images_bytes)),
      decode_helper(std::move(helper)),
      decoders(settings.decoding),
      janitor_([this] { sweep(); }) {}

Runtime::~Runtime() {
  {
    const std::lock_guard lock(janitor_mutex_);
    stopping_ = true;
  }
  janitor_wake_.notify_one();
  janitor_.join();
}

DeviceSlot* Runtime::find_device(std::string_view name) {
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const DeviceSlot& slot) { return slot.device->name() == name; });
  return found != devices.end() ? &*found : nullptr;
}

DeviceSlot& Runtime::least_loaded() {
  return *std::max_element(devices.begin(), devices.end(), [](const DeviceSlot& a, const DeviceSlot& b) {
    return std::pair(free_bytes(a), b.queue->depth()) < std::pair(free_bytes(b), a.queue->depth());
  });
}

bool Runtime::healthy() const {
  return std::all_of(devices.begin(), devices.end(),
                     [](const DeviceSlot& slot) { return slot.device->healthy(); });
}

std::string Runtime::endpoint() const {
  const std::lock_guard lock(endpoint_mutex_);
  return endpoint_;
}

void Runtime::set_endpoint(std::string address) {
  const std::lock_guard lock(endpoint_mutex_);
  endpoint_ = std::move(address);
}

void Runtime::sweep() {
  IdleTrim trim;
  std::unique_lock lock(janitor_mutex_);
  while (!janitor_wake_.wait_for(lock, kSweepInterval, [this] { return stopping_; })) {
    const absl::Time now = absl::Now();
    sessions.expire(now);
    for (DeviceSlot& slot : devices) slot.queue->sweep(now);
    if (trim.due(now, processor_time())) release_unused_host_memory();
  }
}

}  // namespace cumulus::server
