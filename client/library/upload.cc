#include <absl/strings/str_cat.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "library/byte_stream.h"
#include "library/outage.h"
#include "library/shared_memory/array_upload.h"
#include "library/shared_memory/ring_transfer.h"
#include "library/transfer.h"
#include "library/transfer_parts.h"
#include "library/transfer_retry.h"
#include "library/uuid.h"
#include "proto/checksums.h"
#include "proto/steady_time.h"

namespace cumulus {
namespace {

constexpr std::uint32_t kUploadTag =
    v1::WriteBufferRequest::kDataFieldNumber << 3 | 2;  // 2: length-delimited

/// The caller's memory, lent to gRPC piece by piece without a copy. gRPC may hold pieces for a while
/// after a call has failed, so whoever lends waits until all of them are back.
class LentMemory {
 public:
  LentMemory() = default;
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;
  ~LentMemory() {
    std::unique_lock lock(mutex_);
    all_back_.wait(lock, [this] { return lent_ == 0; });
  }

  grpc::Slice lend(std::span<const std::byte> bytes) {
    {
      const std::lock_guard lock(mutex_);
      ++lent_;
    }
    return {const_cast<std::byte*>(bytes.data()), bytes.size(),
            [](void* self) { static_cast<LentMemory*>(self)->give_back(); }, this};
  }

 private:
  void give_back() {
    const std::lock_guard lock(mutex_);
    if (--lent_ == 0) all_back_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable all_back_;
  std::size_t lent_ = 0;
};

/// A WriteBufferRequest: the small fields serialised, then the data's tag and length, then the data
/// itself where it lies.
grpc::ByteBuffer encode_chunk(const v1::WriteBufferRequest& head, std::span<const std::byte> data,
                              LentMemory& memory) {
  std::string front = head.SerializeAsString();
  if (data.empty()) {
    const grpc::Slice slice(front);
    return {&slice, 1};
  }
  {
    google::protobuf::io::StringOutputStream stream(&front);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.WriteTag(kUploadTag);
    coded.WriteVarint64(data.size());
  }
  const grpc::Slice slices[] = {grpc::Slice(front), memory.lend(data)};
  return {slices, 2};
}

/// An array on its way, of which several streams bring a part each.
struct Cargo {
  const v1::WriteSpec& spec;
  std::span<const std::byte> bytes;
  std::vector<std::uint32_t> checksums;  // of the chunks; each part has its own
};

/// The message that carries the bytes of `part` from `offset` on.
grpc::ByteBuffer chunk_at(std::size_t offset, const TransferPart& part, Cargo& cargo, LentMemory& memory) {
  const auto data = cargo.bytes.subspan(offset, std::min(kChunkBytes, part.end - offset));
  v1::WriteBufferRequest head;
  if (offset == part.begin) {
    *head.mutable_spec() = cargo.spec;
    if (!cargo.spec.upload().empty())
      head.mutable_spec()->set_part_bytes(static_cast<std::int64_t>(part.end - part.begin));
  }
  head.set_write_offset(static_cast<std::int64_t>(offset));
  head.set_finish_write(offset + data.size() == part.end);
  if (!data.empty()) {
    const std::uint32_t checksum = crc32c(data);
    head.set_crc32c(checksum);
    cargo.checksums[offset / kChunkBytes] = checksum;
  }
  return encode_chunk(head, data, memory);
}

/// Sends every chunk of a part; the next one's checksum is computed while gRPC writes the one before.
bool send_chunks(ByteStream& stream, Cargo& cargo, LentMemory& memory, TransferParts& parts,
                 std::size_t index) {
  const TransferPart& part = parts.part(index);
  std::size_t offset = part.begin;
  grpc::ByteBuffer chunk = chunk_at(offset, part, cargo, memory);
  while (true) {
    const std::size_t end = std::min(offset + kChunkBytes, part.end);
    const bool last = end == part.end;
    stream.start_write(chunk, last);
    if (!last) chunk = chunk_at(end, part, cargo, memory);
    if (!stream.wait()) return false;
    parts.report(index, end - part.begin);
    if (last) return true;
    offset = end;
  }
}

/// The upload of one array.
class ArrayUpload {
 public:
  ArrayUpload(Connection& connection, const CallContext& context, absl::Time deadline, Cargo& cargo)
      : connection_(connection), context_(context), deadline_(deadline), cargo_(cargo) {}

