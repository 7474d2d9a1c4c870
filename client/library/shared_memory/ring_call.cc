#include "library/shared_memory/ring_call.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "cumulus/errors.h"
#include "library/outage.h"

namespace cumulus {
namespace {

constexpr std::string_view kRegionNotFound = "REGION_NOT_FOUND";

}  // namespace

std::shared_ptr<RingCall> RingCall::make(Connection& connection) {
  std::unique_ptr<SharedMemory::Ring> ring = connection.shared_memory().take_ring();
  return ring == nullptr ? nullptr : std::shared_ptr<RingCall>(new RingCall(connection, std::move(ring)));
}

RingCall::RingCall(Connection& connection, std::unique_ptr<SharedMemory::Ring> ring)
    : connection_(connection), ring_(std::move(ring)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

RingCall::~RingCall() {
  if (wake_ >= 0) ::close(wake_);
}

void RingCall::start(const std::string& method, const grpc::ByteBuffer& request, const CallOptions& options,
                     const CallContext& context) {
  connection_.call(method, request, options, context,
                   [self = shared_from_this()](absl::StatusOr<grpc::ByteBuffer> answer) {
                     self->stop();
                     self->answer_.set_value(std::move(answer));
                   });
}

bool RingCall::wait_until_begun() {
  const std::lock_guard lock(begin_mutex_);
  if (begun_) return true;
  const std::optional<SharedMemoryMessage> message = next();
  begun_ = message.has_value() && message->kind == SharedMemoryMessage::kBegin;
  return begun_;
}

std::optional<SharedMemoryMessage> RingCall::next() {
  while (true) {
    // Before the look: what was sent before the call's end is there then.
    const bool last = stopped_;
    SharedMemoryMessage message;
    const ssize_t size = ::recv(region().socket(), &message, sizeof(message), MSG_DONTWAIT);
    if (size == sizeof(message)) return message;
    const bool nothing = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (!nothing || last) return std::nullopt;
    std::array<pollfd, 2> entries{pollfd{region().socket(), POLLIN, 0}, pollfd{wake_, POLLIN, 0}};
    (void)::poll(entries.data(), entries.size(), -1);
  }
}

bool RingCall::send(SharedMemoryMessage::Kind kind, std::uint32_t slot, std::size_t offset,
                    std::size_t bytes) const {
  return region().send({.kind = kind, .slot = slot, .offset = offset, .bytes = bytes});
}

void RingCall::stop() {
  stopped_ = true;
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof(one));
}

void RingCall::abandon() {
  const std::lock_guard lock(ring_mutex_);
  if (ring_ != nullptr) ::shutdown(region().socket(), SHUT_RDWR);
}

absl::StatusOr<grpc::ByteBuffer> RingCall::finish() {
  absl::StatusOr<grpc::ByteBuffer> answer = answer_.get_future().get();
  const std::lock_guard lock(ring_mutex_);
  SharedMemory& shared = connection_.shared_memory();
  if (error_reason(answer.status()) == kRegionNotFound && !ring_->proven) shared.forget_socket();
  ring_->proven |= answer.ok();
  if (!is_reusable(answer.status())) ring_.reset();
  shared.give_back(std::move(ring_));
  return answer;
}

bool RingCall::is_reusable(const absl::Status& status) const {
  if (!ring_->region->quiet()) return false;
  // Refused by the server, before it began: nothing is on its way.
  return status.ok() || (!begun_ && !error_reason(status).empty() && !absl::IsUnavailable(status) &&
                         !absl::IsCancelled(status) && !absl::IsDeadlineExceeded(status));
}

bool belongs_to_streams(const absl::Status& status) {
  const std::string reason = error_reason(status);
  return is_break(status) || reason == kRegionNotFound || reason == "REGION_BUSY" ||
         reason == "REGION_WRITABLE";
}

}  // namespace cumulus
