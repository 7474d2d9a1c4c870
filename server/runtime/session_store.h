#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/runtime/alarm.h"
#include "server/runtime/array_spec.h"
#include "server/runtime/device.h"
#include "server/runtime/device_queue.h"
#include "server/runtime/memory_budget.h"
#include "server/runtime/principal.h"

namespace cumulus::server {

/// An array in the memory of a device. Immutable once it is in a session; lives as long as anybody
/// holds it, whatever becomes of its session.
struct ResidentBuffer {
  std::string name;  // sessions/{session}/buffers/{buffer}
  ArrayShape shape;
  Reservation device_bytes;  // declared before `memory`, so that memory goes first and its count after
  Reservation session_bytes;
  Reservation upkeep_bytes;  // of a small one: what its cost is more than its size
  BufferMemory memory;
  // The first kHeadBytes, or all: on the host, so that a request which names the buffer can be checked before
  // it runs (a table's header, say).
  std::vector<std::byte> head;
  absl::Time create_time;
  absl::Time expire_time = absl::InfiniteFuture();
  bool evictable = false;
  absl::Time last_use = absl::InfinitePast();  // guarded by the store
};
using BufferHandle = std::shared_ptr<const ResidentBuffer>;

/// A device and the queue of the calls that wait for it.
struct DeviceSlot {
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceQueue> queue;  // after the device, so that it ends first
};

/// A lease on one device.
struct Session {
  std::string name;  // sessions/{uuid}
  DeviceSlot* slot = nullptr;
  absl::Duration ttl;
  std::shared_ptr<MemoryBudget> quota;
  Principal owner;  // who made it
};
using SessionHandle = std::shared_ptr<const Session>;

/// Memory that a call or an upload may use, counted against its device and its session.
struct Admission {
  Reservation device;
  Reservation session;

  Admission split(std::size_t bytes) { return {device.split(bytes), session.split(bytes)}; }
};

class SessionStore;

/// A call or a transfer in a session. Move-only; the store outlives it.
class SessionUse {
 public:
  SessionUse() = default;
  SessionUse(SessionStore& store, SessionHandle session) : store_(&store), session_(std::move(session)) {}
  SessionUse(SessionUse&& other) noexcept
      : store_(std::exchange(other.store_, nullptr)), session_(std::move(other.session_)) {}
  SessionUse& operator=(SessionUse&& other) noexcept;
  ~SessionUse() { end(); }

  /// Null where there is none.
  const Session* get() const { return session_.get(); }
  void end();

 private:
  SessionStore* store_ = nullptr;
  SessionHandle session_;
};

struct SessionStoreLimits {
  std::size_t max_sessions = 0;
  std::size_t max_buffers_per_session = 0;
};

/// Who holds what. Thread-safe; nothing in it waits for a device.
class SessionStore {
 public:
  /// `alarm`: is asked for the times at which something expires.
  explicit SessionStore(const SessionStoreLimits& limits, Alarm* alarm = nullptr)
      : limits_(limits), alarm_(alarm) {}

  struct NewSession {
    std::string id;
    DeviceSlot* slot;
    absl::Duration ttl;
    std::size_t quota_bytes;
    Principal owner = {};
  };
  /// ALREADY_EXISTS, or RESOURCE_EXHAUSTED where there are max_sessions, in all or of this owner.
  absl::StatusOr<SessionHandle> create_session(const NewSession& session);
  // What is not `caller`'s is not there: the answer is that of a name which nobody has made.

  /// Renews the lease. NOT_FOUND.
  absl::StatusOr<SessionHandle> find_session(std::string_view name, const Principal& caller);
  /// As find_session; and the lease does not end before the use does.
  absl::StatusOr<SessionUse> use_session(std::string_view name, const Principal& caller);
  absl::Status delete_session(std::string_view name, const Principal& caller);
  /// When the lease ends unless it is renewed; InfinitePast where the session is gone.
  absl::Time lease_end(const Session& session) const;

  /// Reserves on the device and, where there is a session, from its quota, dropping evictable idle
  /// buffers of the device where that makes room. UNAVAILABLE where others hold too much of it now;
  /// RESOURCE_EXHAUSTED where it never fits beside the session's own buffers.
  absl::StatusOr<Admission> admit(Device& device, const Session* session, std::size_t bytes);
  /// As admit, of memory for an upload to a session. While calls run and other uploads are under way, it
  /// leaves as much again: or the inputs of many would fill the device, and no call on them could have its
  /// output.
  absl::StatusOr<Admission> admit_upload(Device& device, const Session& session, std::size_t bytes);
  /// OK where `admit` can succeed, now or later; else RESOURCE_EXHAUSTED.
  absl::Status check_room(const Device& device, const Session* session, std::size_t bytes) const;

