#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cumulus/v1/transfer.pb.h"

namespace cumulus::server {

/// A cumulus.v1.WriteBufferRequest whose data has not been copied out of the message that it came in.
struct UploadChunk {
  std::optional<v1::WriteSpec> spec;
  std::int64_t write_offset = 0;
  std::optional<std::uint32_t> crc32c;
  bool finish_write = false;
  std::vector<std::span<const std::byte>> data;  // in order; inside the message
  std::size_t data_bytes = 0;
};

/// Reads a chunk; `message` must live, unchanged, as long as the chunk's data is used. INVALID_ARGUMENT where
/// the message is no WriteBufferRequest.
absl::Status parse_upload_chunk(grpc::ByteBuffer& message, UploadChunk& chunk);

/// A cumulus.v1.ReadBufferResponse that carries `data` itself, whatever memory that is, and no copy of it.
grpc::ByteBuffer make_download_chunk(std::int64_t offset, std::uint32_t crc32c, const grpc::Slice& data);

}  // namespace cumulus::server
