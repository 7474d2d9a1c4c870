#include "library/shared_memory/array_upload.h"

#include <absl/time/clock.h>

#include <algorithm>
#include <future>
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

/// Of WriteShared; empty where the array has to go another way.
std::optional<absl::StatusOr<Uploaded>> uploaded_of(absl::StatusOr<grpc::ByteBuffer> answer,
                                                    const SharedRegion& region) {
  if (!answer.ok()) {
    if (belongs_to_streams(answer.status())) return std::nullopt;
    return answer.status();
  }
  Uploaded uploaded;
  if (absl::Status parsed = wire::parse(*answer, uploaded.buffer); !parsed.ok()) return parsed;
  if (region.becomes_the_servers()) region.hang_up();
  return uploaded;
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

bool start_shared_write(Connection& connection, const CallContext& context, const v1::WriteSpec& spec,
                        std::span<const std::byte> bytes, const UploadOptions& options,
                        SharedWriteDone done) {
  const SharedArrays::Hold region = connection.shared_memory().arrays()->take(bytes);
  if (region == nullptr) return false;
  v1::WriteSharedRequest request;
  *request.mutable_spec() = spec;
  request.set_region(region->id());
  CallOptions call = options.call;
  call.timeout = connection.deadline(options.call, transfer_allowance(bytes.size())) - absl::Now();
  connection.call("/cumulus.v1.SharedMemory/WriteShared", wire::serialize(request), call, context,
                  [region, done = std::move(done)](absl::StatusOr<grpc::ByteBuffer> answer) {
                    done(uploaded_of(std::move(answer), *region));
                  });
  return true;
}

std::optional<absl::StatusOr<Uploaded>> write_shared_array(Connection& connection, const CallContext& context,
                                                           const v1::WriteSpec& spec,
                                                           std::span<const std::byte> bytes,
                                                           const UploadOptions& options, Checksum checksum) {
  // Shared: the callback's end may outlive the wait.
  const auto answer = std::make_shared<std::promise<std::optional<absl::StatusOr<Uploaded>>>>();
  if (!start_shared_write(connection, context, spec, bytes, options,
                          [answer](auto answered) { answer->set_value(std::move(answered)); }))
    return std::nullopt;
  std::optional<absl::StatusOr<Uploaded>> uploaded = answer->get_future().get();
  if (!uploaded.has_value() || !uploaded->ok()) return uploaded;
  if (checksum == Checksum::kWanted) (*uploaded)->checksum = checksum_of(bytes);
  if (options.progress) {
    const auto total = static_cast<std::int64_t>(bytes.size());
    options.progress(total, total);
  }
  return uploaded;
}

}  // namespace cumulus
