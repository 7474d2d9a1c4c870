#include <absl/strings/str_cat.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "library/byte_stream.h"
#include "library/transfer.h"
#include "library/transfer_retry.h"
#include "proto/checksums.h"

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

/// One array on its way.
struct Cargo {
  const v1::WriteSpec& spec;
  std::span<const std::byte> bytes;
  LentMemory memory = {};
  std::uint32_t checksum = 0;  // of the checksums so far
};

/// The message that carries the bytes from `offset` on.
grpc::ByteBuffer chunk_at(std::size_t offset, Cargo& cargo) {
  const std::span<const std::byte> bytes = cargo.bytes;
  const auto data = bytes.subspan(offset, std::min(kChunkBytes, bytes.size() - offset));
  v1::WriteBufferRequest head;
  if (offset == 0) *head.mutable_spec() = cargo.spec;
  head.set_write_offset(static_cast<std::int64_t>(offset));
  head.set_finish_write(offset + data.size() == bytes.size());
  if (!data.empty()) {
    const std::uint32_t both[] = {cargo.checksum, crc32c(data)};
    head.set_crc32c(both[1]);
    cargo.checksum = crc32c(std::as_bytes(std::span(both)));
  }
  return encode_chunk(head, data, cargo.memory);
}

/// Sends every chunk; the next one's checksum is computed while gRPC writes the one before.
bool send_chunks(ByteStream& stream, Cargo& cargo, const TransferProgress& progress) {
  const std::span<const std::byte> bytes = cargo.bytes;
  std::size_t offset = 0;
  grpc::ByteBuffer chunk = chunk_at(offset, cargo);
  while (true) {
    const std::size_t end = std::min(offset + kChunkBytes, bytes.size());
    const bool last = end == bytes.size();
    stream.start_write(chunk, last);
    if (!last) chunk = chunk_at(end, cargo);
    if (!stream.wait()) return false;
    if (progress) progress(static_cast<std::int64_t>(end), static_cast<std::int64_t>(bytes.size()));
    if (last) return true;
    offset = end;
  }
}

absl::StatusOr<Uploaded> attempt_upload(ByteStream& stream, Cargo& cargo, const TransferProgress& progress) {
  grpc::ByteBuffer answer;
  if (send_chunks(stream, cargo, progress)) {
    stream.start_read(answer);
    stream.wait();
  }
  if (absl::Status status = stream.finish(); !status.ok()) return status;
  Uploaded uploaded;
  if (absl::Status parsed = wire::parse(answer, uploaded.buffer); !parsed.ok()) return parsed;
  uploaded.checksum = cargo.checksum;
  return uploaded;
}

}  // namespace

absl::StatusOr<Uploaded> write_buffer(Connection& connection, const CallContext& context,
                                      const v1::WriteSpec& spec, std::span<const std::byte> bytes,
                                      const UploadOptions& options) {
  const absl::Time deadline = connection.deadline(options.call, transfer_allowance(bytes.size()));
  TransferRetry retry(deadline, options.call.cancellation);
  while (true) {
    Cargo cargo{spec, bytes};  // which gRPC gives back once the stream is gone
    absl::StatusOr<Uploaded> uploaded;
    {
      ByteStream stream(connection, "/cumulus.v1.BufferTransfer/WriteBuffer", context, deadline,
                        options.call.cancellation);
      uploaded = attempt_upload(stream, cargo, options.progress);
    }
    if (uploaded.ok() || !retry.wait_after(uploaded.status())) return uploaded;
  }
}

}  // namespace cumulus
