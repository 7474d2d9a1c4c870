#include "server/runtime/shared_memory/ring_upload.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

constexpr std::size_t pieces_of(std::size_t bytes) {
  return (bytes + kSharedPieceBytes - 1) / kSharedPieceBytes;
}

}  // namespace

absl::Status RingUpload::take_array() {
  left_ = pieces_of(target().total_bytes());
  came_.resize(left_);
  if (left_ > 0) {
    begin_pieces();
  } else {
    complete();
  }
  return absl::OkStatus();
}

absl::Status RingUpload::take_doorbell(const SharedMemoryMessage& message) {
  if (absl::Status piece = take_piece(message); !piece.ok()) return piece;
  if (absl::Status slot = take_slot(message.slot); !slot.ok()) return slot;
  if (const absl::Status there = check_target(); !there.ok()) {
    end(there);
    return absl::OkStatus();
  }
  place(message);
  return absl::OkStatus();
}

absl::Status RingUpload::take_piece(const SharedMemoryMessage& message) {
  const std::size_t total = target().total_bytes();
  const bool possible = message.kind == SharedMemoryMessage::kFilled &&
                        message.offset % kSharedPieceBytes == 0 && message.offset < total &&
                        message.bytes > 0 && message.bytes <= kSharedSlotBytes &&
                        (message.bytes == total - message.offset ||
                         (message.bytes % kSharedPieceBytes == 0 && message.bytes < total - message.offset));
  if (possible) {
    const auto first = came_.begin() + static_cast<std::ptrdiff_t>(message.offset / kSharedPieceBytes);
    const auto last = first + static_cast<std::ptrdiff_t>(pieces_of(message.bytes));
    if (std::find(first, last, true) == last) {
      std::fill(first, last, true);
      return absl::OkStatus();
    }
  }
  return bad_request(
      "UNEXPECTED_DOORBELL",
      concat("a message of kind ", message.kind, " says ", message.bytes, " bytes from ", message.offset,
             " on; of an array of ", total, " bytes, FILLED brings pieces of ", kSharedPieceBytes,
             " bytes, or some in a row, up to ", kSharedSlotBytes, " bytes, each once, and then the rest"));
}

void RingUpload::place(const SharedMemoryMessage& message) {
  const std::span<std::byte> data = region().slot(message.slot).first(message.bytes);
  BufferMemory& memory = target().memory();
  if (std::byte* to = memory.host_data(); to != nullptr) {
    std::memcpy(to + message.offset, data.data(), data.size());
    placed(message.slot, data.size());
    return;
  }
  const auto done = [self = shared_from_this(), this, slot = message.slot,
                     bytes = data.size()](const absl::Status& status) {
    if (status.ok()) {
      placed(slot, bytes);
    } else {
      end(status);
    }
  };
  if (message.offset == 0) {
    target().device().copy_in_and_read_head(data, memory, head(), done);
  } else {
    target().device().copy_in(data, memory, message.offset, done);
  }
}

void RingUpload::placed(std::uint32_t slot, std::size_t bytes) {
  bool all = false;
  count_bytes(bytes);
  wait_for_client([] {});
  give_back_slot(slot);
  send(SharedMemoryMessage::kFree, slot, 0, 0);
  {
    const std::lock_guard lock(mutex_);
    left_ -= pieces_of(bytes);
    all = left_ == 0;
  }
  if (all) complete();
}

}  // namespace cumulus::server
