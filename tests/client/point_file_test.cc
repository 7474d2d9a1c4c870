#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "cli/files/half_float.h"
#include "cli/files/npy.h"
#include "cli/files/npz.h"
#include "cli/files/npz_reader.h"
#include "cli/files/points.h"
#include "tests/support/temporary_folder.h"

namespace cumulus::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PointFile : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string read_bytes(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  template <class T>
  static std::vector<T> values(const absl::StatusOr<Array>& array) {
    if (!array.ok()) return {};
    const auto elements = array->values<T>();
    return elements.ok() ? std::vector<T>(elements->begin(), elements->end()) : std::vector<T>();
  }
  static std::string error(const absl::StatusOr<Array>& array) {
    return std::string(array.status().message());
  }

  const testing::TemporaryFolder folder_;
};

std::string ply_header(const std::string& format) {
  return "ply\nformat " + format +
         " 1.0\ncomment two corners\nelement vertex 2\nproperty uchar red\nproperty float x\nproperty float "
         "y\n"
         "property float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n";
}

std::string bytes_of(float x, bool reversed) {
  std::string bytes(sizeof(x), '\0');
  std::memcpy(bytes.data(), &x, sizeof(x));
  if (reversed) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

TEST_F(PointFile, ReadsPlyInItsThreeFormats) {
  const auto binary = [](bool big) {
    std::string bytes = ply_header(big ? "binary_big_endian" : "binary_little_endian");
    for (const float first : {1.0f, 4.0f}) {
      bytes += '\x07';
      for (const float step : {0.0f, 1.0f, 2.5f}) bytes += bytes_of(first + step, big);
    }
    return bytes;
  };
  for (const std::string& file : {write("a.ply", ply_header("ascii") + "7 1 2 3.5\n7 4 5 6.5\n3 0 1 1\n"),
                                  write("b.ply", binary(false)), write("c.ply", binary(true))}) {
    const auto points = read_points(file);
    ASSERT_TRUE(points.ok()) << points.status();
    EXPECT_THAT(points->shape(), ElementsAre(2, 3));
    EXPECT_THAT(values<float>(points), ElementsAre(1, 2, 3.5f, 4, 5, 6.5f)) << file;
  }
}

TEST_F(PointFile, KeepsDoublesOfAPly) {
  const auto points = read_points(
      write("d.ply",
            "ply\r\nformat ascii 1.0\r\nelement vertex 1\r\nproperty double x\r\nproperty double y\r\n"
            "property double z\r\nend_header\r\n0.1 0.2 0.3\r\n"));
  EXPECT_THAT(values<double>(points), ElementsAre(0.1, 0.2, 0.3));
}

TEST_F(PointFile, KnowsSignedFromUnsignedIntegersOfAPly) {
  const auto corner = [&](const std::string& types, const std::string& bytes) {
    return values<float>(
        read_points(write("t.ply", "ply\nformat binary_little_endian 1.0\nelement vertex 1\n" + types +
                                       "end_header\n" + bytes)));
  };
  const auto all_of = [](const std::string& type) {
    return "property " + type + " x\nproperty " + type + " y\nproperty float z\n";
  };
  const std::string one = bytes_of(1, false);
  EXPECT_THAT(corner(all_of("char"), "\xff\x01" + one), ElementsAre(-1, 1, 1));
  EXPECT_THAT(corner(all_of("uchar"), "\xff\x01" + one), ElementsAre(255, 1, 1));
  EXPECT_THAT(corner(all_of("int16"), "\xfe\xff\x02\x01" + one), ElementsAre(-2, 258, 1));
  EXPECT_THAT(corner(all_of("ushort"), "\xfe\xff\x02\x01" + one), ElementsAre(65534, 258, 1));
  EXPECT_THAT(corner(all_of("int"), "\xfe\xff\xff\xff\x02\x01\x01\x01" + one), ElementsAre(-2, 16843010, 1));
  EXPECT_THAT(corner(all_of("uint32"), "\xfe\xff\xff\xff\x02\x01\x01\x01" + one),
              ElementsAre(4294967296.0f, 16843010, 1));
}

TEST_F(PointFile, SaysWhatIsWrongWithAPly) {
  EXPECT_THAT(error(read_points(path("none.ply"))), HasSubstr("cannot open"));
  EXPECT_THAT(error(read_points(write("e.ply", "solid"))), HasSubstr("does not begin as a PLY file"));
  EXPECT_THAT(error(read_points(write("f.ply", "ply\nformat ascii 1.0\n"))),
              HasSubstr("header does not end"));
  EXPECT_THAT(error(read_points(write("g.ply", ply_header("ascii") + "7 1 2 3\n"))),
              HasSubstr("ends after 1 of its 2"));
  EXPECT_THAT(error(read_points(write("k.ply", ply_header("ascii") + "7 1 2 3\n7 4 5 6m\n"))),
              HasSubstr("ends after 1 of its 2"));
  EXPECT_THAT(error(read_points(write("h.ply", ply_header("utf8")))), HasSubstr("format is 'utf8'"));
  EXPECT_THAT(error(read_points(write("i.ply",
                                      "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty "
                                      "float y\nend_header\n1 2\n"))),
              HasSubstr("no z"));
  EXPECT_THAT(error(read_points(write("j.ply", "ply\nformat ascii 1.0\nelement face 1\nend_header\n"))),
              HasSubstr("first element is 'element face 1'"));
  EXPECT_THAT(error(read_points(write("l.ply", "ply\nformat ascii 1.0\nelement vertex -1\nend_header\n"))),
              HasSubstr("first element is 'element vertex -1'"));
}

TEST_F(PointFile, ReadsNpyAndNpz) {
  const std::vector<float> floats = {1, 2, 3, 4};
  const std::vector<double> doubles = {5, 6, 7, 8, 9, 10};
  ASSERT_TRUE(write_npy(path("a.npy"), ArrayView(floats, {2, 2})).ok());
  ASSERT_TRUE(
      write_npz(path("a.npz"), {{"other", ArrayView(floats)}, {"data", ArrayView(doubles, {2, 3})}}).ok());
  ASSERT_TRUE(write_npz(path("b.npz"), {{"anything", ArrayView(floats, {1, 4})}}).ok());
  EXPECT_THAT(values<float>(read_points(path("a.npy"))), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values<double>(read_points(path("a.npz"))), ElementsAre(5, 6, 7, 8, 9, 10));
  EXPECT_THAT(values<float>(read_points(path("b.npz"))), ElementsAre(1, 2, 3, 4));
}

TEST_F(PointFile, TakesNumbersOfEveryType) {
  const std::vector<std::uint8_t> bytes = {0, 255};
  const std::vector<std::int32_t> integers = {-5, 16777217};
  const std::vector<std::int64_t> wide = {-(std::int64_t{1} << 53), 7};
  const std::vector<std::uint16_t> halves = {0x3e00, 0xfc00};  // 1.5, -infinity
  ASSERT_TRUE(write_npy(path("a.npy"), ArrayView(bytes, {1, 2})).ok());
  ASSERT_TRUE(write_npy(path("b.npy"), ArrayView(integers, {1, 2})).ok());
  ASSERT_TRUE(write_npy(path("c.NPY"), ArrayView(wide, {1, 2})).ok());
  ASSERT_TRUE(
      write_npy(path("d.npy"), {ElementType::kFloat16, std::as_bytes(std::span(halves)), {1, 2}}).ok());
  EXPECT_THAT(values<float>(read_points(path("a.npy"))), ElementsAre(0, 255));
  EXPECT_THAT(values<double>(read_points(path("b.npy"))), ElementsAre(-5, 16777217));
  EXPECT_THAT(values<double>(read_points(path("c.NPY"))), ElementsAre(-9007199254740992.0, 7));
  EXPECT_THAT(values<float>(read_points(path("d.npy"))),
              ElementsAre(1.5f, -std::numeric_limits<float>::infinity()));
}

TEST_F(PointFile, RefusesWhatAreNoPoints) {
  const std::vector<float> floats = {1, 2, 3, 4};
  const std::vector<std::int64_t> integers = {1, (std::int64_t{1} << 53) + 1};
  ASSERT_TRUE(write_npy(path("a.npy"), ArrayView(floats)).ok());
  ASSERT_TRUE(write_npy(path("b.npy"), ArrayView(integers, {1, 2})).ok());
  ASSERT_TRUE(write_npz(path("a.npz"), {{"a", ArrayView(floats)}, {"b", ArrayView(floats)}}).ok());
  EXPECT_THAT(error(read_points(path("a.npy"))), HasSubstr("float32 [4]; [points, dimensions]"));
  EXPECT_THAT(error(read_points(path("b.npy"))), HasSubstr("integers beyond 2^53"));
  EXPECT_THAT(error(read_points(path("a.npz"))), HasSubstr("none is named points or data"));
  EXPECT_THAT(error(read_points(path("a.txt"))), HasSubstr(".ply, .npy or .npz"));
  ASSERT_TRUE(write_npy(path("c.npy"), ArrayView(floats, {4, 1})).ok());
  EXPECT_THAT(error(read_points(path("c.npy"))), HasSubstr("2 to 16 dimensions"));
  for (const char* name : {"f.ply", "f.npy", "f.npz"}) {
    std::filesystem::create_directory(path(name));
    EXPECT_THAT(error(read_points(path(name))), HasSubstr("it is a folder"));
  }
}

std::string little_endian(std::uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> 8 * i);
  return bytes;
}

