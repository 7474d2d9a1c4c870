// What image files say beside their pixels, through whole jobs.
#include <OpenImageIO/imageio.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/end_to_end/image_jobs.h"
#include "tests/end_to_end/json.h"

namespace cumulus::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kWidth = 30;
constexpr int kHeight = 20;
constexpr std::array<float, 8> kRec2020 = {0.708F, 0.292F, 0.170F, 0.797F, 0.131F, 0.046F, 0.3127F, 0.3290F};

/// A half-float EXR picture as a film's pipeline has it: windows, chromaticities and words of its own.
OIIO::ImageSpec film_spec(std::vector<std::string> channels = {"R", "G", "B"}) {
  OIIO::ImageSpec spec(kWidth, kHeight, static_cast<int>(channels.size()), OIIO::TypeDesc::HALF);
  spec.channelnames = std::move(channels);
  spec.x = 10;
  spec.y = 5;
  spec.full_x = 0;
  spec.full_y = 0;
  spec.full_width = 102;
  spec.full_height = 51;
  spec.attribute("compression", "piz");
  spec.attribute("chromaticities", OIIO::TypeDesc(OIIO::TypeDesc::FLOAT, 8), kRec2020.data());
  spec.attribute("Orientation", 3);
  spec.attribute("owner", "a studio");
  spec.attribute("shot", "010_0020");
  spec.attribute("focal", 35.5F);
  spec.attribute("take", 7);
  return spec;
}

void write(const std::string& path, const OIIO::ImageSpec& spec, const std::vector<float>& pixels) {
  const auto output = OIIO::ImageOutput::create(path);
  ASSERT_NE(output, nullptr) << OIIO::geterror();
  ASSERT_TRUE(output->open(path, spec)) << output->geterror();
  ASSERT_TRUE(output->write_image(OIIO::TypeDesc::FLOAT, pixels.data())) << output->geterror();
  ASSERT_TRUE(output->close());
}

std::vector<float> ramp(int channels) {
  std::vector<float> pixels(static_cast<std::size_t>(kWidth * kHeight * channels));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 97) / 32.0F;
  return pixels;
}

OIIO::ImageSpec spec_of(const std::string& path) {
  const auto input = OIIO::ImageInput::open(path);
  EXPECT_NE(input, nullptr) << OIIO::geterror();
  return input == nullptr ? OIIO::ImageSpec() : input->spec();
}

/// The lines that oiiotool prints of a file's metadata; empty where there is no oiiotool.
std::set<std::string> listing(const std::string& path) {
  std::set<std::string> lines;
  const std::string command = "oiiotool --info -v '" + path + "' 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 4096> line{};
  while (pipe != nullptr && fgets(line.data(), line.size(), pipe.get()) != nullptr) lines.insert(line.data());
  return lines;
}

class PictureMetadata : public ImageJobs {
 protected:
  std::string in(const std::string& name) const { return folder_ / name; }
};

TEST_F(PictureMetadata, OfAnExrIsTheSameAfterABlur) {
  write(in("a.exr"), film_spec(), ramp(3));
  succeed({"blur", in("a.exr"), "-o", in("b.exr"), "--sigma", "1"});
  const OIIO::ImageSpec before = spec_of(in("a.exr"));
  const OIIO::ImageSpec after = spec_of(in("b.exr"));
  EXPECT_EQ(after.format, OIIO::TypeDesc(OIIO::TypeDesc::HALF));
  EXPECT_EQ(after.x, 10);
  EXPECT_EQ(after.full_width, 102);
  EXPECT_EQ(after.channelnames, before.channelnames);
  ASSERT_EQ(after.extra_attribs.size(), before.extra_attribs.size());
  for (const OIIO::ParamValue& value : before.extra_attribs)
    EXPECT_EQ(after[value.name()].get(), before[value.name()].get()) << value.name();
}

TEST_F(PictureMetadata, IsTheSameByOiiotoolsListing) {
  write(in("a.exr"), film_spec(), ramp(3));
  succeed({"box-filter", in("a.exr"), "-o", in("b.exr"), "--radius", "1"});
  std::filesystem::rename(in("a.exr"), in("before.exr"));
  std::filesystem::rename(in("b.exr"), in("a.exr"));
  const std::set<std::string> after = listing(in("a.exr"));
  std::filesystem::rename(in("before.exr"), in("a.exr"));
  const std::set<std::string> before = listing(in("a.exr"));
  if (before.empty()) GTEST_SKIP() << "no oiiotool here";
  EXPECT_GT(before.size(), 10U);
  EXPECT_EQ(after, before);
}

