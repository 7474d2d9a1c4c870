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

/// The message that carries the bytes from `offset` on.
grpc::ByteBuffer chunk_at(std::size_t offset, std::span<const std::byte> bytes, const v1::WriteSpec& spec,
                          LentMemory& memory) {
  const auto data = bytes.subspan(offset, std::min(kChunkBytes, bytes.size() - offset));
  v1::WriteBufferRequest head;
  if (offset == 0) *head.mutable_spec() = spec;
  head.set_write_offset(static_cast<std::int64_t>(offset));
  head.set_finish_write(offset + data.size() == bytes.size());
  if (!data.empty()) head.set_crc32c(crc32c(data));
  return encode_chunk(head, data, memory);
}

/// Sends every chunk; the next one's checksum is computed while gRPC writes the one before.
bool send_chunks(ByteStream& stream, const v1::WriteSpec& spec, std::span<const std::byte> bytes,
                 LentMemory& memory, const TransferProgress& progress) {
  std::size_t offset = 0;
  grpc::ByteBuffer chunk = chunk_at(offset, bytes, spec, memory);
  while (true) {
    const std::size_t end = std::min(offset + kChunkBytes, bytes.size());
    const bool last = end == bytes.size();
    stream.start_write(chunk, last);
    if (!last) chunk = chunk_at(end, bytes, spec, memory);
    if (!stream.wait()) return false;
    if (progress) progress(static_cast<std::int64_t>(end), static_cast<std::int64_t>(bytes.size()));
    if (last) return true;
    offset = end;
  }
}

absl::StatusOr<v1::Buffer> attempt_upload(Connection& connection, const v1::WriteSpec& spec,
                                          std::span<const std::byte> bytes, absl::Time deadline,
                                          const UploadOptions& options) {
  LentMemory memory;
  grpc::ByteBuffer answer;
  ByteStream stream(connection, "/cumulus.v1.BufferTransfer/WriteBuffer", deadline,
                    options.call.cancellation);
  if (send_chunks(stream, spec, bytes, memory, options.progress)) {
    stream.start_read(answer);
    stream.wait();
  }
  if (absl::Status status = stream.finish(); !status.ok()) return status;
  v1::Buffer buffer;
  if (absl::Status parsed = wire::parse(answer, buffer); !parsed.ok()) return parsed;
  return buffer;
}

}  // namespace

absl::StatusOr<v1::Buffer> write_buffer(Connection& connection, const v1::WriteSpec& spec,
                                        std::span<const std::byte> bytes, const UploadOptions& options) {
  const absl::Time deadline = connection.deadline(options.call, transfer_allowance(bytes.size()));
  TransferRetry retry(deadline, options.call.cancellation);
  while (true) {
    absl::StatusOr<v1::Buffer> buffer = attempt_upload(connection, spec, bytes, deadline, options);
    if (buffer.ok() || !retry.wait_after(buffer.status())) return buffer;
  }
}

}  // namespace cumulus
