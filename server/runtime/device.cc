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

namespace {

absl::Status nothing_to_export(const Device& device) {
  return no_answer(
      "NO_DEVICE_MEMORY",
      absl::StrCat(device.name(), " has no memory of a GPU; start the server on one (--backend cuda)"));
}

}  // namespace

absl::Status Device::fault(const CudaError& error) {
  if (error.sticky()) mark_unhealthy();
  return device_fault(error.what());
}

absl::StatusOr<Device::Exported> Device::allocate_exported(std::size_t /*bytes*/) {
  return nothing_to_export(*this);
}

void Device::copy_within(const BufferMemory& /*from*/, std::size_t /*offset*/, const BufferMemory& /*to*/,
                         std::size_t /*bytes*/, Done done) {
  done(nothing_to_export(*this));
}

void Device::copy_in_and_read_head(std::span<const std::byte> from, const BufferMemory& to,
                                   std::span<std::byte> head, Done done) {
  copy_in(from, to, 0, [this, &to, head, done = std::move(done)](const absl::Status& status) {
    if (!status.ok()) return done(status);
    copy_out(to, 0, head, done);
  });
}

HostMemory Device::allocate_head() { return allocate_staging(kHeadBytes); }

absl::Status failed_device(const Device& device) {
  return device_fault(
      absl::StrCat(device.name(), " has failed; the server restarts: try again in some seconds"));
}

}  // namespace cumulus::server
