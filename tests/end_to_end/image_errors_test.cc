// What the command line says of image files that it cannot read or write.
#include <OpenImageIO/imageio.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/end_to_end/image_jobs.h"

namespace cumulus::testing {
namespace {

namespace fs = std::filesystem;

TEST_F(ImageJobs, SayWhatIsWrongWithAFile) {
  fail({"sampling-table", folder_ / "none.exr", "-o", folder_ / "x.cst"}, "there is no file ");
  for (const char* numbered : {"sky.####.exr", "sky.%04d.exr"}) {
    fail({"video-tables", folder_ / numbered, "-o", folder_ / "tables"},
         "; give an image file that exists, such as numbered frames by " + (folder_ / "sky.*.exr"));
  }
  std::ofstream(folder_ / "text.exr") << "this is no picture";
  fail({"sampling-table", folder_ / "text.exr", "-o", folder_ / "x.cst"}, "text.exr as an image: ");
  const std::string whole = read_file(kMap);
  std::ofstream(folder_ / "half.exr", std::ios::binary) << whole.substr(0, whole.size() / 2);
  fail({"sampling-table", folder_ / "half.exr", "-o", folder_ / "x.cst"}, "half.exr as an image: ");
  fail({"blur", folder_ / "half.exr", "-o", folder_ / "x.exr", "--sigma", "2"}, "damaged or not complete");
  write_picture(folder_ / "whole.jpg", {64, 64, 3, OIIO::TypeDesc::UINT8, std::vector<float>(64 * 64 * 3)});
  const std::string jpeg = read_file(folder_ / "whole.jpg");
  std::ofstream(folder_ / "half.jpg", std::ios::binary) << jpeg.substr(0, jpeg.size() - 40);
  fail({"blur", folder_ / "half.jpg", "-o", folder_ / "x.exr", "--sigma", "2"}, "damaged or not complete");
  // A format of OpenImageIO's that has volumes, told by the name.
  std::ofstream(folder_ / "volume.null?RES=16x16x64") << "anything";
  fail({"blur", folder_ / "volume.null?RES=16x16x64", "-o", folder_ / "x.exr", "--sigma", "2"},
       "it is a volume; give one slice of it");
  fail({"blur", folder_.path().string(), "-o", folder_ / "x.exr", "--sigma", "2"},
       "it is a folder; give a file of it or, of a command that takes several, " + (folder_ / "*.exr"));
  fail({"sampling-table", kMap, "-o", folder_ / "no/folder/x.cst"}, "no/folder/x.cst");
  fail({"run-length", "info", folder_.path().string()}, "it is a folder; name a file");
  // Nobody is there to be asked.
  const Ended unknown = run_cumulus(
      {"--server", "127.0.0.1:1", "box-filter", kMap, "--radius", "1", "-o", folder_ / "x.unknown"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.errors.find("no image format has such a name"), std::string::npos) << unknown.errors;
  fail({"draw-samples", kMap, "-n", "4", "--preview", folder_ / "no/folder/x.png"}, "no/folder/x.png");
  EXPECT_FALSE(fs::exists(folder_ / "x.cst"));
}

TEST_F(ImageJobs, OfManyChannelsItSaysWhichToName) {
  const std::string path = folder_ / "many.exr";
  OIIO::ImageSpec spec(4, 4, 5, OIIO::TypeDesc::FLOAT);
  spec.channelnames = {"P", "Q", "R", "S", "T"};
  const auto output = OIIO::ImageOutput::create(path);
  ASSERT_TRUE(output->open(path, spec));
  ASSERT_TRUE(output->write_image(OIIO::TypeDesc::FLOAT, std::vector<float>(80).data()));
  ASSERT_TRUE(output->close());
  fail({"sampling-table", path, "-o", folder_ / "x.cst"},
       "none named G, and at most 4 can be taken; where the command has --channels, choose them by it: of ");
  fail({"blur", path, "-o", folder_ / "x.exr", "--sigma", "2", "--channels", "P, x"},
       "it has no channel or layer x; it has R, P, Q, S, T");
  succeed({"blur", path, "-o", folder_ / "x.exr", "--sigma", "2", "--channels", "P, Q"});
}

TEST_F(ImageJobs, APartIsToldFromAChannel) {
  const std::string path = folder_ / "parts.exr";
  std::vector<OIIO::ImageSpec> specs(2, OIIO::ImageSpec(4, 4, 3, OIIO::TypeDesc::FLOAT));
  specs[0].attribute("oiio:subimagename", "beauty");
  specs[1].attribute("oiio:subimagename", "depth");
  const auto output = OIIO::ImageOutput::create(path);
  ASSERT_TRUE(output->open(path, 2, specs.data()));
  const std::vector<float> pixels(48);
  ASSERT_TRUE(output->write_image(OIIO::TypeDesc::FLOAT, pixels.data()));
  ASSERT_TRUE(output->open(path, specs[1], OIIO::ImageOutput::AppendSubimage));
  ASSERT_TRUE(output->write_image(OIIO::TypeDesc::FLOAT, pixels.data()));
  ASSERT_TRUE(output->close());
  fail({"blur", path, "-o", folder_ / "x.exr", "--sigma", "2", "--channels", "depth"},
       "it has R, G, B; depth is a part of the file: --subimage depth");
}

TEST_F(ImageJobs, NumbersOfObjectsAreNamedBesideTheOtherChannels) {
  const std::string path = folder_ / "numbers.exr";
  OIIO::ImageSpec spec(4, 4, 3, OIIO::TypeDesc::FLOAT);
  spec.channelnames = {"A", "Z", "id"};
  spec.channelformats = {OIIO::TypeDesc::FLOAT, OIIO::TypeDesc::FLOAT, OIIO::TypeDesc::UINT};
  const auto output = OIIO::ImageOutput::create(path);
  ASSERT_TRUE(output->open(path, spec));
  ASSERT_TRUE(output->write_image(OIIO::TypeDesc::FLOAT, std::vector<float>(48).data()));
  ASSERT_TRUE(output->close());
  fail({"blur", path, "-o", folder_ / "x.exr", "--sigma", "2"},
       "its channel id holds whole numbers of 32 bits, which are not to be mixed; leave it out: --channels "
       "A,Z");
  fail({"blur", path, "-o", folder_ / "x.exr", "--sigma", "2", "--channels", "id"},
       "which are not to be mixed; floats, or integers of 8 or 16 bits, are right");
}

/// Its reader says the same of each strip that is missing.
TEST_F(ImageJobs, ADamagedTiffIsSaidInOneLine) {
  std::vector<float> pixels(std::size_t{64} * 512 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::sin(static_cast<float>(i));
  write_picture(folder_ / "whole.tif", {64, 512, 3, OIIO::TypeDesc::FLOAT, pixels});
  const std::string whole = read_file(folder_ / "whole.tif");
  std::ofstream(folder_ / "damaged.tif", std::ios::binary) << whole.substr(0, whole.size() / 2);
  const Ended ended = run({"blur", folder_ / "damaged.tif", "-o", folder_ / "x.exr", "--sigma", "2"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.errors.find("damaged or not complete"), std::string::npos) << ended.errors;
  EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 1) << ended.errors;
}

TEST_F(ImageJobs, AWebPIsRead) {
  if (OIIO::ImageOutput::create("a.webp") == nullptr) GTEST_SKIP() << "OpenImageIO has no WebP here";
  write_picture(folder_ / "a.webp",
                {64, 64, 3, OIIO::TypeDesc::UINT8, std::vector<float>(64 * 64 * 3, 0.5F)});
  succeed({"blur", folder_ / "a.webp", "-o", folder_ / "a.png", "--sigma", "2"});
  EXPECT_NEAR(read_picture(folder_ / "a.png").pixels.front(), 0.5F, 0.02F);
}

/// Written as shares of their largest, they would all be zeros.
TEST_F(ImageJobs, LargeIntegersAreNotSqueezedIntoAFormatWithoutThem) {
  write_picture(folder_ / "in.png", {8, 8, 1, OIIO::TypeDesc::UINT8, std::vector<float>(64, 1.0F)});
  succeed({"summed-area-table", folder_ / "in.png", "-o", folder_ / "sums.exr"});
  EXPECT_EQ(read_picture(folder_ / "sums.exr").stored, OIIO::TypeDesc(OIIO::TypeDesc::UINT32));
  succeed({"run-length", "encode", folder_ / "sums.exr", "-o", folder_ / "sums.rle"});
  succeed({"run-length", "decode", folder_ / "sums.rle", "-o", folder_ / "again.exr"});
  fail({"run-length", "decode", folder_ / "sums.rle", "-o", folder_ / "again.png"},
       "would change samples of uint32; end its name with .exr, .tif");
  EXPECT_FALSE(fs::exists(folder_ / "again.png"));
}

}  // namespace
}  // namespace cumulus::testing
