#include "server/runtime/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace cumulus::server {

void Crc32c::update(std::span<const std::byte> bytes) {
  constexpr std::size_t kMaxPiece = std::size_t{1} << 30;  // ISA-L's lengths are ints
  while (!bytes.empty()) {
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kMaxPiece));
    // ISA-L takes a pointer to non-const and only reads.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(piece.data()));
    state_ = crc32_iscsi(data, static_cast<int>(piece.size()), state_);
    bytes = bytes.subspan(piece.size());
  }
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  Crc32c crc;
  crc.update(bytes);
  return crc.value();
}

}  // namespace cumulus::server
