#include "library/shared_memory/array_upload.h"

#include <absl/time/clock.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cumulus/errors.h"
#include "cumulus/v1/shared_memory.pb.h"
#include "library/shared_memory/arrays.h"
#include "library/shared_memory/ring_call.h"
#include "library/transfer_retry.h"
#include "proto/checksums.h"

namespace cumulus {
namespace {

/// As that of an upload through streams.
std::uint32_t checksum_of(std::span<const std::byte> bytes) {
  std::vector<std::uint32_t> chunks;
  for (std::size_t offset = 0; offset < bytes.size(); offset += kChunkBytes)
    chunks.push_back(crc32c(bytes.subspan(offset, std::min(kChunkBytes, bytes.size() - offset))));
  return crc32c(std::as_bytes(std::span(chunks)));
}

}  // namespace

absl::StatusOr<Array> allocate_shared_array(SharedMemory& memory, ElementType type, Shape shape) {
  const absl::StatusOr<std::int64_t> count = element_count(shape);
  if (!count.ok()) return count.status();
  std::size_t bytes = 0;
  const bool possible =
      !__builtin_mul_overflow(static_cast<std::size_t>(*count), element_bytes(type), &bytes) && bytes > 0;
  const std::string socket = memory.socket();
  if (!possible || socket.empty()) return Array::allocate(type, std::move(shape));
  absl::StatusOr<std::unique_ptr<SharedRegion>> region =
      SharedRegion::open(socket, {.kind = SharedMemoryMessage::kArray, .bytes = bytes});
  if (!region.ok() || (*region)->memory().size() < bytes) return Array::allocate(type, std::move(shape));
  const std::span<std::byte> array = memory.arrays()->add(*std::move(region), bytes);
  return Array::adopt(type, std::move(shape), array,
                      [arrays = memory.arrays(), array] { arrays->remove(array.data()); });
}

std::optional<absl::StatusOr<Uploaded>> write_shared_array(Connection& connection, const CallContext& context,
                                                           const v1::WriteSpec& spec,
                                                           std::span<const std::byte> bytes,
                                                           const UploadOptions& options, Checksum checksum) {
  const SharedArrays::Hold region = connection.shared_memory().arrays()->take(bytes);
  if (region == nullptr) return std::nullopt;
  v1::WriteSharedRequest request;
  *request.mutable_spec() = spec;
  request.set_region(region->id());
  CallOptions call = options.call;
  call.timeout = connection.deadline(options.call, transfer_allowance(bytes.size())) - absl::Now();
  Uploaded uploaded;
  absl::StatusOr<v1::Buffer> buffer =
      connection.call_and_wait<v1::Buffer>("/cumulus.v1.SharedMemory/WriteShared", request, call, context);
  if (!buffer.ok()) {
    if (belongs_to_streams(buffer.status())) return std::nullopt;
    return buffer.status();
  }
  if (region->becomes_the_servers()) region->hang_up();
  uploaded.buffer = *std::move(buffer);
  if (checksum == Checksum::kWanted) uploaded.checksum = checksum_of(bytes);
  if (options.progress) {
    const auto total = static_cast<std::int64_t>(bytes.size());
    options.progress(total, total);
  }
  return uploaded;
}

}  // namespace cumulus
