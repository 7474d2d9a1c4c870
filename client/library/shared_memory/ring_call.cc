#include "library/shared_memory/ring_call.h"

#include <sys/socket.h>

#include <utility>

#include "cumulus/errors.h"

namespace cumulus {

std::shared_ptr<RingCall> RingCall::make(Connection& connection) {
  std::unique_ptr<SharedMemory::Ring> ring = connection.shared_memory().take_ring();
  return ring == nullptr ? nullptr : std::shared_ptr<RingCall>(new RingCall(connection, std::move(ring)));
}

RingCall::RingCall(Connection& connection, std::unique_ptr<SharedMemory::Ring> ring)
    : RegionCall(connection, *ring->region), ring_(std::move(ring)) {}

void RingCall::abandon() {
  const std::lock_guard lock(ring_mutex_);
  if (ring_ != nullptr) ::shutdown(region().socket(), SHUT_RDWR);
}

absl::StatusOr<std::string> RingCall::finish() {
  absl::StatusOr<std::string> answer = wait();
  const std::lock_guard lock(ring_mutex_);
  SharedMemory& shared = connection().shared_memory();
  if (error_reason(answer.status()) == "REGION_NOT_FOUND" && !ring_->proven) shared.forget_socket();
  ring_->proven |= answer.ok();
  if (!leaves_nothing(answer.status())) ring_.reset();
  shared.give_back(std::move(ring_));
  return answer;
}

}  // namespace cumulus
