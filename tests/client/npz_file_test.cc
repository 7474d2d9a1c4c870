#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cli/files/npy.h"
#include "cli/files/npz.h"
#include "tests/support/temporary_folder.h"

namespace cumulus::cli {
namespace {

/// One bit after the other, as the zip format's appendix defines it.
std::uint32_t plain_crc32(const std::string& bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc % 2 != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

class NpzFile : public ::testing::Test {
 protected:
  std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::uint32_t number(const std::string& bytes, std::size_t at, int count) {
    std::uint32_t value = 0;
    for (int i = count - 1; i >= 0; --i)
      value = value << 8 | static_cast<unsigned char>(bytes.at(at + static_cast<std::size_t>(i)));
    return value;
  }

  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "arrays.npz";
  const std::string member_path_ = folder_ / "member.npy";
};

TEST_F(NpzFile, IsAZipArchiveOfNpyFiles) {
  const std::vector<float> first = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> second = {-7};
  ASSERT_TRUE(write_npz(path_, {{"points", {first, {2, 3}}}, {"count", ArrayView(second)}}).ok());
  const std::string zip = read();

  const std::size_t end = zip.size() - 22;
  ASSERT_EQ(number(zip, end, 4), 0x06054b50u);
  ASSERT_EQ(number(zip, end + 10, 2), 2u);
  std::size_t record = number(zip, end + 16, 4);
  EXPECT_EQ(record + number(zip, end + 12, 4), end);
  for (const std::string name : {"points.npy", "count.npy"}) {
    ASSERT_EQ(number(zip, record, 4), 0x02014b50u);
    EXPECT_EQ(zip.substr(record + 46, number(zip, record + 28, 2)), name);
    const std::size_t local = number(zip, record + 42, 4);
    ASSERT_EQ(number(zip, local, 4), 0x04034b50u);
    EXPECT_EQ(zip.substr(local + 4, 26), zip.substr(record + 6, 26)) << "the two descriptions differ";
    const std::string member = zip.substr(local + 30 + name.size(), number(zip, record + 24, 4));
    EXPECT_EQ(number(zip, record + 16, 4), plain_crc32(member));
    std::ofstream(member_path_, std::ios::binary) << member;
    const auto array = read_npy(member_path_);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->shape(), name == "points.npy" ? (Shape{2, 3}) : (Shape{1}));
    if (name == "points.npy") {
      EXPECT_EQ(std::vector<float>(array->values<float>()->begin(), array->values<float>()->end()), first);
    }
    record += 46 + name.size();
  }
  EXPECT_EQ(record, end);
}

TEST_F(NpzFile, SaysWhereItCannotBeWritten) {
  const std::vector<float> values = {1};
  const absl::Status status = write_npz("/no/such/folder/a.npz", {{"a", ArrayView(values)}});
  EXPECT_NE(status.message().find("/no/such/folder/a.npz"), absl::string_view::npos) << status;
}

TEST_F(NpzFile, RefusesWhatTheFormatCannotHold) {
  // Never read: the refusal comes before the bytes.
  const std::span<const std::byte> huge(reinterpret_cast<const std::byte*>(this), std::size_t{1} << 32);
  const absl::Status status =
      write_npz(path_, {{"a", ArrayView(ElementType::kUint8, huge, {std::int64_t{1} << 32})}});
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace cumulus::cli
