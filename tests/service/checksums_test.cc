#include "proto/checksums.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace cumulus {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Bit by bit, from the polynomial: the oracle.
std::uint32_t serial_crc(std::span<const std::byte> bytes, std::uint32_t reflected_polynomial) {
  std::uint32_t state = 0xFFFFFFFF;
  for (const std::byte byte : bytes) {
    state ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? reflected_polynomial : 0);
  }
  return ~state;
}

std::vector<std::byte> noise(std::size_t size) {
  std::mt19937 random(7);
  std::vector<std::byte> data(size);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

TEST(Checksums, MatchThePublishedCheckValues) {
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8A9136AAu);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xff'))), 0x62A8AB43u);
  EXPECT_EQ(crc32_of_zip({}), 0u);
  EXPECT_EQ(crc32_of_zip(bytes_of("123456789")), 0xCBF43926u);
}

TEST(Checksums, MatchTheBitwiseDefinitionAtEveryLengthAndAlignment) {
  const std::vector<std::byte> data = noise(1200);
  for (std::size_t first = 0; first < 9; ++first) {
    for (std::size_t size = 0; size < 1100; size += 13) {
      const std::span<const std::byte> piece = std::span(data).subspan(first, size);
      ASSERT_EQ(crc32c(piece), serial_crc(piece, 0x82F63B78)) << first << " + " << size;
      ASSERT_EQ(crc32_of_zip(piece), serial_crc(piece, 0xEDB88320)) << first << " + " << size;
    }
  }
}

TEST(Checksums, PiecesGiveWhatTheWholeGives) {
  const std::span<const std::byte> text = bytes_of("the quick brown fox jumps over the lazy dog");
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(text.subspan(cut), crc32c({}, crc32c(text.first(cut)))), crc32c(text));
    EXPECT_EQ(crc32_of_zip(text.subspan(cut), crc32_of_zip(text.first(cut))), crc32_of_zip(text));
  }
}

#if defined(__x86_64__)
using UpperHalves = std::array<std::array<std::uint64_t, 4>, 8>;

/// Registers 8 to 15 as they are: no argument and no result of a function travels in these.
[[gnu::target("avx"), gnu::noinline]] UpperHalves vector_registers() {
  UpperHalves registers;
  asm volatile(
      "vmovdqu %%ymm8, (%1)\n vmovdqu %%ymm9, 32(%1)\n"
      "vmovdqu %%ymm10, 64(%1)\n vmovdqu %%ymm11, 96(%1)\n"
      "vmovdqu %%ymm12, 128(%1)\n vmovdqu %%ymm13, 160(%1)\n"
      "vmovdqu %%ymm14, 192(%1)\n vmovdqu %%ymm15, 224(%1)\n"
      : "=m"(registers)
      : "r"(registers.data()));
  return registers;
}

void expect_no_upper_halves(const UpperHalves& registers) {
  for (const auto& words : registers) EXPECT_EQ(words[2] | words[3], 0u);
}

/// Or the caller's own code is slow from then on.
TEST(Checksums, LeaveTheUpperHalvesOfTheVectorRegistersEmpty) {
  if (!__builtin_cpu_supports("avx")) GTEST_SKIP() << "this processor has no AVX";
  const std::vector<std::byte> data = noise(std::size_t{1} << 20);
  const std::uint32_t first = crc32c(data);
  expect_no_upper_halves(vector_registers());
  EXPECT_EQ(first, crc32c(data));
  const std::uint32_t second = crc32_of_zip(data);
  expect_no_upper_halves(vector_registers());
  EXPECT_EQ(second, crc32_of_zip(data));
}
#endif

}  // namespace
}  // namespace cumulus
