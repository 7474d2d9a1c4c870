#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "cumulus/session.h"
#include "cumulus/v1/transfer.pb.h"
#include "library/connection.h"

namespace cumulus {

inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

struct Uploaded {
  v1::Buffer buffer;
  std::uint32_t checksum = 0;  // of the chunks' checksums: tells the same bytes from others
};

/// Whether Uploaded::checksum is needed: through shared memory it is an effort of its own.
enum class Checksum { kWanted, kUnwanted };

/// Of a buffer that is to be in `session`; of `options`, what says how long it stays and who asks.
v1::WriteSpec write_spec(const std::string& session, ElementType type, const Shape& shape,
                         const UploadOptions& options);

/// Uploads `bytes` as the buffer that `spec` describes; see Session::upload.
absl::StatusOr<Uploaded> write_buffer(Connection& connection, const CallContext& context,
                                      const v1::WriteSpec& spec, std::span<const std::byte> bytes,
                                      const UploadOptions& options, Checksum checksum);

/// Downloads the buffer `name`, of exactly destination.size() bytes; see Session::download.
absl::Status read_buffer(Connection& connection, const CallContext& context, const std::string& name,
                         std::span<std::byte> destination, const DownloadOptions& options);

}  // namespace cumulus
