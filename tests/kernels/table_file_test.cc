#include "cumulus/table_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "cumulus/sampling.h"

namespace cumulus::sampling {
namespace {

constexpr std::size_t kTableBytes = 768;

/// One row of two cells, a quarter and three quarters, by binary search; with its checksum, as in a file.
std::vector<std::uint64_t> small_table(std::uint32_t layers = 1) {
  std::vector<std::uint64_t> words(kTableBytes / 8);
  auto* bytes = reinterpret_cast<unsigned char*>(words.data());
  TableHeader header;
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = 2;
  header.header_bytes = kHeaderBytes;
  header.total_bytes = kTableBytes;
  header.width = 2;
  header.height = 1;
  header.layers = layers;
  header.projection = Projection::kPlane;
  header.method = Method::kBinarySearch;
  header.marginal_cdf_offset = 256;
  header.row_cdf_offset = 512;
  const std::uint32_t row[2] = {0, 0x40000000u};
  std::memcpy(bytes + 512, row, sizeof(row));
  std::memcpy(bytes, &header, sizeof(header));
  header.crc32c = detail::checksum_of(bytes, kTableBytes);
  std::memcpy(bytes, &header, sizeof(header));
  return words;
}

/// Into a file of the test's own: others run at the same time.
std::string write(const std::vector<std::uint64_t>& words, std::size_t size) {
  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path = testing::TempDir() + "/table_file_test." + test + ".cst";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(size));
  return path;
}

TEST(TableFile, ComputesCrc32c) {
  const detail::Crc32c crc;
  const char* digits = "123456789";  // the check value of the CRC catalogue
  EXPECT_EQ(crc.extend(0, reinterpret_cast<const unsigned char*>(digits), 9), 0xE3069283u);
  const std::vector<unsigned char> zeros(32);
  EXPECT_EQ(crc.extend(0, zeros.data(), 32), 0x8A9136AAu);  // RFC 3720, B.4
  const std::uint32_t first = crc.extend(0, zeros.data(), 13);
  EXPECT_EQ(crc.extend(first, zeros.data(), 19), 0x8A9136AAu);
}

TEST(TableFile, OpensAFile) {
  OpenedTable opened = open_table(write(small_table(), kTableBytes).c_str());
  ASSERT_TRUE(opened) << opened.what();
  const OpenedTable moved = std::move(opened);
  EXPECT_FLOAT_EQ(pdf(moved.view, 0.75F, 0.5F), 1.5F);
  EXPECT_EQ(sample(moved.view, 0x3FFFFFFFu, 0).x, 0u);
}

TEST(TableFile, OpensAFileThatEndsWithAStepOfReading) {
  constexpr std::size_t kStep = std::size_t{1} << 20;
  std::vector<std::uint64_t> words = small_table();
  words.resize(kStep / 8);
  auto* bytes = reinterpret_cast<unsigned char*>(words.data());
  const std::uint64_t total = kStep;
  std::memcpy(bytes + offsetof(TableHeader, total_bytes), &total, sizeof(total));
  const std::uint32_t checksum = detail::checksum_of(bytes, kStep);
  std::memcpy(bytes + offsetof(TableHeader, crc32c), &checksum, sizeof(checksum));
  const OpenedTable opened = open_table(write(words, kStep).c_str());
  EXPECT_TRUE(opened) << opened.what();
}

TEST(TableFile, RefusesWhatIsNoFile) {
  EXPECT_EQ(open_table("/nonexistent/table.cst").error, OpenError::kCannotOpen);
  const OpenedTable folder = open_table(testing::TempDir().c_str());
  EXPECT_FALSE(folder);
}

TEST(TableFile, RefusesTruncatedFiles) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{255}, std::size_t{256}, kTableBytes - 1}) {
    const OpenedTable opened = open_table(write(small_table(), size).c_str());
    EXPECT_EQ(opened.error, OpenError::kBadHeader) << size;
    EXPECT_STREQ(opened.what(), describe(opened.header_error));
  }
}

TEST(TableFile, RefusesEachFlippedBit) {
  for (std::size_t bit = 0; bit < kTableBytes * 8; ++bit) {
    std::vector<std::uint64_t> words = small_table();
    reinterpret_cast<unsigned char*>(words.data())[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
    EXPECT_FALSE(map_table(words.data(), kTableBytes)) << "bit " << bit;
  }
}

TEST(TableFile, TakesATableInMemoryWithoutChecksum) {
  std::vector<std::uint64_t> words = small_table();
  std::memset(reinterpret_cast<unsigned char*>(words.data()) + offsetof(TableHeader, crc32c), 0, 4);
  EXPECT_TRUE(map_table(words.data(), kTableBytes));
  EXPECT_EQ(open_table(write(words, kTableBytes).c_str()).error, OpenError::kWrongChecksum);
}

TEST(TableFile, SkipsTheChecksumOnRequest) {
  std::vector<std::uint64_t> words = small_table();
  words.back() = 1;
  EXPECT_EQ(map_table(words.data(), kTableBytes).error, OpenError::kWrongChecksum);
  EXPECT_TRUE(map_table(words.data(), kTableBytes, 0, Checksum::kSkip));
}

TEST(TableFile, RefusesMisalignedMemoryAndMissingLayers) {
  const std::vector<std::uint64_t> words = small_table();
  EXPECT_EQ(map_table(reinterpret_cast<const unsigned char*>(words.data()) + 4, kTableBytes - 4).error,
            OpenError::kNotAligned);
  EXPECT_EQ(map_table(words.data(), kTableBytes, 1).error, OpenError::kNoSuchLayer);
}

}  // namespace
}  // namespace cumulus::sampling