  /// What a buffer takes of the daemon's own memory, or a little more.
  static constexpr std::size_t kBufferCost = 1024;
  struct NewBuffer {
    ArrayShape shape;
    Admission admission;  // of the memory's size
    BufferMemory memory;
    std::vector<std::byte> head;
    absl::Duration ttl = absl::InfiniteDuration();
    bool evictable = false;
  };
  /// Publishes a finished array, which takes at least kBufferCost of the session's quota. NOT_FOUND where the
  /// session has ended meanwhile, RESOURCE_EXHAUSTED where that does not fit.
  absl::StatusOr<BufferHandle> add_buffer(const Session& session, NewBuffer buffer);
  /// Renews the session's lease. NOT_FOUND, with the reason if it is still known.
  absl::StatusOr<BufferHandle> find_buffer(std::string_view name, const Principal& caller);
  /// Calls that hold the buffer keep it alive until they end.
  absl::Status delete_buffer(std::string_view name, const Principal& caller);
  /// Deletes the session's buffers of these names, each or, where one is missing and may not be, none.
  absl::Status delete_buffers(std::string_view session, const std::vector<std::string_view>& names,
                              bool allow_missing, const Principal& caller);

  struct BufferPage {
    std::vector<BufferHandle> buffers;
    std::string next_page_token;
  };
  absl::StatusOr<BufferPage> list_buffers(std::string_view session, std::size_t page_size,
                                          std::string_view page_token, const Principal& caller);

  /// Waits until there is no session, or until `deadline`.
  void wait_for_none(absl::Time deadline);
  /// Ends sessions whose lease is over and drops buffers whose time has come; takes time for these only, and
  /// lets others in between where they are many.
  void expire(absl::Time now);
  /// When the next may do so; InfiniteFuture where none does.
  absl::Time next_due() const {
    const std::lock_guard lock(mutex_);
    return due_.empty() ? absl::InfiniteFuture() : due_.begin()->first;
  }

  /// A session as it is at the moment.
  struct View {
    SessionHandle session;
    absl::Time expire_time;
    std::size_t buffers = 0;
    std::vector<BufferHandle> newest;
  };
  /// Of every session, with at most `newest` of its buffers.
  std::vector<View> views(std::size_t newest) const;
  /// How many ended without a client that wanted it, since the start.
  struct Ends {
    std::size_t buffers_evicted = 0;
    std::size_t buffers_expired = 0;
    std::size_t sessions_expired = 0;
  };
  Ends ends() const;

  std::size_t session_count() const;
  /// Sessions on that device.
  std::size_t session_count(const DeviceSlot& slot) const;
  std::size_t buffer_count() const;

 private:
  struct Entry {
    std::shared_ptr<Session> session;
    absl::Time expire_time;  // where there are no uses
    absl::Time due;          // where it stands in due_: renewals do not move it
    std::size_t uses = 0;
    std::uint64_t next_buffer = 1;
    std::map<std::uint64_t, std::shared_ptr<ResidentBuffer>> buffers;  // by creation
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  struct Candidate {
    absl::Time last_use;
    Entry* owner;
    std::uint64_t number;
  };
  using Dropped = std::vector<std::shared_ptr<ResidentBuffer>>;  // their memory goes after the lock

  friend class SessionUse;

  static bool has_expired(const Entry& entry, absl::Time now) {
    return entry.uses == 0 && entry.expire_time <= now;
  }
  void end_use(const SessionHandle& session);
  absl::StatusOr<Entries::iterator> find_entry(std::string_view name, const Principal& caller);
  absl::Status missing_session(std::string_view name) const;
  static absl::Status unknown_session(std::string_view name);
  absl::Status missing_buffer(std::string_view name) const;
  void remember_end(const std::string& name, std::string_view reason);
  void add_due(absl::Time time, const std::string& name) {
    due_.emplace(time, name);
    if (alarm_ != nullptr) alarm_->ask(time);
  }
  /// Takes the session out; forget_due, without the lock, takes out what refers to its buffers.
  Entry remove(Entries::iterator entry);
  void forget_due(const Entry& removed);
  /// A part of what is due; true where more is.
  bool expire_some(absl::Time now);
  void expire_session(Entries::iterator entry, absl::Time now, std::vector<Entry>& ended);
  void expire_buffer(Entry& entry, std::uint64_t number, absl::Time time, Dropped& dropped);
  /// Drop the least recently used idle evictable buffers, of `device` or of `session` alone, until `bytes`
  /// could fit; true where that suffices, and else nothing is dropped.
  bool evict(const Device& device, std::size_t bytes);
  bool evict_own(const Session& session, std::size_t bytes);
  void add_candidates(Entry& entry, std::vector<Candidate>& candidates);
  bool drop(std::vector<Candidate> candidates, const MemoryBudget& budget, std::size_t bytes,
            Dropped& dropped);
  /// Bytes of the session's idle evictable buffers.
  std::size_t evictable_bytes(const Session& session) const;
  static bool is_idle(const std::shared_ptr<ResidentBuffer>& buffer);

  const SessionStoreLimits limits_;
  Alarm* const alarm_;
  mutable std::mutex mutex_;
  std::condition_variable none_;
  Entries entries_;
  std::map<std::string, std::size_t> sessions_of_;  // by their owners' names
  std::map<const DeviceSlot*, std::size_t> sessions_on_;
  // When to look at a session, or at a buffer that does not last for ever; by name.
  std::set<std::pair<absl::Time, std::string>> due_;
  // Why sessions and buffers that are gone are gone, for the most recent of them.
  std::map<std::string, std::string, std::less<>> ends_;
  std::deque<std::string> ends_order_;
  Ends end_counts_;
};

}  // namespace cumulus::server
