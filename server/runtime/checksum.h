#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cumulus::server {

/// CRC-32C (Castagnoli), as the transfer RPCs carry it, of bytes that come in pieces.
class Crc32c {
 public:
  void update(std::span<const std::byte> bytes);
  /// Of everything so far; 0 of nothing.
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = ~std::uint32_t{0};
};

/// Of one piece.
std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace cumulus::server
