#include "server/runtime/session_store.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>

#include "proto/steady_time.h"
#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

constexpr std::size_t kRememberedEnds = 4096;
// How much is done under the lock while others wait for it, and what they have between.
constexpr std::size_t kAtOnce = 256;
constexpr std::chrono::microseconds kBreather(200);
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
  if (entries_.contains(name)) {
    return absl::AlreadyExistsError(absl::StrCat(name, " exists already; make a new UUID for every session"));
  }
  if (entries_.size() >= limits_.max_sessions) {
    return exhausted("server:sessions", absl::StrCat("the server has ", limits_.max_sessions,
                                                     " sessions, its limit (limits.max_sessions); delete one "
                                                     "or let one expire"));
  }
  const auto own = sessions_of_.find(session.owner.name);
  if (own != sessions_of_.end() && own->second >= session.owner.limits.max_sessions) {
    return exhausted(absl::StrCat("principal:", session.owner.name, ":max_sessions"),
                     absl::StrCat("this client has ", own->second,
                                  " sessions, its limit (max_sessions); delete one or let one expire"));
  }
  Entry entry;
  entry.session = std::make_shared<Session>(Session{
      name, session.slot, session.ttl, MemoryBudget::create(name, session.quota_bytes), session.owner});
  entry.expire_time = steady_now() + session.ttl;
  entry.due = entry.expire_time;
  add_due(entry.due, name);
  ++sessions_of_[session.owner.name];
  ++sessions_on_[session.slot];
  SessionHandle handle = entry.session;
  entries_.emplace(name, std::move(entry));
  return handle;
}

absl::StatusOr<SessionHandle> SessionStore::find_session(std::string_view name, const Principal& caller) {
  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(name, caller);
  if (!entry.ok()) return entry.status();
  return (*entry)->second.session;
}

absl::StatusOr<SessionUse> SessionStore::use_session(std::string_view name, const Principal& caller) {
  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(name, caller);
  if (!entry.ok()) return entry.status();
  ++(*entry)->second.uses;
  return SessionUse(*this, (*entry)->second.session);
}

void SessionStore::end_use(const SessionHandle& session) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(session->name);
  if (entry == entries_.end() || entry->second.session != session) return;  // it was deleted
  Entry& owner = entry->second;
  --owner.uses;
  owner.expire_time = steady_now() + session->ttl;
  if (owner.due <= owner.expire_time) return;
  due_.erase({owner.due, entry->first});
  owner.due = owner.expire_time;
  add_due(owner.due, entry->first);
}

absl::Status SessionStore::delete_session(std::string_view name, const Principal& caller) {
  Entry ended;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = find_entry(name, caller);
    if (!entry.ok()) return entry.status();
    ended = remove(*entry);
  }
  forget_due(ended);
  return absl::OkStatus();  // its buffers go without the lock
}

SessionStore::Entry SessionStore::remove(Entries::iterator entry) {
  Entry removed = std::move(entry->second);
  due_.erase({removed.due, entry->first});
  const auto own = sessions_of_.find(removed.session->owner.name);
  if (--own->second == 0) sessions_of_.erase(own);
  --sessions_on_[removed.session->slot];
  entries_.erase(entry);
  if (entries_.empty()) none_.notify_all();
  return removed;
}

void SessionStore::forget_due(const Entry& removed) {
  for (auto next = removed.buffers.begin(); next != removed.buffers.end();) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < kAtOnce && next != removed.buffers.end(); ++i, ++next) {
      const ResidentBuffer& buffer = *next->second;
      if (buffer.expire_time != absl::InfiniteFuture()) due_.erase({buffer.expire_time, buffer.name});
    }
  }
}

void SessionStore::wait_for_none(absl::Time deadline) {
  std::unique_lock lock(mutex_);
  none_.wait_for(lock, absl::ToChronoNanoseconds(deadline - steady_now()),
                 [this] { return entries_.empty(); });
}

