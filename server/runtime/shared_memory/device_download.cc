#include "server/runtime/shared_memory/device_download.h"

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {

absl::Status DeviceDownload::prepare() {
  const std::size_t bytes = range().end - range().begin;
  if (bytes > region().bytes()) {
    return bad_field("region", concat("has ", region().bytes(), " bytes, and ", bytes,
                                      " are to be read into it; ask for a larger one"));
  }
  return region().use_in(*range().session);
}

void DeviceDownload::bring() {
  const std::size_t bytes = range().end - range().begin;
  range().device->copy_within(range().buffer->memory, range().begin, region().device_memory(), bytes,
                              [self = shared_from_this(), this, bytes](const absl::Status& status) {
                                if (status.ok()) count_bytes(bytes);
                                end(status);
                              });
}

absl::Status DeviceDownload::take_doorbell(const SharedMemoryMessage& message) {
  return unexpected_doorbell(message);
}

}  // namespace cumulus::server
