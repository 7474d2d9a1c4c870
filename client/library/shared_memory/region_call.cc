#include "library/shared_memory/region_call.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "cumulus/errors.h"
#include "google/rpc/status.pb.h"
#include "library/outage.h"
#include "library/wire.h"
#include "proto/steady_time.h"

namespace cumulus {
namespace {

/// What an ANSWER says.
absl::StatusOr<std::string> answer_of(const SharedMemoryMessage& message, std::string_view text) {
  if (message.slot == 0) return std::string(text);
  google::rpc::Status details;
  (void)details.ParseFromArray(text.data(), static_cast<int>(text.size()));
  return wire::status_from_grpc(
      {static_cast<grpc::StatusCode>(message.slot), details.message(), std::string(text)});
}

constexpr const char* method_of(SharedMemoryCall what) {
  return what == SharedMemoryCall::kWrite ? "/cumulus.v1.SharedMemory/WriteShared"
                                          : "/cumulus.v1.SharedMemory/ReadShared";
}

}  // namespace

RegionCall::RegionCall(Connection& connection, const SharedRegion& region)
    : connection_(connection), region_(region), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

RegionCall::~RegionCall() {
  if (wake_ >= 0) ::close(wake_);
}

void RegionCall::expect_copy(std::size_t bytes) {
  constexpr std::size_t kBytesPerMicrosecond = 40'000;  // over a GPU's bus
  constexpr std::chrono::microseconds kMost{2000};
  looks_for_ = std::min(kMost, BriefWait::kBriefly + std::chrono::microseconds(bytes / kBytesPerMicrosecond));
}

void RegionCall::start(v1::WriteSharedRequest request, const CallOptions& options,
                       const CallContext& context) {
  start(SharedMemoryCall::kWrite, std::move(request), options, context);
}

void RegionCall::start(v1::ReadSharedRequest request, const CallOptions& options,
                       const CallContext& context) {
  start(SharedMemoryCall::kRead, std::move(request), options, context);
}

template <class Request>
void RegionCall::start(SharedMemoryCall what, Request request, const CallOptions& options,
                       const CallContext& context) {
  if (region_.takes_calls() && connection_.shows_nothing()) {
    const std::string text = request.SerializeAsString();
    if (text.size() <= kMaxSharedMemoryCall) return call_over_region(what, text, options);
  }
  request.set_region(region_.id());
  connection_.call(
      method_of(what), wire::serialize(request), options, context,
      [self = shared_from_this()](const absl::StatusOr<grpc::ByteBuffer>& answer) {
        self->end(answer.ok() ? absl::StatusOr<std::string>(wire::text_of(*answer)) : answer.status());
      });
}

void RegionCall::call_over_region(SharedMemoryCall what, std::string_view request,
                                  const CallOptions& options) {
  over_region_ = true;
  if (what == SharedMemoryCall::kWrite && knocked_) what = SharedMemoryCall::kWriteKnocked;
  if (what == SharedMemoryCall::kRead && region_.takes_gifts()) {
    what = SharedMemoryCall::kReadGiven;
    gave_ = true;
  }
  deadline_ = connection_.deadline(options);
  scope_ = CancellationScope(options.cancellation, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->cancel();
  });
  const absl::Duration left = std::max(deadline_ - steady_now(), absl::ZeroDuration());
  const bool sent = region_.send({.kind = SharedMemoryMessage::kCall,
                                  .slot = static_cast<std::uint32_t>(what),
                                  .offset = static_cast<std::uint64_t>(absl::ToInt64Nanoseconds(left))},
                                 request);
  if (!sent) end(absl::UnavailableError("the connection of the shared memory is gone"));
}

void RegionCall::cancel() {
  cancelled_ = true;
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof(one));
}

bool RegionCall::wait_until_begun() {
  if (gave_) return true;
  const std::lock_guard lock(begin_mutex_);
  if (begun_) return true;
  const std::optional<SharedMemoryMessage> message = next();
  begun_ = message.has_value() && message->kind == SharedMemoryMessage::kBegin;
  return begun_;
}

bool RegionCall::begun() {
  const std::unique_lock lock(begin_mutex_, std::try_to_lock);
  return lock.owns_lock() && begun_;
}

std::optional<SharedMemoryMessage> RegionCall::next_now() {
  SharedMemoryMessage message;
  bool nothing = false;
  if (receive(message, nothing)) return message;
  return std::nullopt;
}

std::optional<SharedMemoryMessage> RegionCall::next() {
  return next(Until::kStopped, absl::InfiniteFuture());
}

