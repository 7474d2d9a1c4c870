#include "server/runtime/shared_memory/link.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "proto/brief_look.h"
#include "proto/cores.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/shared_memory/early_copy.h"

namespace cumulus::server {
namespace {

constexpr int kSecondsToAsk = 5;
/// What a client that sends CALL is told of.
constexpr std::uint64_t kTakesAll =
    kRegionTakesCalls | kRegionTakesGifts | kRegionTakesKnocks | kRegionTakesEarlyCopies;

void limit_wait(int socket, int seconds) {
  const timeval limit{.tv_sec = seconds, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

/// What a client says, and the text of a CALL.
struct Said {
  SharedMemoryMessage message;
  std::array<char, kMaxSharedMemoryCall> text;
  std::size_t text_bytes = 0;
};

/// What may have a text.
constexpr bool has_text(std::uint32_t kind) {
  return kind == SharedMemoryMessage::kCall || kind == SharedMemoryMessage::kRing ||
         kind == SharedMemoryMessage::kArray;
}

/// False where there is none any more. A message of another size is one that says nothing right: kind 0.
bool receive(int socket, Said& said) {
  std::array<iovec, 2> parts{iovec{&said.message, sizeof(said.message)},
                             iovec{said.text.data(), said.text.size()}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  ssize_t size = 0;
  do {
    size = ::recvmsg(socket, &header, MSG_TRUNC);
  } while (size < 0 && errno == EINTR);
  if (size <= 0) return false;
  const auto bytes = static_cast<std::size_t>(size);
  said.text_bytes = bytes - std::min(bytes, sizeof(said.message));
  if (bytes < sizeof(said.message) ||
      said.text_bytes > (has_text(said.message.kind) ? said.text.size() : 0)) {
    said.message = {};
    said.text_bytes = 0;
  }
  return true;
}

/// Where one message has come, the next is near: that of a piece, or the CALL after a KNOCK.
void look_for_the_next(int socket) {
  constexpr std::chrono::microseconds kBriefly{400};
  static std::atomic<bool> somebody_looks = false;
  const BriefLook look(has_many_cores(), somebody_looks, kBriefly);
  pollfd entry{socket, POLLIN, 0};
  while (look.goes_on() && ::poll(&entry, 1, 0) == 0) continue;
}

/// Of GPU memory, whole granules. Empty where no device has as many.
std::optional<std::size_t> whole_granules(std::uint64_t bytes) {
  std::size_t rounded = 0;
  if (bytes == 0 || __builtin_add_overflow(bytes, kExportedGranularity - 1, &rounded)) return std::nullopt;
  return rounded / kExportedGranularity * kExportedGranularity;
}

}  // namespace

SharedLink::SharedLink(Descriptor socket, RegionShares::Share share)
    : socket_(std::move(socket)), share_(std::move(share)) {}

std::string SharedLink::open(RegionShares& shares, SpareRing& spare, Runtime& runtime) {
  limit_wait(socket_.number(), kSecondsToAsk);
  Said said;
  if (!receive(socket_.number(), said)) return {};
  const SharedMemoryMessage& message = said.message;
  sends_calls_ = message.kind != SharedMemoryMessage::kDevice && (message.offset & kRegionTakesCalls) != 0;
  like_ = std::string(said.text.data(), said.text_bytes);
  limit_wait(socket_.number(), 0);
  absl::StatusOr<std::shared_ptr<SharedRegion>> region = make_region(message, shares, spare, runtime);
  if (!region.ok()) {
    refuse(to_std_view(region.status().message()));
    return {};
  }
  const std::lock_guard lock(mutex_);
  region_ = *std::move(region);
  return region_->id();
}

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedLink::make_region(const SharedMemoryMessage& want,
                                                                      RegionShares& shares, SpareRing& spare,
                                                                      Runtime& runtime) {
  using Kind = SharedRegion::Kind;
  if (want.kind == SharedMemoryMessage::kDevice && want.bytes > 0)
    return make_device_region(want, shares, runtime);
  const bool ring = want.kind == SharedMemoryMessage::kRing;
  if (!ring && (want.kind != SharedMemoryMessage::kArray || want.bytes == 0)) {
    return bad_request(
        "UNEXPECTED_DOORBELL",
        concat("the first message is of kind ", want.kind, " and ", want.bytes,
               " bytes; RING (1), ARRAY (2) or DEVICE (8) comes first, the latter of at least a byte"));
  }
  const std::size_t bytes = ring ? kSharedSlots * kSharedSlotBytes : want.bytes;
  if (const absl::Status room = shares.set_bytes(share_, bytes); !room.ok()) return room;
  if (std::shared_ptr<SharedRegion> kept = ring ? spare.take() : nullptr; kept != nullptr) {
    kept->count_in(std::move(share_));
    return kept;
  }
  return SharedRegion::create(ring ? Kind::kRing : Kind::kArray, bytes, runtime.devices, std::move(share_));
}

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedLink::make_device_region(const SharedMemoryMessage& want,
                                                                             RegionShares& shares,
                                                                             Runtime& runtime) {
  const std::size_t bytes = whole_granules(want.bytes).value_or(std::numeric_limits<std::size_t>::max());
  if (const absl::Status room = shares.set_device_bytes(share_, bytes); !room.ok()) return room;
  const std::string name = concat("cuda", want.slot);
  const DeviceSlot* const slot = runtime.find_device(name);
  if (slot == nullptr) {
    return no_answer("NO_DEVICE_MEMORY",
                     concat("this server has no device ", name, ", whose memory could be shared; ",
                            runtime.devices.front().device->name(), " is one that it has (--backend cuda)"));
  }
  absl::StatusOr<Admission> counted = runtime.sessions.admit(*slot->device, nullptr, bytes);
  if (!counted.ok()) return counted.status();
  counted->device.set_kept(true);  // until the client hangs up
  return SharedRegion::create_on(*slot->device, bytes, std::move(counted->device), std::move(share_));
}

void SharedLink::refuse(std::string_view why) {
  share_ = {};
  std::array<char, sizeof(SharedMemoryMessage) + kMaxSharedMemoryText> text{};
  const SharedMemoryMessage head{.kind = SharedMemoryMessage::kRefused};
  const std::size_t size = std::min(why.size(), kMaxSharedMemoryText);
  std::memcpy(text.data(), &head, sizeof(head));
  std::memcpy(text.data() + sizeof(head), why.data(), size);
  (void)::send(socket_.number(), text.data(), sizeof(head) + size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool SharedLink::send_region(const SharedRegion& region) {
  SharedMemoryMessage head{.kind = SharedMemoryMessage::kRegion,
                           .offset = (region.freezes() ? kRegionIsTaken : 0) |
                                     (sends_calls_ ? kTakesAll : 0) |
                                     (owner().has_value() ? kRegionIsKnown : 0),
                           .bytes = region.bytes()};
  if (region.kind() == SharedRegion::Kind::kRing) head.slot = kSharedSlots;
  std::string id = region.id();
  std::array<iovec, 2> parts{iovec{&head, sizeof(head)}, iovec{id.data(), id.size()}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int descriptor = region.descriptor();
  std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(descriptor));
  return ::sendmsg(socket_.number(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

void SharedLink::serve(RegionCalls& calls) {
  const std::shared_ptr<SharedRegion> mine = region();
  absl::Status end = absl::CancelledError("the client closed the connection of its shared memory");
  if (send_region(*mine)) {
    if (const absl::Status wrong = take_messages(calls); !wrong.ok()) {
      spdlog::info("shared memory: a client's connection is closed: {}", std::string(wrong.message()));
      end = wrong;
    }
  }
  early_.reset();
  std::shared_ptr<RingUser> user;
  bool kept = false;
  {
    const std::lock_guard lock(mutex_);
    user = std::exchange(user_, nullptr);
    region_.reset();
    // Where this end hung up, an array is still its client's.
    kept = closed_ && mine->kind() == SharedRegion::Kind::kArray;
  }
  close();
  if (user != nullptr) user->hung_up(end);
  if (!kept) mine->discard();
}

absl::Status SharedLink::take_messages(RegionCalls& calls) {
  Said said;
  while (receive(socket_.number(), said)) {
    if (absl::Status taken = take_message(calls, said.message, {said.text.data(), said.text_bytes});
        !taken.ok())
      return taken;
    look_for_the_next(socket_.number());
    wait_for_its_call();
  }
  return absl::OkStatus();
}

absl::Status SharedLink::take_message(RegionCalls& calls, const SharedMemoryMessage& message,
                                      std::string_view text) {
  std::shared_ptr<EarlyCopy> early = take_early(message);
  std::shared_ptr<RingUser> user;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return absl::OkStatus();
    user = user_;
  }
  if (message.kind == SharedMemoryMessage::kKnock) {
    if (user == nullptr) early_ = begin_early(calls, message.bytes);
    return absl::OkStatus();
  }
  if (user != nullptr) return user->take(message);
  if (message.kind == SharedMemoryMessage::kCall) return take_call(calls, {message, text, std::move(early)});
  // One that comes when the transfer has just ended.
  if (message.kind == SharedMemoryMessage::kCancel) return absl::OkStatus();
  return bad_request("UNEXPECTED_DOORBELL",
                     concat("a message of kind ", message.kind, " came outside of a transfer"));
}

std::shared_ptr<EarlyCopy> SharedLink::begin_early(RegionCalls& calls, std::size_t bytes) const {
  const std::optional<Principal> owner = this->owner();
  if (bytes == 0 || knocked_in_vain_ || !sends_calls_ || !owner.has_value()) return nullptr;
  return calls.begin_early(region(), *owner, bytes);
}

std::shared_ptr<EarlyCopy> SharedLink::take_early(const SharedMemoryMessage& message) {
  std::shared_ptr<EarlyCopy> early = std::exchange(early_, nullptr);
  if (early == nullptr) return nullptr;
  if (message.kind == SharedMemoryMessage::kCall &&
      message.slot == static_cast<std::uint32_t>(SharedMemoryCall::kWriteKnocked))
    return early;
  knocked_in_vain_ = true;
  return nullptr;
}

void SharedLink::wait_for_its_call() {
  constexpr int kMilliseconds = 1000;  // far more than a client takes that does call
  pollfd entry{socket_.number(), POLLIN, 0};
  if (early_ == nullptr || ::poll(&entry, 1, kMilliseconds) != 0) return;
  early_.reset();
  knocked_in_vain_ = true;
}

absl::Status SharedLink::take_call(RegionCalls& calls, RegionCalls::Asked asked) {
  const std::optional<Principal> owner = this->owner();
  if (!sends_calls_ || !owner.has_value()) {
    return bad_request("UNEXPECTED_DOORBELL",
                       "a CALL came, of which the first message did not tell, or before a call of gRPC's had "
                       "named the region");
  }
  return calls.begin(shared_from_this(), *owner, std::move(asked));
}

void SharedLink::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  ::shutdown(socket_.number(), SHUT_RDWR);
}

std::shared_ptr<SharedRegion> SharedLink::region() const {
  const std::lock_guard lock(mutex_);
  return region_;
}

absl::Status SharedLink::bind(const Principal& caller) {
  const std::lock_guard lock(mutex_);
  if (!owner_) owner_ = caller;
  if (region_ != nullptr && may_use(*owner_, caller)) return absl::OkStatus();
  return not_found("REGION_NOT_FOUND", "there is no shared region of this id: ask for a new one");
}

std::optional<Principal> SharedLink::owner() const {
  const std::lock_guard lock(mutex_);
  return owner_;
}

absl::Status SharedLink::attach(std::shared_ptr<RingUser> user) {
  const std::lock_guard lock(mutex_);
  if (closed_ || region_ == nullptr)
    return not_found("REGION_NOT_FOUND", "the connection of this shared region is closed: ask for a new one");
  if (user_ != nullptr)
    return no_answer("REGION_BUSY",
                     "another transfer uses this ring; one may at a time: ask for another ring");
  user_ = std::move(user);
  return absl::OkStatus();
}

void SharedLink::detach(bool reusable) {
  {
    const std::lock_guard lock(mutex_);
    user_.reset();
  }
  if (!reusable) close();
}

void SharedLink::send(const SharedMemoryMessage& message, std::string_view text) {
  std::array<iovec, 2> parts{iovec{const_cast<SharedMemoryMessage*>(&message), sizeof(message)},
                             iovec{const_cast<char*>(text.data()), text.size()}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = text.empty() ? 1 : parts.size();
  if (::sendmsg(socket_.number(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) close();
}

}  // namespace cumulus::server
