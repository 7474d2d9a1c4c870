#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "cli/files/interruption.h"
#include "cli/files/output.h"
#include "tests/support/temporary_folder.h"

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OutputFiles : public ::testing::Test {
 protected:
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static absl::Status write(const std::string& path, const std::string& text) {
    OutputFile file(path);
    file.write(std::as_bytes(std::span(text)));
    return file.commit();
  }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_.path()), {}); }

  testing::TemporaryFolder folder_;
};

TEST_F(OutputFiles, WhatIsNotCommittedLeavesTheFileThatWasThere) {
  const std::string path = folder_ / "a";
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

TEST_F(OutputFiles, WhatIsInterruptedIsWrittenNoFurther) {
  {
    OutputFile file(folder_ / "a");
    EXPECT_TRUE(file.write(std::as_bytes(std::span("half", 4))));
    interrupt(SIGINT);
    EXPECT_TRUE(absl::IsCancelled(file.commit()));
    interrupt(0);
  }
  EXPECT_EQ(files(), 0);
  EXPECT_TRUE(write(folder_ / "a", "whole").ok());
}

TEST_F(OutputFiles, ExpectedBytesAreTakenFromTheDiskAndNotOfTheFilesSize) {
  const std::string path = folder_ / "a";
  OutputFile file(path);
  file.expect(1 << 20);
  struct stat seen {};
  const fs::path unfinished = fs::directory_iterator(folder_.path())->path();
  ASSERT_EQ(stat(unfinished.c_str(), &seen), 0);
  EXPECT_EQ(seen.st_size, 0);
  if (seen.st_blocks == 0) GTEST_SKIP() << "this file system takes no space in advance";
  EXPECT_GE(seen.st_blocks * 512, 1 << 20);
  EXPECT_TRUE(file.write(std::as_bytes(std::span("short", 5))));
  ASSERT_TRUE(file.commit().ok());
  EXPECT_EQ(read(path), "short");
}

TEST_F(OutputFiles, ALinkStaysOneAndItsTargetIsReplaced) {
  ASSERT_TRUE(write(folder_ / "target", "before").ok());
  fs::create_symlink("target", folder_ / "link");
  ASSERT_TRUE(write(folder_ / "link", "after").ok());
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read(folder_ / "target"), "after");
}

TEST_F(OutputFiles, ADeviceIsWrittenToAndNotReplaced) {
  fs::create_symlink("/dev/null", folder_ / "null");
  const OutputPlace place(folder_ / "null");
  ASSERT_EQ(place.unfinished(), "/dev/null") << "and what follows would replace a device of this machine";
  EXPECT_TRUE(write(folder_ / "null", "nothing").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFiles, AFullDiskIsNamedAsSoonAsItIsFull) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  ASSERT_EQ(OutputPlace("/dev/full").unfinished(), "/dev/full");
  OutputFile file("/dev/full");
  const std::string much(1 << 20, 'x');
  EXPECT_FALSE(file.write(std::as_bytes(std::span(much))));
  EXPECT_THAT(std::string(file.commit().message()),
              HasSubstr("cannot write /dev/full: No space left on device"));
}

TEST_F(OutputFiles, WhatCannotBeWrittenIsSaidBeforehand) {
  EXPECT_TRUE(check_output(folder_ / "new").ok());
  EXPECT_TRUE(check_output("/dev/null").ok());
  EXPECT_TRUE(check_output("in_the_working_folder").ok());
  EXPECT_THAT(std::string(check_output(folder_.path().string()).message()),
              HasSubstr("it is a folder; name a file"));
  EXPECT_THAT(std::string(check_output(folder_ / "missing/a").message()),
              HasSubstr("there is no folder " + (folder_ / "missing")));
  if (geteuid() == 0) return;  // whom no permissions stop
  fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(std::string(check_output(folder_ / "a").message()), HasSubstr("Permission denied"));
  fs::permissions(folder_.path(), fs::perms::owner_all);
}

TEST_F(OutputFiles, ManyBytesArriveInTheirOrder) {
  std::string much(std::size_t{40} << 20, '\0');  // on several threads
  for (std::size_t i = 0; i < much.size(); i += 4093) much[i] = static_cast<char>(i / 4093);
  OutputFile file(folder_ / "a");
  EXPECT_TRUE(file.write(std::as_bytes(std::span("head", 4))));
  EXPECT_TRUE(file.write(std::as_bytes(std::span(much))));
  EXPECT_TRUE(file.write(std::as_bytes(std::span("tail", 4))));
  EXPECT_TRUE(file.seek(1));
  EXPECT_TRUE(file.write(std::as_bytes(std::span("EA", 2))));
  ASSERT_TRUE(file.commit().ok());
  EXPECT_TRUE(read(folder_ / "a") == "hEAd" + much + "tail");
}

TEST_F(OutputFiles, APipeGetsAFileWithJumpsOnceItIsWhole) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread reader([&] { EXPECT_EQ(read(pipe), "ab_def"); });
  OutputFile file(pipe);
  file.hold();
  EXPECT_TRUE(file.write(std::as_bytes(std::span("abcdef", 6))));
  EXPECT_TRUE(file.seek(2));
  EXPECT_TRUE(file.write(std::as_bytes(std::span("_", 1))));
  EXPECT_TRUE(file.commit().ok());
  reader.join();
}

TEST_F(OutputFiles, OneFileIsToldByWhateverWayItIsNamed) {
  fs::create_directory(folder_ / "x");
  ASSERT_TRUE(write(folder_ / "a", "there").ok());
  fs::create_symlink("a", folder_ / "link");
  fs::create_hard_link(folder_ / "a", folder_ / "hard");
  fs::create_directory_symlink("x", folder_ / "y");
  for (const char* other : {"./a", "x/../a", "link", "hard"})
    EXPECT_TRUE(are_one_file(folder_ / "a", folder_ / other)) << other;
  EXPECT_TRUE(are_one_file(folder_ / "x/new", folder_ / "y/new"));
  EXPECT_FALSE(are_one_file(folder_ / "a", folder_ / "b"));
  EXPECT_FALSE(are_one_file("/dev/null", "/dev/null"));
  EXPECT_TRUE(are_one_file("-", "-.exr"));
}

}  // namespace
}  // namespace cumulus::cli
