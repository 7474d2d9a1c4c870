#include "server/runtime/open_devices.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "kernels/core/cuda_executor.h"
#include "server/pipeline/errors.h"
#include "server/runtime/host_memory.h"

namespace cumulus::server {
namespace {

DeviceSlot with_queue(std::unique_ptr<Device> device) {
  spdlog::info("device {}: {}, {:.1f} GiB", device->name(), device->model(),
               static_cast<double>(device->budget()->limit_bytes()) / (1 << 30));
  DeviceSlot slot{std::move(device), nullptr};
  slot.queue = std::make_unique<DeviceQueue>(*slot.device);
  return slot;
}

/// Where a device has less, what the budget admits fails later: by errors of the GPU, or by the system's
/// killing the daemon.
absl::Status check_budget(std::string_view field, std::size_t budget, std::size_t there,
                          std::string_view whose) {
  constexpr double kGiB = 1 << 30;
  if (budget <= there) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s (--memory) is %.1f GiB, and %s has %.1f GiB; at most that is right, or 0 for the default", field,
      static_cast<double>(budget) / kGiB, whose, static_cast<double>(there) / kGiB));
}

absl::StatusOr<std::vector<DeviceSlot>> open_gpus(const Configuration& configuration, std::size_t landing) {
  const std::size_t budget = configuration.devices.gpu_memory_bytes;
  std::vector<DeviceSlot> slots;
  for (int ordinal = 0; ordinal < cuda_device_count(); ++ordinal) {
    if (budget > 0) {
      const absl::Status fits =
          check_budget("devices.gpu_memory_bytes", budget, CudaDevice(ordinal).total_bytes(),
                       absl::StrCat("GPU ", ordinal));
      if (!fits.ok()) return fits;
    }
    slots.push_back(
        with_queue(make_gpu_device({.ordinal = ordinal,
                                    .budget_bytes = budget,
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
      absl::StatusOr<std::vector<DeviceSlot>> gpus = open_gpus(configuration, landing);
      if (!gpus.ok()) return gpus.status();
      slots = *std::move(gpus);
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
    const absl::Status fits = check_budget("devices.cpu_memory_bytes", wanted.cpu_memory_bytes,
                                           static_cast<std::size_t>(available_memory_bytes()),
                                           "this machine, or the control group that the daemon runs in,");
    if (!fits.ok()) return fits;
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
