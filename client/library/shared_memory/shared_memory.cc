#include "library/shared_memory/shared_memory.h"

#include <absl/strings/match.h>

#include <utility>

namespace cumulus {

bool is_on_this_machine(const std::string& target) {
  const std::string host = target.substr(0, target.rfind(':'));
  return absl::StartsWith(target, "unix:") || host == "localhost" || host == "[::1]" ||
         absl::StartsWith(host, "127.");
}

void SharedMemory::set_socket(const std::string& address) {
  const std::lock_guard lock(mutex_);
  if (!wanted_ || address == socket_) return;
  socket_ = address;
  known_.clear();
  free_.clear();
}

std::string SharedMemory::socket() const {
  const std::lock_guard lock(mutex_);
  return socket_;
}

absl::StatusOr<std::unique_ptr<SharedRegion>> SharedMemory::open(const SharedMemoryMessage& want) {
  std::string address;
  std::shared_ptr<const std::string> like;
  {
    const std::lock_guard lock(mutex_);
    address = socket_;
    while (!known_.empty() && (like = known_.back().lock()) == nullptr) known_.pop_back();
  }
  if (address.empty()) return absl::UnavailableError("no shared memory: the server has none");
  return SharedRegion::open(address, want, like != nullptr ? *like : "");
}

void SharedMemory::note_known(const std::shared_ptr<const std::string>& id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& each) { return each.expired(); });
  known_.emplace_back(id);
}

std::unique_ptr<SharedMemory::Ring> SharedMemory::take_ring() {
  {
    const std::lock_guard lock(mutex_);
    if (socket_.empty() || taken_ >= kMaxRings) return nullptr;
    ++taken_;
    while (!free_.empty()) {
      std::unique_ptr<Ring> ring = std::move(free_.back());
      free_.pop_back();
      if (ring->region->quiet()) return ring;
    }
  }
  absl::StatusOr<std::unique_ptr<SharedRegion>> region = open({.kind = SharedMemoryMessage::kRing});
  if (region.ok() && (*region)->memory().size() >= kSharedSlots * kSharedSlotBytes)
    return std::make_unique<Ring>(Ring{*std::move(region)});
  give_back(nullptr);
  return nullptr;
}

void SharedMemory::give_back(std::unique_ptr<Ring> ring) {
  const std::lock_guard lock(mutex_);
  --taken_;
  if (ring != nullptr) free_.push_back(std::move(ring));
}

void SharedMemory::forget_socket() {
  const std::lock_guard lock(mutex_);
  socket_.clear();
}

}  // namespace cumulus
