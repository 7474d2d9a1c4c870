#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "proto/shared_memory.h"
#include "server/runtime/descriptor.h"
#include "server/runtime/principal.h"
#include "server/runtime/runtime.h"
#include "server/runtime/shared_memory/region.h"
#include "server/runtime/shared_memory/region_calls.h"
#include "server/runtime/shared_memory/region_shares.h"
#include "server/runtime/shared_memory/spare_ring.h"

namespace cumulus::server {

/// The transfer that uses a ring. All of this is called on the link's thread.
class RingUser {
 public:
  virtual ~RingUser() = default;
  /// The client has filled a slot, or freed one. An error where that cannot be: the link is closed.
  virtual absl::Status take(const SharedMemoryMessage& message) = 0;
  /// The link is at its end, and says nothing more.
  virtual void hung_up(const absl::Status& why) = 0;
};

/// A client's connection for one region, with whose end the region goes.
class SharedLink : public std::enable_shared_from_this<SharedLink> {
 public:
  SharedLink(Descriptor socket, RegionShares::Share share);
  SharedLink(const SharedLink&) = delete;
  SharedLink& operator=(const SharedLink&) = delete;

  /// Makes the region that the client asks for, and says its id; empty where it asks for none, or none can be
  /// had, which it is then answered. Blocks until it asks, for some seconds at most.
  std::string open(RegionShares& shares, SpareRing& spare, Runtime& runtime);
  /// Takes what the client says until it hangs up, or this end does. `calls` begins transfers.
  void serve(RegionCalls& calls);
  const Descriptor& socket() const { return socket_; }
  /// Refuses the client, which has no region, with the reason.
  void refuse(std::string_view why);
  /// From any thread: ends serve().
  void close();

  /// Null once the link has ended.
  std::shared_ptr<SharedRegion> region() const;

  /// NOT_FOUND where the region is another caller's; the first that asks has it.
  absl::Status bind(const Principal& caller);
  /// Who that is; empty where nobody has asked.
  std::optional<Principal> owner() const;
  /// The id of a region that the client says is of the same caller; before serve().
  const std::string& like() const { return like_; }
  /// FAILED_PRECONDITION where a transfer uses the ring.
  absl::Status attach(std::shared_ptr<RingUser> user);
  /// `reusable`: the client has all slots. Else the ring cannot be used any more.
  void detach(bool reusable);
  /// Does not wait: a client that reads nothing is cut off.
  void send(const SharedMemoryMessage& message, std::string_view text = {});

 private:
  /// The region that the client's first message asks for.
  absl::StatusOr<std::shared_ptr<SharedRegion>> make_region(const SharedMemoryMessage& want,
                                                            RegionShares& shares, SpareRing& spare,
                                                            Runtime& runtime);
  absl::StatusOr<std::shared_ptr<SharedRegion>> make_device_region(const SharedMemoryMessage& want,
                                                                   RegionShares& shares, Runtime& runtime);
  bool send_region(const SharedRegion& region);
  /// OK where the client has hung up.
  absl::Status take_messages(RegionCalls& calls);
  absl::Status take_message(RegionCalls& calls, const SharedMemoryMessage& message, std::string_view text);
  absl::Status take_call(RegionCalls& calls, RegionCalls::Asked asked);
  /// Of a KNOCK: null where none begins.
  std::shared_ptr<EarlyCopy> begin_early(RegionCalls& calls, std::size_t bytes) const;
  /// The copy that began, where `message` is the CALL for it; any other ends its wait.
  std::shared_ptr<EarlyCopy> take_early(const SharedMemoryMessage& message);
  /// Lets a copy go whose CALL does not come soon.
  void wait_for_its_call();

  const Descriptor socket_;
  RegionShares::Share share_;  // until there is a region
  bool sends_calls_ = false;   // the client, as it said first of all
  std::string like_;           // likewise: the id of a region whose caller this one's is
  // Of the thread in serve(): what began at the last message, a KNOCK; whether another did for nothing.
  std::shared_ptr<EarlyCopy> early_;
  bool knocked_in_vain_ = false;
  mutable std::mutex mutex_;  // of what follows
  std::shared_ptr<SharedRegion> region_;
  std::optional<Principal> owner_;
  std::shared_ptr<RingUser> user_;
  bool closed_ = false;
};

}  // namespace cumulus::server
