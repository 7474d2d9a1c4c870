#include "server/runtime/shared_memory/region.h"

#include <absl/strings/escaping.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "proto/shared_memory.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

std::string new_id() {
  std::array<char, 16> bits{};
  while (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size())) {
  }
  return absl::BytesToHexString({bits.data(), bits.size()});
}

absl::Status no_memory(std::size_t bytes, std::string_view why) {
  return exhausted("shared_memory", concat("no shared region of ", bytes, " bytes: ", why));
}

bool on_gpu(const DeviceSlot& slot) { return slot.device->space() == Space::kDevice; }

void unmap(void* /*pool*/, std::byte* data, std::size_t bytes) { ::munmap(data, bytes); }

}  // namespace

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::create(Kind kind, std::size_t bytes,
                                                                   const std::vector<DeviceSlot>& devices,
                                                                   RegionShares::Share share) {
  Descriptor file(::memfd_create("cumulus-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // An array's region can be sealed further, once its data is there.
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | (kind == Kind::kRing ? F_SEAL_SEAL : 0);
  if (!file || ::ftruncate(file.number(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(file.number(), F_ADD_SEALS, seals) != 0)
    return no_memory(bytes, std::strerror(errno));
  std::shared_ptr<SharedRegion> region(new SharedRegion(kind, std::move(file), bytes, std::move(share)));
  const auto gpu = std::find_if(devices.begin(), devices.end(), on_gpu);
  if (kind == Kind::kArray && gpu == devices.end()) return region;
  if (const absl::Status mapped = region->map(); !mapped.ok()) return mapped;
  if (gpu == devices.end()) return region;
  try {
    // Registering finds the pages there, which is quicker than their faults.
    ::madvise(region->memory_.data(), bytes, MADV_POPULATE_WRITE);
    region->registration_ = gpu->device->register_memory(region->memory_);
  } catch (const std::exception& problem) {
    return no_memory(bytes, problem.what());
  }
  return region;
}

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::create_on(Device& device, std::size_t bytes,
                                                                      Reservation counted,
                                                                      RegionShares::Share share) {
  if (!device.healthy()) return failed_device(device);
  try {
    absl::StatusOr<Device::Exported> exported = device.allocate_exported(bytes);
    if (!exported.ok()) return exported.status();
    std::shared_ptr<SharedRegion> region(
        new SharedRegion(Kind::kDevice, std::move(exported->descriptor), bytes, std::move(share)));
    region->device_ = &device;
    region->device_bytes_ = std::move(counted);
    region->device_memory_ = std::move(exported->memory);
    return region;
  } catch (const CudaError& problem) {
    if (!problem.out_of_memory()) return device.fault(problem);
    return no_memory(bytes,
                     concat("less of ", device.name(),
                            " is free beside the server's own memory; a smaller devices.gpu_memory_bytes "
                            "leaves more"));
  }
}

SharedRegion::SharedRegion(Kind kind, Descriptor file, std::size_t bytes, RegionShares::Share share)
    : kind_(kind), share_(std::move(share)), file_(std::move(file)), bytes_(bytes), id_(new_id()) {}

SharedRegion::~SharedRegion() {
  registration_.reset();
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

absl::Status SharedRegion::map() {
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
  if (memory == MAP_FAILED) return no_memory(bytes_, std::strerror(errno));
  memory_ = {static_cast<std::byte*>(memory), bytes_};
  return absl::OkStatus();
}

std::span<std::byte> SharedRegion::slot(std::uint32_t index) const {
  return memory_.subspan(index * kSharedSlotBytes, kSharedSlotBytes);
}

std::span<std::byte> SharedRegion::slot_to_write(std::uint32_t index, std::size_t bytes) {
  const std::span<std::byte> part = slot(index).first(bytes);
  if (registration_ == nullptr) mapped_.prepare(index, part);  // which has mapped all of it
  return part;
}

absl::Status SharedRegion::use_in(const Session& session) {
  if (session.slot->device.get() != device_) {
    return no_answer("REGION_ELSEWHERE",
                     concat("the region lies on ", device_->name(), ", and the session on ",
                            session.slot->device->name(), "; ask for one of that device"));
  }
  const std::lock_guard lock(quota_mutex_);
  if (session_bytes_.bytes() > 0) return absl::OkStatus();
  absl::StatusOr<Reservation> counted = session.quota->reserve(bytes_);
  if (!counted.ok()) return counted.status();
  session_bytes_ = *std::move(counted);
  session_bytes_.set_kept(true);
  return absl::OkStatus();
}

bool SharedRegion::freeze() const { return ::fcntl(file_.number(), F_ADD_SEALS, F_SEAL_WRITE) == 0; }

HostMemory SharedRegion::map_to_read(std::size_t bytes) const {
  if (bytes == 0) return {};
  // Private: of what is frozen, no other mapping is to be had, and nobody writes here.
  void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file_.number(), 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), bytes, nullptr, unmap};
}

absl::Status SharedRegion::write(std::size_t place, std::span<const std::byte> data) const {
  while (!data.empty()) {
    const ssize_t written = ::pwrite(file_.number(), data.data(), data.size(), static_cast<off_t>(place));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPERM)
      return no_answer("REGION_SEALED", "the region is sealed against writing; ask for another");
    if (written <= 0) return no_memory(bytes_, std::strerror(errno));
    place += static_cast<std::size_t>(written);
    data = data.subspan(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

void SharedRegion::discard() const {
  if (kind_ == Kind::kDevice) return;  // a client's mapping of it lasts as long as the client wants
  (void)::fallocate(file_.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                    static_cast<off_t>(bytes_));
}

}  // namespace cumulus::server