TEST_F(PictureMetadata, SaysByNameWhatAnotherFormatDoesNotKeep) {
  write(in("a.exr"), film_spec(), ramp(3));
  const Ended ended = run({"--json", "blur", in("a.exr"), "-o", in("b.tif"), "--sigma", "1"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  const std::string warning = Json(ended.output).text("warnings.0");
  for (const char* name : {"owner", "shot", "focal", "take", "chromaticities", "data window"})
    EXPECT_NE(warning.find(name), std::string::npos) << name << ": " << warning;
}

TEST_F(PictureMetadata, SaysWhereViewersTakeColoursOtherwise) {
  write_picture(in("a.png"), {8, 8, 3, OIIO::TypeDesc::UINT8, std::vector<float>(8 * 8 * 3, 0.5F)});
  const auto warnings = [&](const std::vector<std::string>& command) {
    std::vector<std::string> words = {"--json"};
    words.insert(words.end(), command.begin(), command.end());
    const Ended ended = run(words);
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    return ended.output;
  };
  const std::string decode = "as they are, most likely sRGB, where .exr files are taken for linear";
  EXPECT_THAT(warnings({"blur", in("a.png"), "-o", in("b.exr"), "--sigma", "1"}), HasSubstr(decode));
  EXPECT_THAT(warnings({"box-filter", in("a.png"), "-o", in("b.exr"), "--radius", "1"}), HasSubstr(decode));
  EXPECT_THAT(warnings({"blur", in("b.exr"), "-o", in("c.png"), "--sigma", "1", "-d", "uint8"}),
              HasSubstr("c.png holds linear values as they are, where .png files are taken for sRGB"));
  for (const std::vector<std::string>& as_it_is :
       std::vector<std::vector<std::string>>{{"blur", in("a.png"), "-o", in("c.png"), "--sigma", "1"},
                                             {"blur", in("b.exr"), "-o", in("c.exr"), "--sigma", "1"},
                                             {"summed-area-table", in("a.png"), "-o", in("s.exr")}})
    EXPECT_THAT(warnings(as_it_is), Not(HasSubstr("sRGB")));
}

TEST_F(PictureMetadata, TheTypeAndTheCompressionAreChosen) {
  write(in("a.exr"), film_spec(), ramp(3));
  succeed(
      {"blur", in("a.exr"), "-o", in("b.exr"), "--sigma", "1", "-d", "float32", "--compression", "dwaa:60"});
  const OIIO::ImageSpec after = spec_of(in("b.exr"));
  EXPECT_EQ(after.format, OIIO::TypeDesc(OIIO::TypeDesc::FLOAT));
  EXPECT_EQ(after.get_string_attribute("compression").substr(0, 4), "dwaa");
  fail({"blur", in("a.exr"), "-o", in("b.exr"), "--sigma", "1", "--compression", "lzw"},
       "OpenEXR has no compression 'lzw'; one of none, rle");
  fail({"blur", in("a.exr"), "-o", in("b.exr"), "--sigma", "1", "-d", "uint8"}, "-d: is uint8, which");
  succeed({"blur", in("a.exr"), "-o", in("b.png"), "--sigma", "1", "-d", "uint8"});
  EXPECT_EQ(spec_of(in("b.png")).format, OIIO::TypeDesc(OIIO::TypeDesc::UINT8));
}

TEST_F(PictureMetadata, TheLevelOfDwaIsTheInputsOrTheOneAskedFor) {
  OIIO::ImageSpec spec = film_spec();
  spec.attribute("compression", "dwaa:300");
  write(in("a.exr"), spec, ramp(3));
  succeed({"blur", in("a.exr"), "-o", in("same.exr"), "--sigma", "1"});
  succeed({"blur", in("a.exr"), "-o", in("fine.exr"), "--sigma", "1", "--compression", "dwaa:2"});
  constexpr const char* kLevel = "openexr:dwaCompressionLevel";
  EXPECT_EQ(spec_of(in("same.exr")).get_float_attribute(kLevel), 300.0F);
  EXPECT_EQ(spec_of(in("fine.exr")).get_float_attribute(kLevel), 2.0F);
  EXPECT_LT(std::filesystem::file_size(in("same.exr")), std::filesystem::file_size(in("fine.exr")));
}

TEST_F(PictureMetadata, WhatTheServerDecodesIsSaidToLeaveTheRestBehind) {
  write(in("a.exr"), film_spec(), ramp(3));
  const std::vector<std::string> on_server = {"--json",    "blur",    in("a.exr"), "-o",
                                              in("b.exr"), "--sigma", "1",         "--decode-on-server"};
  const Ended ended = run(on_server);
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_NE(Json(ended.output).text("warnings.0").find("keeps nothing of what"), std::string::npos);
  std::vector<std::string> chosen = on_server;
  chosen.insert(chosen.end(), {"--channels", "R"});
  EXPECT_EQ(run(chosen).exit_code, 2);
  std::vector<float> pixels = ramp(3);
  pixels[7] = std::numeric_limits<float>::quiet_NaN();
  write(in("a.exr"), film_spec(), pixels);
  const Ended refused = run(on_server);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.errors.find("a.exr: row 0, column 2, channel 1 is nan"), std::string::npos)
      << refused.errors;
}

TEST_F(PictureMetadata, AllChannelsAreFilteredAndKeepTheirNames) {
  const std::vector<std::string> names = {"R", "G", "B", "A", "diffuse.R", "diffuse.G", "diffuse.B"};
  write(in("a.exr"), film_spec(names), ramp(7));
  succeed({"blur", in("a.exr"), "-o", in("b.exr"), "--sigma", "1"});
  EXPECT_EQ(spec_of(in("b.exr")).channelnames, names);
  succeed({"blur", in("a.exr"), "-o", in("d.exr"), "--sigma", "1", "--channels", "diffuse"});
  EXPECT_EQ(spec_of(in("d.exr")).channelnames,
            (std::vector<std::string>{"diffuse.R", "diffuse.G", "diffuse.B"}));
  const Picture all = read_picture(in("b.exr"));
  const Picture layer = read_picture(in("d.exr"));
  for (std::size_t pixel = 0; pixel < layer.pixels.size() / 3; ++pixel) {
    for (std::size_t channel = 0; channel < 3; ++channel)
      ASSERT_EQ(layer.pixels[3 * pixel + channel], all.pixels[7 * pixel + 4 + channel]) << pixel;
  }
  fail({"blur", in("a.exr"), "-o", in("d.exr"), "--sigma", "1", "--channels", "specular"},
       "it has no channel or layer specular; it has R, G, B, A, diffuse.R");
}

TEST_F(PictureMetadata, APartIsChosenByNumberOrName) {
  std::array<OIIO::ImageSpec, 2> specs = {film_spec(), film_spec({"Y"})};
  specs[0].attribute("oiio:subimagename", "beauty");
  specs[1].attribute("oiio:subimagename", "depth");
  const auto output = OIIO::ImageOutput::create(in("a.exr"));
  ASSERT_TRUE(output->open(in("a.exr"), 2, specs.data())) << output->geterror();
  ASSERT_TRUE(output->write_image(OIIO::TypeDesc::FLOAT, ramp(3).data()));
  ASSERT_TRUE(output->open(in("a.exr"), specs[1], OIIO::ImageOutput::AppendSubimage));
  ASSERT_TRUE(output->write_image(OIIO::TypeDesc::FLOAT, ramp(1).data()));
  ASSERT_TRUE(output->close());
  for (const char* part : {"1", "depth"}) {
    const Ended ended =
        run({"--json", "blur", in("a.exr"), "-o", in("b.exr"), "--sigma", "1", "--subimage", part});
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
    EXPECT_EQ(spec_of(in("b.exr")).channelnames, std::vector<std::string>{"Y"});
    EXPECT_EQ(Json(ended.output).number("pictures"), 2);
    EXPECT_EQ(Json(ended.output).text("part"), "depth");
    EXPECT_NE(Json(ended.output).text("warnings.0").find("picture 0 (beauty)"), std::string::npos)
        << ended.output;
  }
  fail({"blur", in("a.exr"), "-o", in("b.exr"), "--sigma", "1", "--subimage", "2"},
       "0 (beauty), 1 (depth) is right");
}

TEST_F(PictureMetadata, AMapIsItsDisplayWindow) {
  write(in("a.exr"), film_spec(), std::vector<float>(kWidth * kHeight * 3, 1.0F));
  const Ended ended =
      run({"--json", "draw-samples", in("a.exr"), "-n", "500", "-o", in("s.npy"), "--projection", "plane"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(Json(ended.output).number("width"), 102);
  EXPECT_NE(Json(ended.output).text("warnings.0").find("30 x 20 at 10, 5"), std::string::npos)
      << ended.output;
  const std::string data = read_npy(in("s.npy")).data;
  for (std::size_t sample = 0; sample < 500; ++sample) {
    std::array<float, 3> record{};
    std::memcpy(record.data(), data.data() + sample * sizeof(record), sizeof(record));
    ASSERT_GE(record[0], 10.0F / 102);
    ASSERT_LE(record[0], 40.0F / 102);
    ASSERT_GE(record[1], 5.0F / 51);
    ASSERT_LE(record[1], 25.0F / 51);
  }
}

TEST_F(PictureMetadata, LuminanceIsOfTheFilesChromaticities) {
  const std::vector<float> pixels = ramp(3);
  OIIO::ImageSpec spec(kWidth, kHeight, 3, OIIO::TypeDesc::FLOAT);
  write(in("plain.exr"), spec, pixels);
  spec.attribute("chromaticities", OIIO::TypeDesc(OIIO::TypeDesc::FLOAT, 8), kRec2020.data());
  write(in("wide.exr"), spec, pixels);
  succeed({"sampling-table", in("plain.exr"), "-o", in("rec709.cst")});
  succeed(
      {"sampling-table", in("plain.exr"), "-o", in("explicit.cst"), "--luminance", "0.2627,0.678,0.0593"});
  const Ended ended = run({"--json", "sampling-table", in("wide.exr"), "-o", in("wide.cst")});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_NEAR(Json(ended.output).number("luminance.0"), 0.2627, 1e-4);
  EXPECT_NEAR(Json(ended.output).number("luminance.1"), 0.6780, 1e-4);
  EXPECT_NE(read_file(in("wide.cst")), read_file(in("rec709.cst")));
  succeed({"sampling-table", in("wide.exr"), "-o", in("asked.cst"), "--luminance", "rec709"});
  EXPECT_EQ(read_file(in("asked.cst")), read_file(in("rec709.cst")));
}

/// A JPEG whose stored rows are the columns of what is to be seen.
TEST_F(PictureMetadata, TurnedPicturesAreTurnedUpright) {
  for (const char* name : {"a.jpg", "a.tif"}) {
    OIIO::ImageSpec spec(16, 8, 1, OIIO::TypeDesc::UINT8);
    spec.attribute("Orientation", 6);  // to be turned by 90 degrees to the right
    std::vector<float> pixels(16 * 8, 0.0F);
    for (int x = 0; x < 8; ++x)
      pixels[static_cast<std::size_t>(x)] = 1.0F;  // of the first row, the left half
    write(in(name), spec, pixels);
    succeed({"blur", in(name), "-o", in("b.png"), "--sigma", "0.5"});
    const Picture upright = read_picture(in("b.png"));
    ASSERT_EQ(upright.width, 8) << name;
    ASSERT_EQ(upright.height, 16) << name;
    EXPECT_GT(upright.pixels[1 * 8 + 7], 0.4F) << name << ": the upper half of the right column is white";
    EXPECT_LT(upright.pixels[14 * 8 + 7], 0.1F) << name;
    EXPECT_LT(upright.pixels[1 * 8 + 0], 0.1F) << name;
  }
}

TEST_F(PictureMetadata, AJpegKeepsItsExifUpright) {
  OIIO::ImageSpec spec(16, 8, 3, OIIO::TypeDesc::UINT8);
  spec.attribute("Orientation", 8);
  spec.attribute("Make", "a camera");
  write(in("a.jpg"), spec, std::vector<float>(16 * 8 * 3, 0.5F));
  succeed({"blur", in("a.jpg"), "-o", in("b.jpg"), "--sigma", "1"});
  EXPECT_EQ(spec_of(in("b.jpg")).get_string_attribute("Make"), "a camera");
  EXPECT_EQ(spec_of(in("b.jpg")).get_int_attribute("Orientation", 1), 1);
  EXPECT_EQ(spec_of(in("b.jpg")).height, 16);
}

/// Within half a step of what is exact: colours were once multiplied by alpha as bytes.
TEST_F(PictureMetadata, ColoursUnderSmallAlphaStayWhatTheyAre) {
  OIIO::ImageSpec spec(12, 12, 4, OIIO::TypeDesc::UINT8);
  spec.attribute("oiio:UnassociatedAlpha", 1);
  std::vector<float> pixels;
  for (int i = 0; i < 144; ++i)
    pixels.insert(pixels.end(), {201 / 255.0F, 77 / 255.0F, 13 / 255.0F, 5 / 255.0F});
  for (const char* name : {"png", "tif"}) {
    const std::string before = in(std::string("a.") + name);
    const std::string after = in(std::string("b.") + name);
    write(before, spec, pixels);
    succeed({"blur", before, "-o", after, "--sigma", "2"});
    OIIO::ImageSpec settings;
    settings.attribute("oiio:UnassociatedAlpha", 1);
    const auto input = OIIO::ImageInput::open(after, &settings);
    ASSERT_NE(input, nullptr);
    EXPECT_EQ(input->spec().format, OIIO::TypeDesc(OIIO::TypeDesc::UINT8)) << name;
    std::vector<unsigned char> bytes(144 * 4);
    ASSERT_TRUE(input->read_image(0, 0, 0, -1, OIIO::TypeDesc::UINT8, bytes.data()));
    for (std::size_t i = 0; i < 144; ++i) {
      EXPECT_EQ(bytes[4 * i], 201) << name << i;
      EXPECT_EQ(bytes[4 * i + 1], 77) << name << i;
      EXPECT_EQ(bytes[4 * i + 2], 13) << name << i;
      EXPECT_EQ(bytes[4 * i + 3], 5) << name << i;
    }
  }
}

TEST_F(PictureMetadata, NonFinitePixelsAreRefusedClampedOrKept) {
  std::vector<float> pixels(kWidth * kHeight * 3, 1.0F);
  pixels[(4 * kWidth + 7) * 3 + 1] = std::numeric_limits<float>::quiet_NaN();
  pixels[(9 * kWidth + 2) * 3] = std::numeric_limits<float>::infinity();
  write(in("a.exr"), OIIO::ImageSpec(kWidth, kHeight, 3, OIIO::TypeDesc::FLOAT), pixels);
  const std::vector<std::vector<std::string>> filters = {{"blur", "--sigma", "1"},
                                                         {"bspline-prefilter"},
                                                         {"filter", "--feedback=-0.5"},
                                                         {"box-filter", "--radius", "1"},
                                                         {"summed-area-table"}};
  for (std::vector<std::string> filter : filters) {
    filter.insert(filter.end(), {in("a.exr"), "-o", in("b.exr")});
    fail(filter, "a.exr: row 4, column 7, channel G is nan, and 1 more are not finite");
    filter.insert(filter.end(), {"--non-finite", "clamp"});
    succeed(filter);
    for (const float value : read_picture(in("b.exr")).pixels)
      ASSERT_TRUE(std::isfinite(value)) << filter.front();
    filter.back() = "keep";
    const Ended kept = run(filter);
    EXPECT_EQ(kept.exit_code, 0) << kept.errors;
    EXPECT_NE(kept.output.find("channel G is nan, and spoils"), std::string::npos) << kept.output;
  }
}

TEST_F(PictureMetadata, NonFinitePixelsThatTheServerDecodesAreTreatedAlike) {
  std::vector<float> pixels(kWidth * kHeight * 3, 1.0F);
  pixels[(4 * kWidth + 7) * 3 + 1] = std::numeric_limits<float>::quiet_NaN();
  write(in("a.exr"), OIIO::ImageSpec(kWidth, kHeight, 3, OIIO::TypeDesc::FLOAT), pixels);
  std::vector<std::string> blur = {"blur", in("a.exr"),         "-o", in("b.exr"), "--sigma",
                                   "1",    "--decode-on-server"};
  fail(blur, "a.exr: row 4, column 7, channel 1 is nan; numbers are right, unless --non-finite");
  blur.insert(blur.end(), {"--non-finite", "clamp"});
  succeed(blur);
  for (const float value : read_picture(in("b.exr")).pixels) ASSERT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace cumulus::testing
