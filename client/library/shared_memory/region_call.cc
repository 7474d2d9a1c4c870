#include "library/shared_memory/region_call.h"

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

RegionCall::RegionCall(Connection& connection, const SharedRegion& region)
    : connection_(connection), region_(region), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

RegionCall::~RegionCall() {
  if (wake_ >= 0) ::close(wake_);
}

void RegionCall::start(const std::string& method, const grpc::ByteBuffer& request, const CallOptions& options,
                       const CallContext& context) {
  connection_.call(method, request, options, context,
                   [self = shared_from_this()](absl::StatusOr<grpc::ByteBuffer> answer) {
                     self->stop();
                     self->answer_.set_value(std::move(answer));
                   });
}

bool RegionCall::wait_until_begun() {
  const std::lock_guard lock(begin_mutex_);
  if (begun_) return true;
  const std::optional<SharedMemoryMessage> message = next();
  begun_ = message.has_value() && message->kind == SharedMemoryMessage::kBegin;
  return begun_;
}

std::optional<SharedMemoryMessage> RegionCall::next() {
  while (true) {
    // Before the look: what was sent before the call's end is there then.
    const bool last = stopped_;
    SharedMemoryMessage message;
    const ssize_t size = ::recv(region_.socket(), &message, sizeof(message), MSG_DONTWAIT);
    if (size == sizeof(message)) return message;
    const bool nothing = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (!nothing || last) return std::nullopt;
    std::array<pollfd, 2> entries{pollfd{region_.socket(), POLLIN, 0}, pollfd{wake_, POLLIN, 0}};
    (void)::poll(entries.data(), entries.size(), -1);
  }
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

bool RegionCall::leaves_nothing(const absl::Status& status) const {
  if (!region_.quiet()) return false;
  // Refused by the server, before it began.
  return status.ok() || (!begun_ && !error_reason(status).empty() && !absl::IsUnavailable(status) &&
                         !absl::IsCancelled(status) && !absl::IsDeadlineExceeded(status));
}

bool belongs_to_streams(const absl::Status& status) {
  const std::string reason = error_reason(status);
  return is_break(status) || reason == "REGION_NOT_FOUND" || reason == "REGION_BUSY" ||
         reason == "REGION_WRITABLE" || reason == "REGION_SEALED";
}

}  // namespace cumulus
