#include "server/runtime/shared_memory/shared_download.h"

#include <utility>

namespace cumulus::server {

void SharedDownload::begin(const v1::ReadSharedRequest& request, Gives gives) {
  gives_ = gives;
  run([&] { return start(request); });
}

absl::Status SharedDownload::start(const v1::ReadSharedRequest& request) {
  absl::StatusOr<ReadRange> range =
      ReadRange::find(runtime(), principal(), request.name(), request.read_offset(), request.read_limit());
  if (!range.ok()) return range.status();
  if (absl::Status taken = take_region(); !taken.ok()) return taken;
  range_ = *std::move(range);
  if (absl::Status prepared = prepare(); !prepared.ok()) return prepared;
  left_ = range_.end - range_.begin;
  if (left_ == 0) {
    end(absl::OkStatus());
  } else if (gives_ == Gives::kAfterBegin) {
    bring();
  } else {
    return take_given_slots();
  }
  return absl::OkStatus();
}

void SharedDownload::bring() { begin_pieces(); }

absl::Status SharedDownload::take_given_slots() {
  begin_given_pieces();
  for (std::uint32_t slot = 0; slot < given_slots() && !ended(); ++slot) {
    if (absl::Status taken = take_doorbell({.kind = SharedMemoryMessage::kFree, .slot = slot}); !taken.ok())
      return taken;
  }
  return absl::OkStatus();
}

void SharedDownload::filled(std::uint32_t slot, std::size_t offset, std::size_t bytes) {
  count_bytes(bytes);
  send(SharedMemoryMessage::kFilled, slot, offset, bytes);
  if ((left_ -= bytes) == 0) end(absl::OkStatus());
}

}  // namespace cumulus::server
