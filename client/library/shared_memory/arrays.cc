#include "library/shared_memory/arrays.h"

#include <utility>

namespace cumulus {

std::span<std::byte> SharedArrays::add(std::unique_ptr<SharedRegion> region, std::size_t bytes) {
  const std::span<std::byte> array = region->memory().first(bytes);
  const std::lock_guard lock(mutex_);
  entries_[array.data()] = Entry{std::move(region), bytes};
  return array;
}

void SharedArrays::remove(const std::byte* array) {
  const std::lock_guard lock(mutex_);
  entries_.erase(array);
}

SharedArrays::Entry* SharedArrays::find_shared(std::span<const std::byte> bytes) {
  const auto found = entries_.find(bytes.data());
  if (found == entries_.end() || found->second.bytes != bytes.size() || found->second.given) return nullptr;
  return &found->second;
}

SharedArrays::Hold SharedArrays::take(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = find_shared(bytes);
  if (entry == nullptr) return nullptr;
  if (entry->region->becomes_the_servers()) {
    entry->given = true;
    if (!entry->region->make_private()) return nullptr;
  }
  return entry->region;
}

SharedArrays::Hold SharedArrays::find(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  const Entry* const entry = find_shared(bytes);
  return entry == nullptr ? nullptr : entry->region;
}

void SharedArrays::knock(std::span<const std::byte> bytes, For transfer) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = find_shared(bytes);
  if (entry == nullptr || !entry->region->takes_calls() || !entry->region->takes_knocks()) return;
  entry->knocked = transfer == For::kUpload && entry->region->takes_early_copies();
  (void)entry->region->send(
      {.kind = SharedMemoryMessage::kKnock, .bytes = entry->knocked ? bytes.size() : 0});
}

bool SharedArrays::take_knock(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = find_shared(bytes);
  return entry != nullptr && std::exchange(entry->knocked, false);
}

void SharedArrays::retire(const std::byte* array) {
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(array); found != entries_.end()) found->second.given = true;
}

void SharedArrays::part_from_server(const std::byte* array) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(array);
  if (found == entries_.end()) return;
  found->second.given = true;
  found->second.region->replace_memory();
}

}  // namespace cumulus
