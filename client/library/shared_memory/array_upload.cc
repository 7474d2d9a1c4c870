#include "library/shared_memory/array_upload.h"

#include <absl/time/clock.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cumulus/errors.h"
#include "cumulus/v1/shared_memory.pb.h"
#include "library/shared_memory/arrays.h"
#include "library/shared_memory/region_call.h"
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

/// What a WriteShared that succeeded has answered.
absl::StatusOr<Uploaded> uploaded_of(grpc::ByteBuffer& answer, const SharedRegion& region) {
  if (region.becomes_the_servers()) region.hang_up();
  Uploaded uploaded;
  if (absl::Status parsed = wire::parse(answer, uploaded.buffer); !parsed.ok()) return parsed;
  return uploaded;
}

}  // namespace

absl::StatusOr<Array> allocate_shared_array(SharedMemory& memory, ElementType type, Shape shape) {
  const absl::StatusOr<std::int64_t> count = element_count(shape);
  if (!count.ok()) return count.status();
  std::size_t bytes = 0;
  const bool possible =
      !__builtin_mul_overflow(static_cast<std::size_t>(*count), element_bytes(type), &bytes) && bytes > 0;
  if (!possible) return Array::allocate(type, std::move(shape));
  absl::StatusOr<std::unique_ptr<SharedRegion>> region =
      memory.open({.kind = SharedMemoryMessage::kArray, .bytes = bytes});
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
                    if (answer.ok()) return done(uploaded_of(*answer, *region));
                    if (belongs_to_streams(answer.status())) return done(std::nullopt);
                    done(answer.status());
                  });
  return true;
}

std::optional<absl::StatusOr<Uploaded>> write_shared_array(Connection& connection, const CallContext& context,
                                                           const v1::WriteSpec& spec,
                                                           std::span<const std::byte> bytes,
                                                           const UploadOptions& options, Checksum checksum) {
  SharedArrays& arrays = *connection.shared_memory().arrays();
  const SharedArrays::Hold region = arrays.take(bytes);
  if (region == nullptr) return std::nullopt;
  v1::WriteSharedRequest request;
  *request.mutable_spec() = spec;
  CallOptions terms = options.call;
  terms.timeout = connection.deadline(options.call, transfer_allowance(bytes.size())) - absl::Now();
  const auto call = std::make_shared<RegionCall>(connection, *region);
  call->expect_copy(bytes.size());
  call->start(std::move(request), terms, context);
  const std::uint32_t sum =
      checksum == Checksum::kWanted ? checksum_of(bytes) : 0;  // while the server copies
  absl::StatusOr<grpc::ByteBuffer> answer = call->wait();
  if (call->was_given_up()) arrays.retire(bytes.data());
  if (!answer.ok()) {
    if (call->goes_another_way(answer.status()) && !call->was_given_up()) return std::nullopt;
    return answer.status();
  }
  absl::StatusOr<Uploaded> uploaded = uploaded_of(*answer, *region);
  if (!uploaded.ok()) return uploaded;
  uploaded->checksum = sum;
  if (options.progress) {
    const auto total = static_cast<std::int64_t>(bytes.size());
    options.progress(total, total);
  }
  return uploaded;
}

}  // namespace cumulus
