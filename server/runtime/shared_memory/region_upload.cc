#include "server/runtime/shared_memory/region_upload.h"

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {

absl::Status RegionUpload::prepare() {
  if (target().total_bytes() > region().bytes()) {
    return bad_field("region", concat("has ", region().bytes(), " bytes; the array ",
                                      target().description().shape.text(), " has ", target().total_bytes()));
  }
  if (target().device().space() != Space::kHost || region().freeze()) return absl::OkStatus();
  return no_answer("REGION_WRITABLE",
                   "the region is still mapped so that it can be written to; the array becomes the server's "
                   "as it is, so unmap it before, or map it privately");
}

std::function<BufferMemory()> RegionUpload::provider() {
  if (target().device().space() != Space::kHost) return nullptr;
  return [this] { return region().map_to_read(target().total_bytes()); };
}

absl::Status RegionUpload::take_array() {
  const std::size_t bytes = target().total_bytes();
  if (target().device().space() == Space::kHost) {
    count_bytes(bytes);
    complete();
    return absl::OkStatus();
  }
  target().device().copy_in(region().memory().first(bytes), target().memory(), 0,
                            [self = shared_from_this(), this, bytes](const absl::Status& status) {
                              if (!status.ok()) {
                                end(status);
                                return;
                              }
                              count_bytes(bytes);
                              complete();
                            });
  return absl::OkStatus();
}

absl::Status RegionUpload::take_doorbell(const SharedMemoryMessage& message) {
  return bad_request("UNEXPECTED_DOORBELL",
                     concat("a message of kind ", message.kind, " came for a region without slots"));
}

}  // namespace cumulus::server
