#include "server/runtime/transfer/read_range.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

std::string_view session_of(std::string_view buffer_name) {
  return buffer_name.substr(0, buffer_name.find("/buffers/"));
}

}  // namespace

absl::StatusOr<ReadRange> ReadRange::find(Runtime& runtime, const Principal& caller, const std::string& name,
                                          std::int64_t offset, std::int64_t limit) {
  if (limit < 0) return bad_field("read_limit", concat("is ", limit, "; at least 1 is right, or 0 for all"));
  absl::StatusOr<BufferHandle> buffer = runtime.sessions.find_buffer(name, caller);
  if (!buffer.ok()) return buffer.status();
  const std::size_t size = (*buffer)->shape.bytes();
  if (offset < 0 || static_cast<std::size_t>(offset) > size) {
    return bad_field("read_offset",
                     concat("is ", offset, "; the buffer has ", size, " bytes: 0 to that is right"));
  }
  const auto session = runtime.sessions.find_session(session_of((*buffer)->name), caller);
  if (!session.ok()) return session.status();
  Device* const device = (*session)->slot->device.get();
  if (!device->healthy()) return failed_device(*device);
  const auto begin = static_cast<std::size_t>(offset);
  const std::size_t most = limit > 0 ? static_cast<std::size_t>(limit) : size;
  return ReadRange{*std::move(buffer), *session, device, begin, begin + std::min(size - begin, most)};
}

}  // namespace cumulus::server