absl::Time SessionStore::lease_end(const Session& session) const {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(session.name);
  return entry != entries_.end() ? entry->second.expire_time : absl::InfinitePast();
}

absl::StatusOr<BufferHandle> SessionStore::add_buffer(const Session& session, NewBuffer fresh) {
  auto buffer = std::make_shared<ResidentBuffer>();
  buffer->shape = std::move(fresh.shape);
  buffer->device_bytes = std::move(fresh.admission.device);
  buffer->session_bytes = std::move(fresh.admission.session);
  buffer->memory = std::move(fresh.memory);
  buffer->head = std::move(fresh.head);
  buffer->create_time = steady_now();
  buffer->expire_time = buffer->create_time + fresh.ttl;
  buffer->evictable = fresh.evictable;
  buffer->last_use = buffer->create_time;

  if (buffer->session_bytes.bytes() < kBufferCost) {
    absl::StatusOr<Reservation> rest = session.quota->reserve(kBufferCost - buffer->session_bytes.bytes());
    if (!rest.ok()) return rest.status();
    buffer->upkeep_bytes = *std::move(rest);
  }
  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(session.name, session.owner);
  if (!entry.ok()) return entry.status();
  Entry& owner = (*entry)->second;
  if (owner.buffers.size() >= limits_.max_buffers_per_session) {
    return exhausted(session.name,
                     absl::StrCat(session.name, " has ", limits_.max_buffers_per_session,
                                  " buffers, the limit (max_buffers_per_session); delete some"));
  }
  const std::uint64_t number = owner.next_buffer++;
  buffer->name = absl::StrCat(session.name, kBuffersInfix, number);
  buffer->session_bytes.set_kept(true);
  buffer->device_bytes.set_kept(true);
  owner.buffers.emplace(number, buffer);
  if (buffer->expire_time != absl::InfiniteFuture()) add_due(buffer->expire_time, buffer->name);
  return buffer;
}

absl::StatusOr<BufferHandle> SessionStore::find_buffer(std::string_view name, const Principal& caller) {
  const BufferName parts = split_buffer_name(name);
  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(parts.session, caller);
  if (!entry.ok()) return entry.status();
  const auto& buffers = (*entry)->second.buffers;
  const auto found = buffers.find(parts.number);
  if (found == buffers.end()) return missing_buffer(name);
  found->second->last_use = steady_now();
  return found->second;
}

absl::Status SessionStore::delete_buffer(std::string_view name, const Principal& caller) {
  return delete_buffers(split_buffer_name(name).session, {name}, false, caller);
}

absl::Status SessionStore::delete_buffers(std::string_view session,
                                          const std::vector<std::string_view>& names, bool allow_missing,
                                          const Principal& caller) {
  Dropped dropped;  // its memory goes after the lock
  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(session, caller);
  if (!entry.ok()) return entry.status();
  auto& buffers = (*entry)->second.buffers;
  for (const std::string_view name : names) {
    if (!allow_missing && !buffers.contains(split_buffer_name(name).number)) return missing_buffer(name);
  }
  for (const std::string_view name : names) {
    const auto found = buffers.find(split_buffer_name(name).number);
    if (found == buffers.end()) continue;
    found->second->session_bytes.set_kept(false);  // calls that hold it give it back
    due_.erase({found->second->expire_time, found->second->name});
    dropped.push_back(std::move(found->second));
    buffers.erase(found);
  }
  return absl::OkStatus();
}

absl::StatusOr<SessionStore::BufferPage> SessionStore::list_buffers(std::string_view session,
                                                                    std::size_t page_size,
                                                                    std::string_view page_token,
                                                                    const Principal& caller) {
  const std::uint64_t first = parse_number(page_token);
  if (!page_token.empty() && first == 0) {
    return bad_field("page_token", "is not one that ListBuffers returned; pass next_page_token as it came");
  }
  const std::lock_guard lock(mutex_);
  const auto entry = find_entry(session, caller);
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
  while (expire_some(now)) std::this_thread::sleep_for(kBreather);
}

