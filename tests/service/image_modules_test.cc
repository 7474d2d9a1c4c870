// What the image modules do with bytes and samples, without a decoder's process and without a command.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "images/load.h"

namespace cumulus::images {
namespace {

std::string write(const std::string& name, const Picture& picture, const WriteBytes& write_bytes) {
  const absl::StatusOr<const ImageLibrary*> library = library_that_writes(name);
  EXPECT_TRUE(library.ok()) << library.status();
  return library.ok() ? (*library)->write(name, picture, write_bytes) : "";
}

TEST(ImageModules, StopWritingWhereNoMoreBytesAreTaken) {
  const std::vector<std::uint8_t> pixels(std::size_t{64} * 48 * 3, 100);
  const Picture picture{
      .width = 64, .height = 48, .channels = 3, .pixels = pixels.data(), .samples = Samples::kUint8};
  for (const std::string name : {"x.exr", "x.hdr", "x.png", "x.jpg", "x.tif", "x.tga"}) {
    EXPECT_EQ(write(name, picture, [](auto, auto) { return true; }), "") << name;
    EXPECT_NE(write(name, picture, [](auto, auto) { return false; }), "") << name;
  }
}

/// Written as shares of their largest, small ones would all be zeros.
TEST(ImageModules, LargeIntegersAreNotSqueezedIntoAFormatWithoutThem) {
  const std::vector<std::uint32_t> pixels(64, 7);
  const Picture picture{
      .width = 8, .height = 8, .channels = 1, .pixels = pixels.data(), .samples = Samples::kUint32};
  const WriteBytes anywhere = [](auto, auto) { return true; };
  EXPECT_EQ(write("x.tif", picture, anywhere), "");
  EXPECT_EQ(write("x.tga", picture, anywhere), "its format has no integers of 32 bits");
}

}  // namespace
}  // namespace cumulus::images
