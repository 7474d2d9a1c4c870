#include "cli/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OutputFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / "cumulus-output-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static absl::Status write(const std::string& path, const std::string& text) {
    OutputFile file(path);
    file.write(std::as_bytes(std::span(text)));
    return file.commit();
  }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_), {}); }

  fs::path folder_;
};

TEST_F(OutputFiles, WhatIsNotCommittedLeavesTheFileThatWasThere) {
  const std::string path = *this / "a";
  ASSERT_TRUE(write(path, "before").ok());
  {
    OutputFile file(path);
    EXPECT_TRUE(file.write(std::as_bytes(std::span("half", 4))));
  }
  EXPECT_EQ(read(path), "before");
  EXPECT_EQ(files(), 1);
  ASSERT_TRUE(write(path, "after").ok());
  EXPECT_EQ(read(path), "after");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFiles, ALinkStaysOneAndItsTargetIsReplaced) {
  ASSERT_TRUE(write(*this / "target", "before").ok());
  fs::create_symlink("target", *this / "link");
  ASSERT_TRUE(write(*this / "link", "after").ok());
  EXPECT_TRUE(fs::is_symlink(*this / "link"));
  EXPECT_EQ(read(*this / "target"), "after");
}

TEST_F(OutputFiles, ADeviceIsWrittenToAndNotReplaced) {
  fs::create_symlink("/dev/null", *this / "null");
  const OutputPlace place(*this / "null");
  ASSERT_EQ(place.unfinished(), "/dev/null") << "and what follows would replace a device of this machine";
  EXPECT_TRUE(write(*this / "null", "nothing").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFiles, AFullDiskIsNamedAsSoonAsItIsFull) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  OutputFile file("/dev/full");
  const std::string much(1 << 20, 'x');
  EXPECT_FALSE(file.write(std::as_bytes(std::span(much))));
  EXPECT_THAT(std::string(file.commit().message()),
              HasSubstr("cannot write /dev/full: No space left on device"));
}

TEST_F(OutputFiles, WhatCannotBeWrittenIsSaidBeforehand) {
  EXPECT_TRUE(check_output(*this / "new").ok());
  EXPECT_TRUE(check_output("/dev/null").ok());
  EXPECT_TRUE(check_output("in_the_working_folder").ok());
  EXPECT_THAT(std::string(check_output(folder_.string()).message()),
              HasSubstr("it is a folder; name a file"));
  EXPECT_THAT(std::string(check_output(*this / "missing/a").message()),
              HasSubstr("there is no folder " + (*this / "missing")));
  if (geteuid() == 0) return;  // whom no permissions stop
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(std::string(check_output(*this / "a").message()), HasSubstr("Permission denied"));
  fs::permissions(folder_, fs::perms::owner_all);
}

}  // namespace
}  // namespace cumulus::cli
