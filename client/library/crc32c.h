#pragma once

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cumulus {

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of `bytes`.
inline std::uint32_t crc32c(std::span<const std::byte> bytes) {
  constexpr std::size_t kMaxPiece = 1U << 30;  // ISA-L takes an int
  std::uint32_t crc = 0xffffffffU;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kMaxPiece));
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(piece.data()));
    crc = crc32_iscsi(data, static_cast<int>(piece.size()), crc);
    bytes = bytes.subspan(piece.size());
  }
  return ~crc;
}

}  // namespace cumulus