std::string deflated(std::string bytes) {
  std::string packed(bytes.size() + 1000, '\0');
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.next_in = reinterpret_cast<std::uint8_t*>(bytes.data());
  stream.avail_in = static_cast<std::uint32_t>(bytes.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(packed.data());
  stream.avail_out = static_cast<std::uint32_t>(packed.size());
  EXPECT_EQ(isal_deflate_stateless(&stream), COMP_OK);
  packed.resize(stream.total_out);
  return packed;
}

/// An archive of one deflated file, as numpy.savez_compressed writes it.
std::string compressed_archive(const std::string& name, const std::string& bytes) {
  const std::string packed = deflated(bytes);
  const std::uint32_t crc =
      crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  const std::string said = little_endian(8, 2) + little_endian(0, 4) + little_endian(crc, 4) +
                           little_endian(packed.size(), 4) + little_endian(bytes.size(), 4) +
                           little_endian(name.size(), 2) + little_endian(0, 2);
  const std::string local = "PK\x03\x04" + little_endian(20, 4) + said + name + packed;
  const std::string directory = "PK\x01\x02" + little_endian(20, 2) + little_endian(20, 4) + said +
                                std::string(2 + 2 + 2 + 4 + 4, '\0') + name;
  return local + directory + "PK\x05\x06" + little_endian(0, 4) + little_endian(1, 2) + little_endian(1, 2) +
         little_endian(directory.size(), 4) + little_endian(local.size(), 4) + little_endian(0, 2);
}

TEST_F(PointFile, ReadsCompressedArchives) {
  const std::vector<double> numbers(3000, 0.75);
  ASSERT_TRUE(write_npy(path("a.npy"), {numbers, {1000, 3}}).ok());
  const std::string whole = compressed_archive("points.npy", read_bytes("a.npy"));
  EXPECT_LT(whole.size(), 2000u);
  const auto points = read_points(write("a.npz", whole));
  ASSERT_TRUE(points.ok()) << points.status();
  EXPECT_EQ(points->shape(), (Shape{1000, 3}));
  const auto values = points->values<double>();
  ASSERT_TRUE(values.ok());
  EXPECT_TRUE(std::equal(values->begin(), values->end(), numbers.begin(), numbers.end()));
  std::string wrong = whole;
  char& packed = wrong[wrong.find("points.npy") + 30];
  packed = static_cast<char>(packed ^ 1);
  EXPECT_THAT(error(read_points(write("b.npz", wrong))), HasSubstr("points.npy is damaged"));
  const std::size_t directory = whole.find("PK\x01\x02");
  for (const std::size_t size : {directory + 20, directory + 24}) {
    wrong = whole;
    wrong.replace(size, 4, "\xff\xff\xff\xff");
    EXPECT_THAT(error(read_points(write("c.npz", wrong))), HasSubstr("points.npy is damaged"));
  }
  wrong = whole;
  wrong[directory + 16] = static_cast<char>(wrong[directory + 16] ^ 1);  // its checksum
  EXPECT_THAT(error(read_points(write("e.npz", wrong))), HasSubstr("points.npy is damaged"));
  // A byte more, and the checksum of that.
  const std::string longer = read_bytes("a.npy") + std::string(1, '\0');
  const auto crc = crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(longer.data()), longer.size());
  wrong = whole;
  wrong.replace(directory + 16, 4, little_endian(crc, 4));
  wrong.replace(directory + 24, 4, little_endian(longer.size(), 4));
  EXPECT_THAT(error(read_points(write("f.npz", wrong))), HasSubstr("points.npy is damaged"));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    wrong = whole;
    wrong[i] = static_cast<char>(wrong[i] ^ 0x55);
    (void)read_points(write("d.npz", wrong)).ok();
  }
}

