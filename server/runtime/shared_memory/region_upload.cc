#include "server/runtime/shared_memory/region_upload.h"

#include "server/pipeline/errors.h"

namespace cumulus::server {

absl::Status RegionUpload::prepare() {
  if (const absl::Status room = check_room(); !room.ok()) return room;
  if (early_ != nullptr && !early_->is_of(target().device(), target().total_bytes())) early_.reset();
  if (early_ != nullptr) early_->uncount();
  if (target().device().space() != Space::kHost || region().freeze()) return absl::OkStatus();
  return no_answer("REGION_WRITABLE",
                   "the region is still mapped so that it can be written to; the array becomes the server's "
                   "as it is, so unmap it before, or map it privately");
}

std::function<BufferMemory()> RegionUpload::provider() {
  if (early_ != nullptr) return [] { return BufferMemory(); };  // its own, once that is filled
  if (target().device().space() != Space::kHost) return nullptr;
  return [this] { return region().map_to_read(target().total_bytes()); };
}

absl::Status RegionUpload::take_array() {
  if (target().device().space() == Space::kHost) {
    take_whole(absl::OkStatus());
    return absl::OkStatus();
  }
  if (const std::shared_ptr<EarlyCopy> early = std::exchange(early_, nullptr); early != nullptr) {
    take_from(*early);
    return absl::OkStatus();
  }
  target().device().copy_in_and_read_head(
      region().memory().first(target().total_bytes()), target().memory(), head(),
      [self = shared_from_this(), this](const absl::Status& status) { take_whole(status); });
  return absl::OkStatus();
}

absl::Status RegionUpload::take_doorbell(const SharedMemoryMessage& message) {
  return unexpected_doorbell(message);
}

}  // namespace cumulus::server
