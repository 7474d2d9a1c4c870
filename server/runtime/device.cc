#include "server/runtime/device.h"

#include <absl/strings/str_cat.h>

#include <utility>

namespace cumulus::server {

Device::Device(std::string name, std::string model, std::size_t budget_bytes)
    : name_(std::move(name)),
      model_(std::move(model)),
      budget_(MemoryBudget::create(absl::StrCat("device:", name_), budget_bytes)) {}

}  // namespace cumulus::server
