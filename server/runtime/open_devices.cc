#include "server/runtime/open_devices.h"

#include <absl/strings/str_cat.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

DeviceSlot with_queue(std::unique_ptr<Device> device) {
  spdlog::info("device {}: {}, {:.1f} GiB", device->name(), device->model(),
               static_cast<double>(device->budget()->limit_bytes()) / (1 << 30));
  DeviceSlot slot{std::move(device), nullptr};
  slot.queue = std::make_unique<DeviceQueue>(*slot.device);
  return slot;
}

std::vector<DeviceSlot> open_gpus(const Configuration& configuration, std::size_t landing) {
  std::vector<DeviceSlot> slots;
  for (int ordinal = 0; ordinal < cuda_device_count(); ++ordinal) {
    slots.push_back(
        with_queue(make_gpu_device({.ordinal = ordinal,
                                    .budget_bytes = configuration.devices.gpu_memory_bytes,
                                    .memory_on_demand = configuration.devices.gpu_memory_on_demand,
                                    .streams = configuration.devices.streams,
                                    .landing_bytes = landing})));
  }
  return slots;
}

}  // namespace

absl::StatusOr<std::vector<DeviceSlot>> open_devices(Configuration& configuration) {
  const Configuration::Devices& wanted = configuration.devices;
  const std::size_t landing = landing_bytes(configuration.limits.max_inline_bytes);
  std::vector<DeviceSlot> slots;
  if (wanted.backend != Backend::kCpu && cuda_device_count() > 0) {
    try {
      slots = open_gpus(configuration, landing);
    } catch (const CudaError& error) {
      return absl::InternalError(absl::StrCat("cannot open a GPU: ", error.what(),
                                              "; lower devices.gpu_memory_bytes, or use --backend cpu"));
    }
  } else if (wanted.backend == Backend::kCuda) {
    return absl::FailedPreconditionError(absl::StrCat("devices.backend is CUDA and there is no GPU (",
                                                      cuda_unavailable_reason(),
                                                      "); use --backend cpu, or auto to take what is there"));
  } else {
    if (wanted.backend == Backend::kAuto)
      spdlog::info("no GPU ({}): the CPU backend", cuda_unavailable_reason());
    slots.push_back(with_queue(make_cpu_device({.threads = wanted.cpu_threads,
                                                .lanes = wanted.cpu_calls,
                                                .budget_bytes = wanted.cpu_memory_bytes,
                                                .landing_bytes = landing})));
  }
  std::size_t largest = 0;
  for (const DeviceSlot& slot : slots) largest = std::max(largest, slot.device->budget()->limit_bytes());
  configuration.apply_device_budget(largest);
  return slots;
}

}  // namespace cumulus::server
