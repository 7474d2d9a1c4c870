#include "library/shared_memory/array_upload.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cumulus/errors.h"
#include "cumulus/v1/shared_memory.pb.h"
#include "library/transfer_retry.h"
#include "proto/checksums.h"
#include "proto/steady_time.h"

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
  if (!possible) return Array::allocate(type, std::move(shape));
  absl::StatusOr<std::unique_ptr<SharedRegion>> region =
      memory.open({.kind = SharedMemoryMessage::kArray, .bytes = bytes});
  if (!region.ok() || (*region)->memory().size() < bytes) return Array::allocate(type, std::move(shape));
  const std::span<std::byte> array = memory.arrays()->add(*std::move(region), bytes);
  return Array::adopt(type, std::move(shape), array,
                      [arrays = memory.arrays(), array] { arrays->remove(array.data()); });
}

SharedWrite::SharedWrite(Connection& connection, SharedArrays::Hold region, std::span<const std::byte> bytes)
    : arrays_(connection.shared_memory().arrays()),
      region_(std::move(region)),
      bytes_(bytes),
      call_(std::make_shared<RegionCall>(connection, *region_)) {}

std::unique_ptr<SharedWrite> SharedWrite::start(Connection& connection, const CallContext& context,
                                                const v1::WriteSpec& spec, std::span<const std::byte> bytes,
                                                const UploadOptions& options) {
  SharedArrays::Hold region = connection.shared_memory().arrays()->take(bytes);
  if (region == nullptr) return nullptr;
  std::unique_ptr<SharedWrite> write(new SharedWrite(connection, std::move(region), bytes));
  v1::WriteSharedRequest request;
  *request.mutable_spec() = spec;
  CallOptions terms = options.call;
  terms.timeout = connection.deadline(options.call, transfer_allowance(bytes.size())) - steady_now();
  write->call_->expect_copy(bytes.size());
  if (write->arrays_->take_knock(bytes)) write->call_->note_knock();
  write->call_->start(std::move(request), terms, context);
  return write;
}

std::optional<absl::StatusOr<Uploaded>> SharedWrite::finish() {
  const absl::StatusOr<std::string> answer = call_->wait();
  if (call_->was_given_up()) arrays_->retire(bytes_.data());
  if (!answer.ok()) {
    if (call_->goes_another_way(answer.status()) && !call_->was_given_up()) return std::nullopt;
    return answer.status();
  }
  if (region_->becomes_the_servers()) region_->hang_up();
  Uploaded uploaded;
  if (absl::Status parsed = wire::parse(*answer, uploaded.buffer); !parsed.ok()) return parsed;
  return uploaded;
}

std::optional<absl::StatusOr<Uploaded>> write_shared_array(Connection& connection, const CallContext& context,
                                                           const v1::WriteSpec& spec,
                                                           std::span<const std::byte> bytes,
                                                           const UploadOptions& options, Checksum checksum) {
  const auto write = SharedWrite::start(connection, context, spec, bytes, options);
  if (write == nullptr) return std::nullopt;
  const std::uint32_t sum =
      checksum == Checksum::kWanted ? checksum_of(bytes) : 0;  // while the server copies
  std::optional<absl::StatusOr<Uploaded>> uploaded = write->finish();
  if (!uploaded.has_value() || !uploaded->ok()) return uploaded;
  (*uploaded)->checksum = sum;
  if (options.progress) {
    const auto total = static_cast<std::int64_t>(bytes.size());
    options.progress(total, total);
  }
  return uploaded;
}

}  // namespace cumulus
