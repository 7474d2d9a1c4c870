#include "server/runtime/session_store.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

constexpr std::size_t kRememberedEnds = 4096;
const std::string kBuffersInfix = "/buffers/";

/// The whole of `text` as a number; 0 where it is none (no buffer has that number).
std::uint64_t parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

/// "sessions/{session}" of "sessions/{session}/buffers/{buffer}", and the buffer's number (0: none).
struct BufferName {
  std::string_view session;
  std::uint64_t number = 0;
};

BufferName split_buffer_name(std::string_view name) {
  const std::size_t infix = name.find(kBuffersInfix);
  if (infix == std::string_view::npos) return {name, 0};
  return {name.substr(0, infix), parse_number(name.substr(infix + kBuffersInfix.size()))};
}

absl::Status not_now(const MemoryBudget& budget, std::size_t bytes) {
  constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);
  return unavailable("NO_MEMORY_NOW",
                     absl::StrCat("needs ", bytes, " bytes of ", budget.subject(),
                                  ", which others hold; try again once they have given it back"),
                     kRetryAfter);
}

}  // namespace

SessionUse& SessionUse::operator=(SessionUse&& other) noexcept {
  if (this != &other) {
    end();
    store_ = std::exchange(other.store_, nullptr);
    session_ = std::move(other.session_);
  }
  return *this;
}

void SessionUse::end() {
  if (store_ != nullptr) store_->end_use(session_);
  store_ = nullptr;
}

absl::StatusOr<SessionHandle> SessionStore::create_session(const NewSession& session) {
  const std::string name = absl::StrCat("sessions/", session.id);
  const std::lock_guard lock(mutex_);
  if (entries_.find(name) != entries_.end()) {
    return absl::AlreadyExistsError(absl::StrCat(name, " exists already; make a new UUID for every session"));
  }
  if (entries_.size() >= limits_.max_sessions) {
    return exhausted("server:sessions", absl::StrCat("the server has ", limits_.max_sessions,
                                                     " sessions, its limit; delete one or let one expire"));
  }
  Entry entry;
  entry.session = std::make_shared<Session>(Session{
      name, session.slot, session.ttl, MemoryBudget::create(name, session.quota_bytes), session.owner});
  entry.expire_time = absl::Now() + session.ttl;
  SessionHandle handle = entry.session;
  entries_.emplace(name, std::move(entry));
  return handle;
}

absl::StatusOr<SessionHandle> SessionStore::find_session(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(name);
  if (!entry.ok()) return entry.status();
  return (*entry)->second.session;
}

absl::StatusOr<SessionUse> SessionStore::use_session(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(name);
  if (!entry.ok()) return entry.status();
  ++(*entry)->second.uses;
  return SessionUse(*this, (*entry)->second.session);
}

void SessionStore::end_use(const SessionHandle& session) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(session->name);
  if (entry == entries_.end() || entry->second.session != session) return;  // it was deleted
  --entry->second.uses;
  entry->second.expire_time = absl::Now() + session->ttl;
}

absl::Status SessionStore::delete_session(std::string_view name) {
  Entry ended;  // its buffers go after the lock
  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(name);
  if (!entry.ok()) return entry.status();
  ended = std::move((*entry)->second);
  entries_.erase(*entry);
  return absl::OkStatus();
}

absl::Time SessionStore::lease_end(const Session& session) const {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(session.name);
  return entry != entries_.end() ? entry->second.expire_time : absl::InfinitePast();
}

