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

/// Uploads `bytes` as the buffer that `spec` describes; see Session::upload.
absl::StatusOr<v1::Buffer> write_buffer(Connection& connection, const v1::WriteSpec& spec,
                                        std::span<const std::byte> bytes, const UploadOptions& options);

/// Downloads the buffer `name`, of exactly destination.size() bytes; see Session::download.
absl::Status read_buffer(Connection& connection, const std::string& name, std::span<std::byte> destination,
                         const DownloadOptions& options);

}  // namespace cumulus
