#include "server/runtime/shared_memory/region_download.h"

#include <algorithm>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

/// Whole slots: so many that a GPU does not rest between one piece's copy and the next, and no more pieces
/// than the client's end of the socket holds messages for.
std::size_t piece_bytes(std::size_t total) {
  constexpr std::size_t kMaxPieces = 64;
  constexpr std::size_t kMinSlots = 4;
  const std::size_t slots = (total + kSharedSlotBytes - 1) / kSharedSlotBytes;
  return std::max(kMinSlots, (slots + kMaxPieces - 1) / kMaxPieces) * kSharedSlotBytes;
}

}  // namespace

absl::Status RegionDownload::prepare() {
  const std::size_t wanted = range().end - range().begin;
  if (wanted <= region().bytes()) return absl::OkStatus();
  return bad_field("region", concat("has ", region().bytes(), " bytes; there are ", wanted,
                                    " to be read: name a larger one, or a ring's, or a read_limit"));
}

absl::Status RegionDownload::take_doorbell(const SharedMemoryMessage& message) {
  if (message.kind != SharedMemoryMessage::kFree || message.slot != 0 || std::exchange(given_, true)) {
    return bad_request("UNEXPECTED_DOORBELL",
                       concat("a message of kind ", message.kind, " for slot ", message.slot,
                              " came in a download; FREE gives slot 0, which is all of an array's region, "
                              "once"));
  }
  const std::size_t piece = piece_bytes(range().end - range().begin);
  for (std::size_t offset = range().begin; offset < range().end && !ended(); offset += piece)
    copy(offset, std::min(piece, range().end - offset));
  return absl::OkStatus();
}

void RegionDownload::copy(std::size_t offset, std::size_t bytes) {
  Device& device = *range().device;
  const std::size_t place = offset - range().begin;
  const BufferMemory& memory = range().buffer->memory;
  const auto done = [self = shared_from_this(), this, offset, bytes](const absl::Status& status) {
    if (status.ok()) {
      filled(0, offset, bytes);
    } else {
      end(status);
    }
  };
  if (!device.healthy()) {
    done(failed_device(device));
  } else if (const std::byte* data = memory.host_data(); data != nullptr) {
    done(region().write(place, {data + offset, bytes}));
  } else {
    device.copy_out(memory, offset, region().memory().subspan(place, bytes), done);
  }
}

}  // namespace cumulus::server
