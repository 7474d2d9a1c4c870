// What sessions reserve, and what is evicted for it.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "server/pipeline/errors.h"
#include "server/runtime/session_store.h"

namespace cumulus::server {
namespace {

absl::Status not_now(const MemoryBudget& budget, std::size_t bytes) {
  constexpr absl::Duration kMemoryRetryAfter = absl::Milliseconds(100);
  return unavailable("NO_MEMORY_NOW",
                     absl::StrCat("needs ", bytes, " bytes of ", budget.subject(),
                                  ", which others hold; try again once they have given it back"),
                     kMemoryRetryAfter);
}

}  // namespace

absl::StatusOr<Admission> SessionStore::admit(Device& device, const Session* session, std::size_t bytes) {
  if (const absl::Status room = check_room(device, session, bytes); !room.ok()) return room;
  Admission admission;
  if (session != nullptr) {
    absl::StatusOr<Reservation> quota = session->quota->reserve(bytes);
    if (!quota.ok() && evict_own(*session, bytes)) quota = session->quota->reserve(bytes);
    if (!quota.ok()) return not_now(*session->quota, bytes);
    admission.session = *std::move(quota);
  }
  absl::StatusOr<Reservation> memory = device.budget()->reserve(bytes);
  if (!memory.ok() && evict(device, bytes)) memory = device.budget()->reserve(bytes);
  if (!memory.ok()) return not_now(*device.budget(), bytes);
  admission.device = *std::move(memory);
  return admission;
}

absl::StatusOr<Admission> SessionStore::admit_upload(Device& device, const Session& session,
                                                     std::size_t bytes) {
  const MemoryBudget& budget = *device.budget();
  const std::size_t reserved = budget.reserved_bytes();
  if (reserved > budget.kept_bytes() && bytes > (budget.limit_bytes() - reserved) / 2) {
    evict(device, 2 * bytes);
    const absl::Status room = check_room(device, &session, bytes);
    if (!room.ok()) return room;
    if (bytes > (budget.limit_bytes() - budget.reserved_bytes()) / 2) return not_now(budget, bytes);
  }
  return admit(device, &session, bytes);
}

absl::Status SessionStore::check_room(const Device& device, const Session* session, std::size_t bytes) const {
  const MemoryBudget& memory = *device.budget();
  if (session == nullptr) return bytes <= memory.limit_bytes() ? absl::OkStatus() : memory.shortage(bytes);
  const MemoryBudget& quota = *session->quota;
  const std::size_t own = quota.kept_bytes();  // which only its owner gives back, or an eviction
  if (bytes + own <= std::min(quota.limit_bytes(), memory.limit_bytes())) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  const std::size_t at_least = bytes + own - std::min(own, evictable_bytes(*session));
  if (at_least > quota.limit_bytes()) return quota.shortage(bytes);
  return at_least <= memory.limit_bytes() ? absl::OkStatus() : memory.shortage(bytes);
}

bool SessionStore::is_idle(const std::shared_ptr<ResidentBuffer>& buffer) {
  // Only the session holds it: no running call does, and none can begin to while we hold the lock.
  return buffer->evictable && buffer.use_count() == 1;
}

std::size_t SessionStore::evictable_bytes(const Session& session) const {
  const auto entry = entries_.find(session.name);
  if (entry == entries_.end()) return 0;
  std::size_t bytes = 0;
  for (const auto& [number, buffer] : entry->second.buffers)
    bytes += is_idle(buffer) ? buffer->device_bytes.bytes() : 0;
  return bytes;
}

bool SessionStore::evict(const Device& device, std::size_t bytes) {
  Dropped dropped;
  const std::lock_guard lock(mutex_);
  std::vector<Candidate> candidates;
  for (auto& [name, entry] : entries_) {
    if (entry.session->slot->device.get() == &device) add_candidates(entry, candidates);
  }
  return drop(std::move(candidates), *device.budget(), bytes, dropped);
}

bool SessionStore::evict_own(const Session& session, std::size_t bytes) {
  Dropped dropped;
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(session.name);
  if (entry == entries_.end()) return false;
  std::vector<Candidate> candidates;
  add_candidates(entry->second, candidates);
  return drop(std::move(candidates), *session.quota, bytes, dropped);
}

void SessionStore::add_candidates(Entry& entry, std::vector<Candidate>& candidates) {
  for (const auto& [number, buffer] : entry.buffers) {
    if (is_idle(buffer)) candidates.push_back({buffer->last_use, &entry, number});
  }
}

bool SessionStore::drop(std::vector<Candidate> candidates, const MemoryBudget& budget, std::size_t bytes,
                        Dropped& dropped) {
  std::size_t free = budget.limit_bytes() - budget.reserved_bytes();
  std::size_t evictable = 0;
  for (const Candidate& candidate : candidates)
    evictable += candidate.owner->buffers.at(candidate.number)->device_bytes.bytes();
  if (free + evictable < bytes) return false;
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.last_use < b.last_use; });
  for (const Candidate& candidate : candidates) {
    if (free >= bytes) break;
    const auto found = candidate.owner->buffers.find(candidate.number);
    free += found->second->device_bytes.bytes();
    remember_end(found->second->name, "BUFFER_EVICTED");
    ++end_counts_.buffers_evicted;
    due_.erase({found->second->expire_time, found->second->name});
    dropped.push_back(std::move(found->second));
    candidate.owner->buffers.erase(found);
  }
  return true;
}

}  // namespace cumulus::server