std::optional<SharedMemoryMessage> RegionCall::next(Until until, absl::Time limit) {
  std::optional<BriefWait> soon;
  while (true) {
    // Before the look: what was sent before the call's end is there then.
    const bool last = until == Until::kStopped ? stopped_ : answered_;
    SharedMemoryMessage message;
    bool nothing = false;
    if (receive(message, nothing)) return message;
    if (!nothing || last) return std::nullopt;
    if (over_region_) look_at_the_clock();
    if (!soon.has_value()) soon.emplace(looks_for_);
    if (steady_now() >= limit) return std::nullopt;
    if (soon->goes_on()) continue;
    std::array<pollfd, 2> entries{pollfd{region_.socket(), POLLIN, 0}, pollfd{wake_, POLLIN, 0}};
    (void)::poll(entries.data(), entries.size(), poll_milliseconds(limit));
  }
}

bool RegionCall::receive(SharedMemoryMessage& message, bool& nothing) {
  std::array<char, sizeof(SharedMemoryMessage) + kMaxSharedMemoryCall> said;  // NOLINT: filled below
  const ssize_t size = ::recv(region_.socket(), said.data(), said.size(), MSG_DONTWAIT);
  nothing = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  if (size < static_cast<ssize_t>(sizeof(message))) {
    if (over_region_ && !nothing)
      end(absl::UnavailableError("the server closed the shared memory's connection"));
    return false;
  }
  std::memcpy(&message, said.data(), sizeof(message));
  if (message.kind != SharedMemoryMessage::kAnswer) return true;
  nothing = true;
  if (message.offset == kAnswerOfNothing) ended_before_begin_ = true;
  if (over_region_)
    end(answer_of(message,
                  {said.data() + sizeof(message), static_cast<std::size_t>(size) - sizeof(message)}));
  return false;
}

void RegionCall::look_at_the_clock() {
  if (cancelled_) {
    give_up(absl::CancelledError("the transfer was cancelled"));
  } else if (steady_now() >= deadline_) {
    give_up(absl::DeadlineExceededError("the deadline passed before the transfer was complete"));
  }
}

int RegionCall::poll_milliseconds(absl::Time limit) const {
  const absl::Time until = over_region_ ? std::min(deadline_, limit) : limit;
  if (until == absl::InfiniteFuture()) return -1;
  const absl::Duration left = std::clamp(until - steady_now(), absl::ZeroDuration(), absl::Hours(1));
  return static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
}

void RegionCall::give_up(const absl::Status& why) {
  if (answered_) return;
  given_up_ = true;
  (void)send(SharedMemoryMessage::kCancel, 0, 0, 0);
  end(why);
}

void RegionCall::end(absl::StatusOr<std::string> answer) {
  if (answered_.exchange(true)) return;
  if (answer.ok() && region_.note_known()) connection_.shared_memory().note_known(region_.shared_id());
  answer_.set_value(std::move(answer));
  stop();
}

bool RegionCall::send(SharedMemoryMessage::Kind kind, std::uint32_t slot, std::size_t offset,
                      std::size_t bytes) const {
  return region_.send({.kind = kind, .slot = slot, .offset = offset, .bytes = bytes});
}

void RegionCall::stop() {
  stopped_ = true;
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof(one));
}

bool RegionCall::wait_for(absl::Duration limit) {
  const absl::Time until = steady_now() + limit;
  if (over_region_) {
    std::uint64_t woken = 0;
    (void)!::read(wake_, &woken, sizeof(woken));  // by stop(), which the call's end may follow
    while (next(Until::kAnswered, until).has_value()) continue;
  } else {
    look_for(future_, std::min(looks_for_, absl::ToChronoMicroseconds(limit)));
    (void)future_.wait_for(absl::ToChronoNanoseconds(until - steady_now()));
  }
  looks_for_ = {};  // an answer that is not there by now is not a short call's
  return answered_;
}

absl::StatusOr<std::string> RegionCall::wait() {
  while (!wait_for(absl::Hours(1))) continue;
  scope_ = CancellationScope();
  return future_.get();
}

bool RegionCall::leaves_nothing(const absl::Status& status) const {
  if (given_up_ || !region_.quiet()) return false;
  // Refused by the server, before it began.
  const bool begun = gave_ ? !ended_before_begin_ : begun_;
  return status.ok() || (!begun && !error_reason(status).empty() && !absl::IsUnavailable(status) &&
                         !absl::IsCancelled(status) && !absl::IsDeadlineExceeded(status));
}

bool RegionCall::goes_another_way(const absl::Status& status) const {
  return belongs_to_streams(status) || (over_region_ && absl::IsUnavailable(status));
}

bool belongs_to_streams(const absl::Status& status) {
  const std::string reason = error_reason(status);
  return is_break(status) || reason == "REGION_NOT_FOUND" || reason == "REGION_BUSY" ||
         reason == "REGION_WRITABLE" || reason == "REGION_SEALED";
}

}  // namespace cumulus
