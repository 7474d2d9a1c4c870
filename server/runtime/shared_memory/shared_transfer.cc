#include "server/runtime/shared_memory/shared_transfer.h"

#include <functional>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {

SharedTransfer::SharedTransfer(Runtime& runtime, std::shared_ptr<SharedLink> link, Options options,
                               Answer answer)
    : Transfer(std::move(options)), runtime_(runtime), link_(std::move(link)), answer_(std::move(answer)) {}

void SharedTransfer::run(const std::function<absl::Status()>& start) {
  absl::Status status = take_share();
  if (status.ok()) status = start();
  if (!status.ok()) end(status);
}

absl::Status SharedTransfer::take_region() {
  region_ = link_->region();
  absl::Status taken = link_->attach(std::static_pointer_cast<SharedTransfer>(shared_from_this()));
  attached_ = taken.ok();
  return taken;
}

absl::Status SharedTransfer::take(const SharedMemoryMessage& message) {
  if (message.kind == SharedMemoryMessage::kCancel) {
    cancel();
    return absl::OkStatus();
  }
  if (ended()) return absl::OkStatus();
  if (!begun_) {
    return bad_request("UNEXPECTED_DOORBELL",
                       concat("a message of kind ", message.kind, " came before BEGIN"));
  }
  client_moved();
  return take_doorbell(message);
}

void SharedTransfer::begin_pieces() {
  begun_ = true;
  wait_for_client([] {});
  send(SharedMemoryMessage::kBegin, 0, 0, 0);
}

void SharedTransfer::send(SharedMemoryMessage::Kind kind, std::uint32_t slot, std::size_t offset,
                          std::size_t bytes) {
  link_->send({.kind = kind, .slot = slot, .offset = offset, .bytes = bytes});
}

absl::Status SharedTransfer::take_slot(std::uint32_t slot) {
  const std::uint32_t bit = slot < kSharedSlots ? std::uint32_t{1} << slot : 0;
  if (bit == 0) {
    return bad_request("UNEXPECTED_DOORBELL",
                       concat("a message names slot ", slot, "; the ring has ", kSharedSlots));
  }
  if ((own_slots_.fetch_or(bit) & bit) == 0) return absl::OkStatus();
  return bad_request("UNEXPECTED_DOORBELL", concat("a message gives slot ", slot, ", which the server has"));
}

void SharedTransfer::give_back_slot(std::uint32_t slot) { own_slots_ &= ~(std::uint32_t{1} << slot); }

absl::Status SharedTransfer::unexpected_doorbell(const SharedMemoryMessage& message) {
  return bad_request("UNEXPECTED_DOORBELL",
                     concat("a message of kind ", message.kind, " came for a region without slots"));
}

void SharedTransfer::finish(const grpc::Status& status) {
  // Before the answer, after which the client may use the ring again.
  const bool reusable = status.ok() || !begun_;
  const bool closes_after = answer_.over_the_link && !reusable;
  if (attached_ && !closes_after) link_->detach(reusable);
  answer_.give(status, begun_);
  if (attached_ && closes_after) link_->detach(false);
}

}  // namespace cumulus::server
