#pragma once

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

/// The checksums that both ends of the wire and the files of this project carry.
namespace cumulus {

#if defined(__x86_64__)
/// ISA-L's functions for AVX and AVX-512 return with values in the upper halves of the vector registers.
/// Where these are not zero, every SSE instruction that the thread runs afterwards waits for them: exp and
/// pow in the caller's own code became 30 times slower.
[[gnu::target("avx")]] inline void clear_upper_halves() { __builtin_ia32_vzeroupper(); }
inline void leave_vector_code() {
  if (__builtin_cpu_supports("avx")) clear_upper_halves();
}
#else
inline void leave_vector_code() {}
#endif

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of bytes of which `before` is that of the first ones, and
/// `bytes` are those that follow; 0 is the CRC-32C of nothing.
inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  constexpr std::size_t kMaxPiece = std::size_t{1} << 30;  // ISA-L takes an int
  std::uint32_t state = ~before;
  while (!bytes.empty()) {
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kMaxPiece));
    // ISA-L takes a pointer to non-const and only reads.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(piece.data()));
    state = crc32_iscsi(data, static_cast<int>(piece.size()), state);
    bytes = bytes.subspan(piece.size());
  }
  leave_vector_code();
  return ~state;
}

/// The same for the CRC-32 of zip archives (PKWARE's APPNOTE, 4.4.7).
inline std::uint32_t crc32_of_zip(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  const std::uint32_t crc =
      crc32_gzip_refl(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  leave_vector_code();
  return crc;
}

}  // namespace cumulus