TEST(HalfFloat, StandsForWhatItsBitsSay) {
  EXPECT_EQ(float_from_half(0x3c00), 1.0F);
  EXPECT_EQ(float_from_half(0xc500), -5.0F);
  EXPECT_EQ(float_from_half(0x7bff), 65504.0F);
  EXPECT_EQ(float_from_half(0x0001), 0x1p-24F);  // the smallest, without a leading one
  EXPECT_EQ(float_from_half(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(float_from_half(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_NE(float_from_half(0x7e00), float_from_half(0x7e00));  // NaN
}

TEST_F(PointFile, RefusesDamagedArchives) {
  const std::vector<float> floats = {1, 2, 3, 4};
  ASSERT_TRUE(write_npz(path("a.npz"), {{"points", ArrayView(floats, {2, 2})}}).ok());
  const std::string whole = read_bytes("a.npz");
  EXPECT_THAT(error(read_points(write("b.npz", whole.substr(0, whole.size() - 1)))),
              HasSubstr("does not end"));
  std::string compressed = whole;
  compressed[whole.find("PK\x01\x02") + 10] = 12;
  EXPECT_THAT(error(read_points(write("c.npz", compressed))),
              HasSubstr("points.npy is compressed by method 12"));
  std::string astray = whole;
  astray[whole.find("PK\x01\x02") + 42] = 1;
  EXPECT_THAT(error(read_points(write("d.npz", astray))), HasSubstr("points nowhere"));
  std::string unknown = whole;
  unknown[whole.find("PK\x01\x02") + 2] = 7;
  EXPECT_THAT(error(read_points(write("f.npz", unknown))), HasSubstr("its directory is damaged"));
  // Whatever byte is wrong, it is an answer or an error.
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x55);
    (void)read_points(write("e.npz", flipped)).ok();
  }
}

}  // namespace
}  // namespace cumulus::cli