absl::StatusOr<Admission> SessionStore::admit(Device& device, const Session* session, std::size_t bytes) {
  if (const absl::Status room = check_room(device, session, bytes); !room.ok()) return room;
  Admission admission;
  if (session != nullptr) {
    absl::StatusOr<Reservation> quota = session->quota->reserve(bytes);
    if (!quota.ok()) return not_now(*session->quota, bytes);
    admission.session = *std::move(quota);
  }
  absl::StatusOr<Reservation> memory = device.budget()->reserve(bytes);
  if (!memory.ok()) {
    evict(device, bytes);
    memory = device.budget()->reserve(bytes);
  }
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
  const MemoryBudget& budget = *device.budget();
  std::size_t own = 0;  // what nobody but the session's owner gives back
  if (session != nullptr) {
    own = session->quota->kept_bytes();
    if (bytes > session->quota->limit_bytes() - own) return session->quota->shortage(bytes);
  }
  if (own <= budget.limit_bytes() && bytes <= budget.limit_bytes() - own) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  const std::size_t evictable = session != nullptr ? evictable_bytes(*session) : 0;
  return bytes + own <= budget.limit_bytes() + evictable ? absl::OkStatus() : budget.shortage(bytes);
}

absl::StatusOr<BufferHandle> SessionStore::add_buffer(const Session& session, NewBuffer fresh) {
  auto buffer = std::make_shared<ResidentBuffer>();
  buffer->shape = std::move(fresh.shape);
  buffer->device_bytes = std::move(fresh.admission.device);
  buffer->session_bytes = std::move(fresh.admission.session);
  buffer->memory = std::move(fresh.memory);
  buffer->head = std::move(fresh.head);
  buffer->create_time = absl::Now();
  buffer->expire_time = buffer->create_time + fresh.ttl;
  buffer->evictable = fresh.evictable;
  buffer->last_use = buffer->create_time;

  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(session.name);
  if (!entry.ok()) return entry.status();
  Entry& owner = (*entry)->second;
  if (owner.buffers.size() >= limits_.max_buffers_per_session) {
    return exhausted(session.name, absl::StrCat(session.name, " has ", limits_.max_buffers_per_session,
                                                " buffers, the limit; delete some"));
  }
  const std::uint64_t number = owner.next_buffer++;
  buffer->name = absl::StrCat(session.name, kBuffersInfix, number);
  buffer->session_bytes.set_kept(true);
  buffer->device_bytes.set_kept(true);
  owner.buffers.emplace(number, buffer);
  return buffer;
}

absl::StatusOr<BufferHandle> SessionStore::find_buffer(std::string_view name) {
  const BufferName parts = split_buffer_name(name);
  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(parts.session);
  if (!entry.ok()) return entry.status();
  const auto& buffers = (*entry)->second.buffers;
  const auto found = buffers.find(parts.number);
  if (found == buffers.end()) return missing_buffer(name);
  found->second->last_use = absl::Now();
  return found->second;
}

absl::Status SessionStore::delete_buffer(std::string_view name) {
  std::shared_ptr<ResidentBuffer> dropped;  // its memory goes after the lock
  const BufferName parts = split_buffer_name(name);
  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(parts.session);
  if (!entry.ok()) return entry.status();
  auto& buffers = (*entry)->second.buffers;
  const auto found = buffers.find(parts.number);
  if (found == buffers.end()) return missing_buffer(name);
  dropped = std::move(found->second);
  dropped->session_bytes.set_kept(false);  // calls that hold it give it back
  buffers.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<SessionStore::BufferPage> SessionStore::list_buffers(std::string_view session,
                                                                    std::size_t page_size,
                                                                    std::string_view page_token) {
  const std::uint64_t first = parse_number(page_token);
  if (!page_token.empty() && first == 0) {
    return bad_field("page_token", "is not one that ListBuffers returned; pass next_page_token as it came");
  }
  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(session);
  if (!entry.ok()) return entry.status();
  const auto& buffers = (*entry)->second.buffers;
  BufferPage page;
  auto next = buffers.lower_bound(first);
  for (; next != buffers.end() && page.buffers.size() < page_size; ++next)
    page.buffers.push_back(next->second);
  if (next != buffers.end()) page.next_page_token = absl::StrCat(next->first);
  return page;
}

void SessionStore::expire(absl::Time now) {
  std::vector<Entry> ended;  // their buffers go after the lock
  std::vector<std::shared_ptr<ResidentBuffer>> dropped;
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (has_expired(entry->second, now)) {
      remember_end(entry->first, "SESSION_EXPIRED");
      ended.push_back(std::move(entry->second));
      entry = entries_.erase(entry);
      continue;
    }
    auto& buffers = entry->second.buffers;
    for (auto buffer = buffers.begin(); buffer != buffers.end();) {
      if (buffer->second->expire_time > now) {
        ++buffer;
        continue;
      }
      remember_end(buffer->second->name, "BUFFER_EXPIRED");
      buffer->second->session_bytes.set_kept(false);
      dropped.push_back(std::move(buffer->second));
      buffer = buffers.erase(buffer);
    }
    ++entry;
  }
}