  /// Brings one part, and waits for the others.
  absl::Status bring(TransferParts& parts, std::size_t index) {
    TransferRetry retry(deadline_, parts.settled());
    // Once another stream has the answer, this one has it too and reads it, unless it had to begin again.
    int lane = static_cast<int>(index);
    absl::Status status = attempt(parts, index, lane, parts.stop());
    while (!status.ok() && retry.wait_after(status)) {
      if (is_break(status)) lane = 0;
      status = attempt(parts, index, lane, parts.settled());
    }
    return status;
  }

  const v1::Buffer& buffer() const { return buffer_; }

 private:
  absl::Status attempt(TransferParts& parts, std::size_t index, int lane, const Cancellation& cancellation) {
    LentMemory memory;  // which gRPC gives back once the stream is gone
    grpc::ByteBuffer answer;
    ByteStream stream(connection_, lane, "/cumulus.v1.BufferTransfer/WriteBuffer", context_, deadline_,
                      cancellation);
    if (send_chunks(stream, cargo_, memory, parts, index)) {
      stream.start_read(answer);
      stream.wait();
    }
    if (absl::Status status = stream.finish(); !status.ok()) return status;
    const std::lock_guard lock(mutex_);
    return wire::parse(answer, buffer_);
  }

  Connection& connection_;
  const CallContext& context_;
  const absl::Time deadline_;
  Cargo& cargo_;
  std::mutex mutex_;
  v1::Buffer buffer_;
};

/// Tells the same bytes from others, over however many connections they went.
std::uint32_t checksum_of(const std::vector<std::uint32_t>& chunks) {
  return crc32c(std::as_bytes(std::span(chunks)));
}

absl::StatusOr<Uploaded> upload_over(int connections, Connection& connection, const CallContext& context,
                                     v1::WriteSpec spec, std::span<const std::byte> bytes,
                                     const UploadOptions& options) {
  const absl::Time deadline = connection.deadline(options.call, transfer_allowance(bytes.size()));
  TransferParts parts(split_transfer(bytes.size(), connections), options.call.cancellation, options.progress);
  if (parts.count() > 1) spec.set_upload(make_uuid());
  Cargo cargo{spec, bytes, std::vector<std::uint32_t>((bytes.size() + kChunkBytes - 1) / kChunkBytes)};
  ArrayUpload upload(connection, context, deadline, cargo);
  const absl::Time start = steady_now();
  const absl::Status status = parts.run(TransferParts::EndsWith::kAnyPart,
                                        [&](std::size_t index) { return upload.bring(parts, index); });
  if (!status.ok()) return status;
  connection.upload_connections().note(static_cast<int>(parts.count()), bytes.size(), steady_now() - start);
  return Uploaded{upload.buffer(), checksum_of(cargo.checksums)};
}

}  // namespace

absl::StatusOr<Uploaded> write_buffer(Connection& connection, const CallContext& context,
                                      const v1::WriteSpec& spec, std::span<const std::byte> bytes,
                                      const UploadOptions& options, Checksum checksum) {
  if (options.connections == 0) {
    auto uploaded = write_shared_array(connection, context, spec, bytes, options, checksum);
    if (!uploaded.has_value())
      uploaded = write_through_ring(connection, context, spec, bytes, options, checksum);
    if (uploaded.has_value()) return *std::move(uploaded);
  }
  int connections =
      options.connections > 0 ? options.connections : connection.upload_connections().choose(bytes.size());
  if (!connection.joins_uploads()) connections = 1;
  FewerConnections fewer(connections, options.call.cancellation);
  while (true) {
    absl::StatusOr<Uploaded> uploaded =
        upload_over(fewer.connections(), connection, context, spec, bytes, options);
    if (uploaded.ok() || !fewer.wait_after(uploaded.status())) return uploaded;
  }
}

}  // namespace cumulus