bool SessionStore::expire_some(absl::Time now) {
  std::vector<Entry> ended;
  Dropped dropped;  // whose memory goes without the lock
  std::unique_lock lock(mutex_);
  const auto any_due = [&] { return !due_.empty() && due_.begin()->first <= now; };
  for (std::size_t i = 0; i < kAtOnce && any_due(); ++i) {
    const auto [time, name] = std::move(due_.extract(due_.begin()).value());
    const BufferName parts = split_buffer_name(name);
    const auto entry = entries_.find(parts.session);
    if (entry == entries_.end()) continue;
    if (parts.number == 0) {
      expire_session(entry, now, ended);
    } else {
      expire_buffer(entry->second, parts.number, time, dropped);
    }
  }
  const bool more = any_due();
  lock.unlock();
  for (const Entry& session : ended) forget_due(session);
  return more;
}

void SessionStore::expire_session(Entries::iterator entry, absl::Time now, std::vector<Entry>& ended) {
  Entry& session = entry->second;
  if (has_expired(session, now)) {
    remember_end(entry->first, "SESSION_EXPIRED");
    ++end_counts_.sessions_expired;
    ended.push_back(remove(entry));
    return;
  }
  // It was renewed; a use renews it at its end.
  session.due = session.uses > 0 ? now + session.session->ttl : session.expire_time;
  add_due(entry->second.due, entry->first);
}

void SessionStore::expire_buffer(Entry& entry, std::uint64_t number, absl::Time time, Dropped& dropped) {
  const auto found = entry.buffers.find(number);
  if (found == entry.buffers.end() || found->second->expire_time != time) return;
  remember_end(found->second->name, "BUFFER_EXPIRED");
  ++end_counts_.buffers_expired;
  found->second->session_bytes.set_kept(false);  // calls that hold it give it back
  dropped.push_back(std::move(found->second));
  entry.buffers.erase(found);
}

std::vector<SessionStore::View> SessionStore::views(std::size_t newest) const {
  std::vector<View> views;
  const std::lock_guard lock(mutex_);
  views.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) {
    View& view = views.emplace_back(View{entry.session, entry.expire_time, entry.buffers.size(), {}});
    for (auto buffer = entry.buffers.rbegin(); buffer != entry.buffers.rend() && view.newest.size() < newest;
         ++buffer)
      view.newest.push_back(buffer->second);
  }
  return views;
}

SessionStore::Ends SessionStore::ends() const {
  const std::lock_guard lock(mutex_);
  return end_counts_;
}

std::size_t SessionStore::session_count() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::size_t SessionStore::session_count(const DeviceSlot& slot) const {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_on_.find(&slot);
  return found != sessions_on_.end() ? found->second : 0;
}

std::size_t SessionStore::buffer_count() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [name, entry] : entries_) count += entry.buffers.size();
  return count;
}

absl::StatusOr<SessionStore::Entries::iterator> SessionStore::find_entry(std::string_view name,
                                                                         const Principal& caller) {
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return missing_session(name);
  if (!may_use(entry->second.session->owner, caller)) return unknown_session(name);
  const absl::Time now = steady_now();
  if (has_expired(entry->second, now)) return missing_session(name);  // `expire` has not come by yet
  entry->second.expire_time = now + entry->second.session->ttl;
  return entry;
}

absl::Status SessionStore::missing_session(std::string_view name) const {
  const auto end = ends_.find(name);
  const bool expired = end != ends_.end() || entries_.contains(name);
  if (expired) {
    return not_found("SESSION_EXPIRED",
                     absl::StrCat(std::string(name), " has expired; create a new session and upload again"));
  }
  return unknown_session(name);
}

absl::Status SessionStore::unknown_session(std::string_view name) {
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

}  // namespace cumulus::server
