#include "server/runtime/shared_memory/ring_download.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/transfer/read_range.h"

namespace cumulus::server {

void RingDownload::begin(const v1::ReadSharedRequest& request) {
  run([&] { return start(request); });
}

absl::Status RingDownload::start(const v1::ReadSharedRequest& request) {
  absl::StatusOr<ReadRange> range =
      ReadRange::find(runtime(), principal(), request.name(), request.read_offset(), request.read_limit());
  if (!range.ok()) return range.status();
  if (absl::Status taken = take_region(); !taken.ok()) return taken;
  if (region().kind() != SharedRegion::Kind::kRing)
    return bad_field("region", "is an array's; a buffer is read through a ring");
  buffer_ = std::move(range->buffer);
  device_ = range->device;
  next_ = range->begin;
  end_ = range->end;
  left_ = end_ - next_;
  if (left_ > 0) {
    begin_pieces();
  } else {
    end(absl::OkStatus());
  }
  return absl::OkStatus();
}

absl::Status RingDownload::take_doorbell(const SharedMemoryMessage& message) {
  if (message.kind != SharedMemoryMessage::kFree || next_ == end_) {
    return bad_request(
        "UNEXPECTED_DOORBELL",
        concat("a message of kind ", message.kind, " came in a download; FREE gives a slot for ",
               "each piece, and there are ", end_ - next_, " bytes left"));
  }
  if (absl::Status slot = take_slot(message.slot); !slot.ok()) return slot;
  if (!device_->healthy()) {
    end(failed_device(*device_));
    return absl::OkStatus();
  }
  const std::size_t offset = next_;
  const std::span<std::byte> data =
      region().slot(message.slot).first(std::min(kSharedSlotBytes, end_ - offset));
  next_ += data.size();
  device_->copy_out(buffer_->memory, offset, data,
                    [self = shared_from_this(), this, slot = message.slot, offset,
                     bytes = data.size()](const absl::Status& status) {
                      if (status.ok()) {
                        filled(slot, offset, bytes);
                      } else {
                        end(status);
                      }
                    });
  return absl::OkStatus();
}

void RingDownload::filled(std::uint32_t slot, std::size_t offset, std::size_t bytes) {
  bool all = false;
  count_bytes(bytes);
  wait_for_client([] {});
  give_back_slot(slot);
  send(SharedMemoryMessage::kFilled, slot, offset, bytes);
  {
    const std::lock_guard lock(mutex_);
    left_ -= bytes;
    all = left_ == 0;
  }
  if (all) end(absl::OkStatus());
}

}  // namespace cumulus::server
