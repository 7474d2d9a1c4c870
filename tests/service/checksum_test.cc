#include "server/runtime/checksum.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace cumulus::server {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Bit by bit, from the polynomial: the oracle.
std::uint32_t serial_crc32c(std::span<const std::byte> bytes) {
  constexpr std::uint32_t kReflectedPolynomial = 0x82F63B78;
  std::uint32_t state = 0xFFFFFFFF;
  for (const std::byte byte : bytes) {
    state ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? kReflectedPolynomial : 0);
  }
  return ~state;
}

TEST(Checksum, MatchesThePublishedCheckValue) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Checksum, MatchesTheBitwiseDefinitionAtEveryLengthAndAlignment) {
  std::mt19937 random(7);
  std::vector<std::byte> data(1200);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  for (std::size_t first = 0; first < 9; ++first) {
    for (std::size_t size = 0; size < 1100; size += 13) {
      const std::span<const std::byte> piece = std::span(data).subspan(first, size);
      ASSERT_EQ(crc32c(piece), serial_crc32c(piece)) << first << " + " << size;
    }
  }
}

TEST(Checksum, PiecesGiveWhatTheWholeGives) {
  const std::string_view text = "the quick brown fox jumps over the lazy dog";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Crc32c crc;
    crc.update(bytes_of(text.substr(0, cut)));
    crc.update({});
    crc.update(bytes_of(text.substr(cut)));
    EXPECT_EQ(crc.value(), crc32c(bytes_of(text)));
  }
}

}  // namespace
}  // namespace cumulus::server
