#include "server/runtime/shared_memory/ring_download.h"

#include <algorithm>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {

absl::Status RingDownload::prepare() {
  next_ = range().begin;
  return absl::OkStatus();
}

std::uint32_t RingDownload::given_slots() const {
  const std::size_t pieces = (range().end - range().begin + kSharedSlotBytes - 1) / kSharedSlotBytes;
  return static_cast<std::uint32_t>(std::min<std::size_t>(kSharedSlots, pieces));
}

absl::Status RingDownload::take_doorbell(const SharedMemoryMessage& message) {
  const std::size_t end_of_range = range().end;
  if (message.kind != SharedMemoryMessage::kFree || next_ == end_of_range) {
    return bad_request(
        "UNEXPECTED_DOORBELL",
        concat("a message of kind ", message.kind, " came in a download; FREE gives a slot for ",
               "each piece, and there are ", end_of_range - next_, " bytes left"));
  }
  if (absl::Status slot = take_slot(message.slot); !slot.ok()) return slot;
  Device& device = *range().device;
  if (!device.healthy()) {
    end(failed_device(device));
    return absl::OkStatus();
  }
  const std::size_t offset = next_;
  const std::span<std::byte> data =
      region().slot_to_write(message.slot, std::min(kSharedSlotBytes, end_of_range - offset));
  next_ += data.size();
  device.copy_out(range().buffer->memory, offset, data,
                  [self = shared_from_this(), this, slot = message.slot, offset,
                   bytes = data.size()](const absl::Status& status) {
                    if (status.ok()) {
                      copied(slot, offset, bytes);
                    } else {
                      end(status);
                    }
                  });
  return absl::OkStatus();
}

void RingDownload::copied(std::uint32_t slot, std::size_t offset, std::size_t bytes) {
  wait_for_client([] {});
  give_back_slot(slot);
  filled(slot, offset, bytes);
}

}  // namespace cumulus::server
