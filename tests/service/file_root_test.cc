#include "server/runtime/file_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/temporary_folder.h"

namespace cumulus::server {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

class FileRootTest : public ::testing::Test {
 protected:
  FileRootTest() {
    fs::create_directories(folder_.path() / "root/below");
    write_text(folder_.path() / "root/below/image", "pixels");
    write_text(folder_.path() / "secret", "secret");
    auto opened = FileRoot::open(folder_ / "root");
    EXPECT_TRUE(opened.ok()) << opened.status();
    root_ = *opened;
  }

  /// The file's text, or "NOT_FOUND".
  std::string read(const std::string& path) const {
    const auto bytes =
        root_->read(path, "image.encoded.path", [](std::size_t /*size*/) { return absl::OkStatus(); });
    if (bytes.ok()) return {reinterpret_cast<const char*>(bytes->data()), bytes->bytes()};
    EXPECT_EQ(bytes.status().code(), absl::StatusCode::kNotFound) << bytes.status();
    return "NOT_FOUND";
  }

  testing::TemporaryFolder folder_;
  std::shared_ptr<const FileRoot> root_;
};

TEST_F(FileRootTest, ReadsWhatLiesBelow) {
  EXPECT_EQ(read("below/image"), "pixels");
  EXPECT_EQ(read("./below/../below/image"), "pixels") << "which does not leave it";
}

TEST_F(FileRootTest, NoPathLeadsOutside) {
  for (const std::string path : {"../secret", "below/../../secret", "/etc/passwd", "..", ".", "", "below",
                                 "below/none", "/proc/self/fd/0"})
    EXPECT_EQ(read(path), "NOT_FOUND") << path;
  EXPECT_EQ(read(folder_ / "root/below/image"), "NOT_FOUND") << "not even by its own absolute path";
  EXPECT_EQ(read(std::string("below/image\0x", 13)), "NOT_FOUND");
}

TEST_F(FileRootTest, NoLinkIsFollowed) {
  fs::create_symlink(folder_.path() / "secret", folder_.path() / "root/absolute");
  fs::create_symlink("../secret", folder_.path() / "root/relative");
  fs::create_symlink("below/image", folder_.path() / "root/inside");
  fs::create_symlink(folder_.path(), folder_.path() / "root/above");
  for (const std::string path : {"absolute", "relative", "inside", "above/secret"})
    EXPECT_EQ(read(path), "NOT_FOUND") << path;
}

TEST_F(FileRootTest, WhatIsNoFileHoldsNobodyUp) {
  ASSERT_EQ(::mkfifo((folder_.path() / "root/pipe").c_str(), 0600), 0);
  EXPECT_EQ(read("pipe"), "NOT_FOUND");
}

TEST_F(FileRootTest, AFolderThatIsSwappedForALinkLeadsNowhere) {
  fs::create_directories(folder_.path() / "outside");
  write_text(folder_.path() / "outside/image", "secret");
  std::atomic<bool> stop = false;
  std::thread swapper([&] {
    const fs::path below = folder_.path() / "root/below";
    while (!stop) {
      fs::rename(below, folder_.path() / "root/kept");
      fs::create_symlink(folder_.path() / "outside", below);
      fs::remove(below);
      fs::rename(folder_.path() / "root/kept", below);
    }
  });
  for (int i = 0; i < 2000; ++i) EXPECT_NE(read("below/image"), "secret");
  stop = true;
  swapper.join();
}

TEST_F(FileRootTest, AsksBeforeItReads) {
  std::size_t asked = 0;
  const auto refused = root_->read("below/image", "x", [&](std::size_t size) {
    asked = size;
    return absl::ResourceExhaustedError("no");
  });
  EXPECT_EQ(asked, 6U);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FileRootTest, AFolderThatIsNoneIsRefused) {
  EXPECT_EQ(FileRoot::open(folder_ / "none").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FileRoot::open(folder_ / "secret").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cumulus::server
