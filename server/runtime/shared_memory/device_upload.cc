#include "server/runtime/shared_memory/device_upload.h"

namespace cumulus::server {

absl::Status DeviceUpload::prepare() {
  if (const absl::Status room = check_room(); !room.ok()) return room;
  return region().use_in(target().session());
}

absl::Status DeviceUpload::take_array() {
  target().device().copy_within(region().device_memory(), 0, target().memory(), target().total_bytes(),
                                [self = shared_from_this(), this](const absl::Status& copied) {
                                  if (!copied.ok()) return take_whole(copied);
                                  target().device().copy_out(
                                      target().memory(), 0, head(),
                                      [self, this](const absl::Status& status) { take_whole(status); });
                                });
  return absl::OkStatus();
}

absl::Status DeviceUpload::take_doorbell(const SharedMemoryMessage& message) {
  return unexpected_doorbell(message);
}

}  // namespace cumulus::server
