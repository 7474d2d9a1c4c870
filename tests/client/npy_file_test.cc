#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/files/npy.h"
#include "tests/support/process_accounts.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tries.h"

namespace cumulus::cli {
namespace {

class NpyFile : public ::testing::Test {
 protected:
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string error() const { return std::string(read_npy(path_).status().message()); }

  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "array.npy";
};

TEST_F(NpyFile, ReadsWhatItWrote) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(write_npy(path_, {values, {2, 3}}).ok());
  const auto array = read_npy(path_);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->type(), ElementType::kFloat64);
  EXPECT_EQ(array->shape(), (Shape{2, 3}));
  const auto read = array->values<double>();
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::vector<double>(read->begin(), read->end()), values);
}

TEST_F(NpyFile, ReadsTheLongerHeadersOfVersions2And3) {
  const std::string first = npy_header("'|u1'", {3});  // of version 1: ten bytes, then the dictionary
  const std::string dictionary = first.substr(10);
  for (const char version : {'\x02', '\x03'}) {
    const auto size = static_cast<char>(dictionary.size());
    write(std::string("\x93NUMPY") + version + std::string("\0", 1) + size + std::string("\0\0\0", 3) +
          dictionary + "abc");
    const auto array = read_npy(path_);
    ASSERT_TRUE(array.ok()) << array.status();
    const auto read = array->values<std::uint8_t>();
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(std::string(read->begin(), read->end()), "abc");
  }
}

TEST_F(NpyFile, ComesFromAStreamToo) {
  const std::string first = npy_header("'|u1'", {3});
  const std::string dictionary = first.substr(10);
  const std::string longer = std::string("\x93NUMPY\x02") + std::string("\0", 1) +
                             static_cast<char>(dictionary.size()) + std::string("\0\0\0", 3) + dictionary;
  for (const std::string& header : {first, longer}) {
    std::istringstream whole(header + "abc");
    const auto array = read_npy(whole, "member");
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(static_cast<char>(array->values<std::uint8_t>()->back()), 'c');
    std::istringstream cut(header + "ab");
    EXPECT_THAT(std::string(read_npy(cut, "member").status().message()),
                ::testing::HasSubstr("member: it ends before its array does"));
  }
}

TEST_F(NpyFile, LiesInTheFilesOwnMemoryAndDoesNotChangeIt) {
  ASSERT_TRUE(write_npy(path_, {std::vector<float>{1, 2, 3}, {3}}).ok());
  auto array = read_npy(path_);
  ASSERT_TRUE(array.ok()) << array.status();
  std::ifstream maps("/proc/self/maps");
  const std::string mapped{std::istreambuf_iterator<char>(maps), {}};
  EXPECT_NE(mapped.find(path_), std::string::npos) << "it was copied";
  reinterpret_cast<float*>(array->mutable_bytes().data())[1] = 7;
  EXPECT_EQ(array->values<float>()->back(), 3);
  const auto again = read_npy(path_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again->values<float>())[1], 2);
}

/// From the file that it was read from to another: pages of the system's memory alone.
TEST_F(NpyFile, IsReadAndWrittenWithoutACopy) {
  constexpr std::size_t kBytes = std::size_t{128} << 20;
  ASSERT_TRUE(write_npy(path_, {std::vector<std::uint8_t>(kBytes, 7), {std::int64_t{kBytes}}}).ok());
  if (testing::anonymous_bytes() == 0) GTEST_SKIP() << "no account of the process's memory";
  const std::int64_t taken = testing::anonymous_bytes_of([&] {
    const auto array = read_npy(path_);
    ASSERT_TRUE(array.ok()) << array.status();
    const auto bytes = array->bytes();
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{7}), std::ptrdiff_t{kBytes});
    ASSERT_TRUE(write_npy(folder_ / "again.npy", array->view()).ok());
  });
  EXPECT_LT(taken, std::int64_t{kBytes} / 4);
}

TEST_F(NpyFile, IsWrittenOnAllProcessors) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor";
  const std::vector<std::uint8_t> bytes(std::size_t{256} << 20, 7);
  const ArrayView array(bytes, {static_cast<std::int64_t>(bytes.size())});
  EXPECT_TRUE(testing::once_in_three([&] {
    return testing::share_of_the_caller([&] { EXPECT_TRUE(write_npy(path_, array).ok()); }) < 0.8;
  }));
}

TEST_F(NpyFile, ElementsThatAreNotAlignedInTheFileAreCopied) {
  std::string header = npy_header("'<f8'", {1});
  header.insert(header.size() - 1, 3, ' ');
  header[8] = static_cast<char>(header[8] + 3);
  const double number = 2.5;
  write(header + std::string(reinterpret_cast<const char*>(&number), sizeof(number)));
  const auto array = read_npy(path_);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->values<double>()->front(), 2.5);
}

