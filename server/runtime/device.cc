#include "server/runtime/device.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "server/pipeline/errors.h"

namespace cumulus::server {

Device::Device(std::string name, std::string model, std::size_t budget_bytes)
    : name_(std::move(name)),
      model_(std::move(model)),
      budget_(MemoryBudget::create(absl::StrCat("device:", name_), budget_bytes)) {}

void Device::mark_unhealthy() {
  if (healthy_.exchange(false, std::memory_order_relaxed) && failed_) failed_();
}

absl::Status failed_device(const Device& device) {
  return device_fault(
      absl::StrCat(device.name(), " has failed; the server restarts: try again in some seconds"));
}

}  // namespace cumulus::server