std::size_t SessionStore::session_count() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::size_t SessionStore::buffer_count() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [name, entry] : entries_) count += entry.buffers.size();
  return count;
}

absl::StatusOr<SessionStore::Entries::iterator> SessionStore::find_entry(std::string_view name) {
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return missing_session(name);
  const absl::Time now = absl::Now();
  if (has_expired(entry->second, now)) return missing_session(name);  // `expire` has not come by yet
  entry->second.expire_time = now + entry->second.session->ttl;
  return entry;
}

absl::Status SessionStore::missing_session(std::string_view name) const {
  const auto end = ends_.find(name);
  const bool expired = end != ends_.end() || entries_.find(name) != entries_.end();
  if (expired) {
    return not_found("SESSION_EXPIRED",
                     absl::StrCat(std::string(name), " has expired; create a new session and upload again"));
  }
  return not_found("SESSION_NOT_FOUND",
                   absl::StrCat("there is no session '", std::string(name),
                                "' here (sessions/{uuid}); it was deleted, or never made, or the server has "
                                "restarted: create one"));
}

absl::Status SessionStore::missing_buffer(std::string_view name) const {
  const auto end = ends_.find(name);
  if (end != ends_.end()) {
    return not_found(end->second, absl::StrCat(std::string(name),
                                               end->second == "BUFFER_EVICTED"
                                                   ? " was evicted when the device ran out of memory"
                                                   : " has expired",
                                               "; upload or compute it again"));
  }
  return not_found("BUFFER_NOT_FOUND",
                   absl::StrCat("there is no buffer '", std::string(name),
                                "' (sessions/{session}/buffers/{buffer}); it was deleted or "
                                "never made"));
}

void SessionStore::remember_end(const std::string& name, std::string_view reason) {
  if (!ends_.emplace(name, reason).second) return;
  ends_order_.push_back(name);
  if (ends_order_.size() > kRememberedEnds) {
    ends_.erase(ends_order_.front());
    ends_order_.pop_front();
  }
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

void SessionStore::evict(const Device& device, std::size_t bytes) {
  struct Candidate {
    absl::Time last_use;
    Entry* owner;
    std::uint64_t number;
  };
  std::vector<std::shared_ptr<ResidentBuffer>> dropped;  // their memory goes after the lock
  const std::lock_guard lock(mutex_);
  std::vector<Candidate> candidates;
  std::size_t free = device.budget()->limit_bytes() - device.budget()->reserved_bytes();
  std::size_t evictable = 0;
  for (auto& [name, entry] : entries_) {
    if (entry.session->slot->device.get() != &device) continue;
    for (const auto& [number, buffer] : entry.buffers) {
      if (!is_idle(buffer)) continue;
      candidates.push_back({buffer->last_use, &entry, number});
      evictable += buffer->device_bytes.bytes();
    }
  }
  if (free + evictable < bytes) return;
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.last_use < b.last_use; });
  for (const Candidate& candidate : candidates) {
    if (free >= bytes) break;
    const auto found = candidate.owner->buffers.find(candidate.number);
    free += found->second->device_bytes.bytes();
    remember_end(found->second->name, "BUFFER_EVICTED");
    dropped.push_back(std::move(found->second));
    candidate.owner->buffers.erase(found);
  }
}

}  // namespace cumulus::server