/// NumPy's way to keep masks.
TEST_F(NpyFile, TruthValuesAreBytesOfZeroAndOne) {
  write(npy_header("'|b1'", {3}) + std::string("\1\0\1", 3));
  const auto array = read_npy(path_);
  ASSERT_TRUE(array.ok()) << array.status();
  const auto read = array->values<std::uint8_t>();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(std::vector<std::uint8_t>(read->begin(), read->end()), (std::vector<std::uint8_t>{1, 0, 1}));
}

TEST_F(NpyFile, ColumnMajorArraysAreTurned) {
  const Shape shape = {2, 3, 4};
  std::vector<std::uint16_t> rows(24);
  std::string columns(48, '\0');
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<std::uint16_t>(1000 + i);
    const std::size_t z = i % 4, y = i / 4 % 3, x = i / 12;
    std::memcpy(&columns[2 * (x + 2 * (y + 3 * z))], &rows[i], 2);
  }
  std::string file = npy_header("'<u2'", shape) + columns;
  file.replace(file.find("False,"), 6, "True, ");
  write(file);
  std::istringstream stream(file);
  for (const auto& array : {read_npy(path_), read_npy(stream, "member")}) {
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->shape(), shape);
    const auto read = array->values<std::uint16_t>();
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(std::vector<std::uint16_t>(read->begin(), read->end()), rows);
  }
}

TEST_F(NpyFile, ColumnMajorArraysMayBeEmpty) {
  std::string file = npy_header("'<f4'", {0, 3});
  file.replace(file.find("False,"), 6, "True, ");
  write(file);
  const auto array = read_npy(path_);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->shape(), (Shape{0, 3}));
}

TEST_F(NpyFile, SaysWhatIsWrongWithAFile) {
  EXPECT_NE(error().find("name a file that exists"), std::string::npos) << error();
  write("PNG and so on");
  EXPECT_NE(error().find("does not begin as a .npy file"), std::string::npos) << error();
  write(npy_header("'>f4'", {1}) + "data");
  EXPECT_NE(error().find("its elements are '>f4'"), std::string::npos) << error();
  write(npy_header("'<f4'", {2}) + "data");
  EXPECT_NE(error().find("ends before its array"), std::string::npos) << error();
  std::string columns = npy_header("'<f4'", {1}) + "data";
  columns.replace(columns.find("False"), 5, "Maybe");
  write(columns);
  EXPECT_NE(error().find("whether it is in column-major order"), std::string::npos) << error();
  std::string words = npy_header("'<f4'", {1}) + "data";
  words.replace(words.find("(1, )"), 5, "(a, )");
  write(words);
  EXPECT_NE(error().find("no list of numbers"), std::string::npos) << error();
}

/// An array of 5 MiB that comes in parts, and its file.
class NpyWriters : public ::testing::Test {
 protected:
  NpyWriters() {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<std::uint32_t>(i * 2654435761U);
  }
  ArrayView array() const { return ArrayView(values_); }
  std::string written(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    return bytes.substr(npy_header("'<u4'", {kCount}).size());
  }
  std::string bytes() const {
    return {reinterpret_cast<const char*>(values_.data()), values_.size() * sizeof(std::uint32_t)};
  }

  static constexpr std::int64_t kCount = 5 << 18;
  static constexpr std::int64_t kMiB = 1 << 20;
  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "array.npy";
  std::vector<std::uint32_t> values_ = std::vector<std::uint32_t>(kCount);
};

TEST_F(NpyWriters, WriteWhatHasComeBeforeTheRest) {
  NpyWriter writer(path_);
  writer.begin(array());
  writer.take(3 * kMiB, 5 * kMiB);
  writer.end();
  const std::string unfinished = std::filesystem::directory_iterator(folder_.path())->path();
  EXPECT_TRUE(written(unfinished).substr(3 * kMiB) == bytes().substr(3 * kMiB));
}

TEST_F(NpyWriters, HaveTheWholeArrayHoweverItCame) {
  const std::vector<std::vector<std::pair<int, int>>> ways = {
      {}, {{0, 5}}, {{3, 5}, {1, 3}, {0, 1}}, {{0, 2}}};
  for (const auto& way : ways) {
    NpyWriter writer(path_);
    writer.begin(array());
    for (const auto& [begin, end] : way) writer.take(begin * kMiB, end * kMiB);
    writer.end();
    ASSERT_TRUE(writer.finish(array()).ok());
    EXPECT_TRUE(written(path_) == bytes()) << way.size() << " parts";
  }
}

TEST_F(NpyWriters, HaveWhatCameLastWhereATransferBeganAgain) {
  const std::vector<std::uint32_t> last = values_;
  values_[0] = ~values_[0];
  NpyWriter writer(path_);
  writer.begin(array());
  writer.take(0, 3 * kMiB);
  writer.end();
  values_ = last;
  writer.take(0, 5 * kMiB);
  ASSERT_TRUE(writer.finish(array()).ok());
  EXPECT_TRUE(written(path_) == bytes());
}

TEST_F(NpyWriters, LeaveNothingWithoutTheirEnd) {
  {
    NpyWriter writer(path_);
    writer.begin(array());
    writer.take(0, kMiB);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace cumulus::cli
