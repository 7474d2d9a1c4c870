#include "server/runtime/image_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/support/decode_helper.h"
#include "tests/support/temporary_folder.h"

#ifdef CUMULUS_TEST_OPENIMAGEIO
#include <OpenImageIO/imageio.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
// The suppression of OpenImageIO's leak (tests/support/leak_suppressions.cc) finds the name of its function
// only where stacks are unwound by their tables.
extern "C" const char* __asan_default_options();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __asan_default_options() { return "fast_unwind_on_malloc=0"; }  // NOLINT
#endif

namespace cumulus::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr ImageLimits kLimits{.max_pixels = std::size_t{1} << 24,
                              .max_channels = 16,
                              .max_bytes = std::size_t{1} << 28,
                              .working_bytes = std::size_t{32} << 20,
                              .processor_time = absl::Seconds(10)};

v1::EncodedImage encoded(std::string data, const std::vector<std::string>& channels = {}) {
  v1::EncodedImage image;
  image.set_data(std::move(data));
  for (const std::string& channel : channels) image.add_channels(channel);
  return image;
}

absl::StatusOr<DecodedImage> decode(const v1::EncodedImage& image, const ImageLimits& limits = kLimits) {
  return decode_image(*testing::decode_helper(), image, {image.data()}, limits, "weights.encoded");
}

#ifdef CUMULUS_TEST_OPENIMAGEIO

void expect_error(const v1::EncodedImage& image, absl::StatusCode code, const std::string& field,
                  const std::string& what, const ImageLimits& limits = kLimits) {
  const absl::Status status = decode(image, limits).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith("weights.encoded" + field + ": "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(what));
}

constexpr int kWidth = 13;
constexpr int kHeight = 7;

/// The file that OpenImageIO writes for those pixels, under a name of that extension.
std::string write_image(const std::string& extension, OIIO::ImageSpec spec, const void* pixels,
                        OIIO::TypeDesc pixel_type) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / ("image." + extension);
  const auto output = OIIO::ImageOutput::create(path);
  EXPECT_NE(output, nullptr) << OIIO::geterror();
  EXPECT_TRUE(output->open(path, spec)) << output->geterror();
  EXPECT_TRUE(output->write_image(pixel_type, pixels)) << output->geterror();
  EXPECT_TRUE(output->close());
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<float> float_pixels() {
  std::vector<float> pixels(std::size_t{kWidth} * kHeight * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 251) / 16.0F + 0.25F;
  return pixels;
}

std::vector<unsigned char> byte_pixels() {
  std::vector<unsigned char> pixels(std::size_t{kWidth} * kHeight * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<unsigned char>(i * 7 % 256);
  return pixels;
}

std::string float_file(const std::string& extension) {
  return write_image(extension, OIIO::ImageSpec(kWidth, kHeight, 3, OIIO::TypeDesc::FLOAT),
                     float_pixels().data(), OIIO::TypeDesc::FLOAT);
}

std::string byte_file(const std::string& extension) {
  return write_image(extension, OIIO::ImageSpec(kWidth, kHeight, 3, OIIO::TypeDesc::UINT8),
                     byte_pixels().data(), OIIO::TypeDesc::UINT8);
}

std::vector<float> floats_of(const DecodedImage& image) {
  std::vector<float> values(image.pixels.bytes() / sizeof(float));
  std::memcpy(values.data(), image.pixels.data(), image.pixels.bytes());
  return values;
}

std::string file_of(const std::string& extension) {
  return extension == "exr" || extension == "hdr" || extension == "tif" ? float_file(extension)
                                                                        : byte_file(extension);
}

constexpr std::array kExtensions = {"exr", "hdr", "png", "tif", "jpg"};

TEST(ImageDecoder, FloatFilesKeepTheirValues) {
  for (const char* extension : {"exr", "tif"}) {
    const auto image = decode(encoded(float_file(extension)));
    ASSERT_TRUE(image.ok()) << extension << ": " << image.status();
    EXPECT_EQ(image->shape, (ArrayShape{v1::FLOAT32, {kHeight, kWidth, 3}}));
    EXPECT_EQ(floats_of(*image), float_pixels()) << extension;
  }
}

TEST(ImageDecoder, RadianceKeepsValuesToItsPrecision) {
  const auto image = decode(encoded(float_file("hdr")));
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->shape, (ArrayShape{v1::FLOAT32, {kHeight, kWidth, 3}}));
  const std::vector<float> expected = float_pixels();
  const std::vector<float> values = floats_of(*image);
  // A shared exponent and 8 bits a channel: 1/128 of the pixel's largest channel, here at most 15.9.
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 16.0F / 128);
}

TEST(ImageDecoder, FilesOfBytesStayBytes) {
  for (const char* extension : {"png", "tif"}) {
    const auto image = decode(encoded(byte_file(extension)));
    ASSERT_TRUE(image.ok()) << extension << ": " << image.status();
    EXPECT_EQ(image->shape, (ArrayShape{v1::UINT8, {kHeight, kWidth, 3}}));
    const std::vector<unsigned char> expected = byte_pixels();
    EXPECT_EQ(std::memcmp(image->pixels.data(), expected.data(), expected.size()), 0) << extension;
  }
  const auto jpeg = decode(encoded(byte_file("jpg")));
  ASSERT_TRUE(jpeg.ok()) << jpeg.status();
  EXPECT_EQ(jpeg->shape, (ArrayShape{v1::UINT8, {kHeight, kWidth, 3}}));
}

TEST(ImageDecoder, TheFirstImagesMayComeTogether) {
  const v1::EncodedImage file = encoded(float_file("exr"));
  std::array<std::future<absl::StatusOr<DecodedImage>>, 8> images;
  for (auto& image : images) image = std::async(std::launch::async, [&] { return decode(file); });
  for (auto& image : images) {
    const absl::StatusOr<DecodedImage> decoded = image.get();
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(floats_of(*decoded), float_pixels());
  }
}

TEST(ImageDecoder, ChannelsComeInTheOrderAskedFor) {
  const std::vector<float> all = float_pixels();
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::size_t>>> choices = {
      {{"G"}, {1}},         {{"B", "R"}, {2, 0}},         {{"R", "G", "B"}, {0, 1, 2}},
      {{"G", "B"}, {1, 2}}, {{"B", "G", "R"}, {2, 1, 0}}, {{"R", "R"}, {0, 0}}};
  for (const auto& [names, indices] : choices) {
    const auto image = decode(encoded(float_file("exr"), names));
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_EQ(image->shape.extents.back(), static_cast<std::int64_t>(indices.size()));
    const std::vector<float> values = floats_of(*image);
    ASSERT_EQ(values.size(), std::size_t{kWidth} * kHeight * indices.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], all[i / indices.size() * 3 + indices[i % indices.size()]])
          << names[0] << " at " << i;
    }
  }
}

TEST(ImageDecoder, NoMoreChannelsAreAskedForThanAreDecoded) {
  const std::vector<std::string> again_and_again(kLimits.max_channels + 1, "R");
  expect_error(encoded(float_file("exr"), again_and_again), absl::StatusCode::kResourceExhausted, ".data",
               "is asked for 17 channels; at most 16 (max_channels)");
}

TEST(ImageDecoder, AMissingChannelIsNamedWithThoseThatAreThere) {
  expect_error(encoded(float_file("exr"), {"R", "Z"}), absl::StatusCode::kInvalidArgument, ".channels[1]",
               "'Z' is not in the image; it has R, G, B");
}

TEST(ImageDecoder, TheNextSubimageIsReadAndOneThatIsMissingIsNamed) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "pages.tif";
  const std::array specs = {OIIO::ImageSpec(2, 1, 1, OIIO::TypeDesc::UINT8),
                            OIIO::ImageSpec(3, 1, 1, OIIO::TypeDesc::UINT8)};
  const std::array<unsigned char, 3> pixels = {9, 8, 7};
  const auto output = OIIO::ImageOutput::create(path);
  ASSERT_TRUE(output->open(path, 2, specs.data()));
  ASSERT_TRUE(output->write_image(OIIO::TypeDesc::UINT8, pixels.data()));
  ASSERT_TRUE(output->open(path, specs[1], OIIO::ImageOutput::AppendSubimage));
  ASSERT_TRUE(output->write_image(OIIO::TypeDesc::UINT8, pixels.data()));
  ASSERT_TRUE(output->close());
  std::ifstream file(path, std::ios::binary);
  v1::EncodedImage image = encoded({std::istreambuf_iterator<char>(file), {}});
  image.set_subimage(1);
  const auto second = decode(image);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->shape.extents, (std::vector<std::int64_t>{1, 3, 1}));
  EXPECT_EQ(static_cast<int>(second->pixels.data()[2]), 7);
  image.set_subimage(2);
  expect_error(image, absl::StatusCode::kInvalidArgument, ".subimage", "is 2; the file has fewer images");
  image.set_subimage(-1);
  expect_error(image, absl::StatusCode::kInvalidArgument, ".subimage", "is -1; 0 is the first");
}

/// Of samples that are converted, by bands of 1 MiB: the last of them has fewer rows.
TEST(ImageDecoder, ATiffOfSeveralBandsIsWhole) {
  constexpr int kColumns = 1000;
  constexpr int kRows = 300;
  std::vector<std::uint16_t> pixels(std::size_t{kColumns} * kRows * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint16_t>(i * 7919 % 65536);
  const OIIO::ImageSpec spec(kColumns, kRows, 3, OIIO::TypeDesc::UINT16);
  const auto image = decode(encoded(write_image("tif", spec, pixels.data(), OIIO::TypeDesc::UINT16)));
  ASSERT_TRUE(image.ok()) << image.status();
  const std::vector<float> values = floats_of(*image);
  ASSERT_EQ(values.size(), pixels.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], static_cast<float>(pixels[i]) / 65535.0F, 1e-6F) << i;
}

TEST(ImageDecoder, WhatTheHeaderClaimsIsHeldAgainstTheLimits) {
  for (const char* extension : kExtensions) {
    const v1::EncodedImage image = encoded(file_of(extension));
    ImageLimits limits = kLimits;
    limits.max_pixels = kWidth * kHeight - 1;
    expect_error(image, absl::StatusCode::kResourceExhausted, ".data", "is 13 x 7 = 91 pixels; at most 90",
                 limits);
    limits = kLimits;
    limits.max_channels = 2;
    expect_error(image, absl::StatusCode::kResourceExhausted, ".data", "has 3 channels; at most 2", limits);
    limits = kLimits;
    limits.max_bytes = 91 * 3 - 1;
    expect_error(image, absl::StatusCode::kResourceExhausted, ".data", "bytes to decode; at most 272",
                 limits);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// What decompresses DWAB wants 256 rows of buffers for this one, and OpenEXR says of their lack that the
/// file is damaged. Too many for what the allocator may have kept, too: it keeps no more than 64 MiB in a
/// piece.
TEST(ImageDecoder, LackOfMemoryWithinAReaderIsNoDamage) {
  constexpr int kColumns = 100'000;
  OIIO::ImageSpec spec(kColumns, 1, 3, OIIO::TypeDesc::FLOAT);
  spec.attribute("compression", "dwab");
  const std::vector<float> pixels(std::size_t{kColumns} * 3, 0.5F);
  const v1::EncodedImage image = encoded(write_image("exr", spec, pixels.data(), OIIO::TypeDesc::FLOAT));
  expect_error(image, absl::StatusCode::kResourceExhausted, ".data", "bytes that reading it may take");
  ImageLimits large = kLimits;
  large.working_bytes = std::size_t{1} << 30;
  const absl::Status whole = decode(image, large).status();
  EXPECT_TRUE(whole.ok()) << whole;
}
#endif

TEST(ImageDecoder, AsksBeforeItHoldsMemory) {
  const v1::EncodedImage image = encoded(float_file("exr"), {"B", "R"});
  std::size_t asked = 0;
  const auto admit = [&](std::size_t bytes) {
    asked = bytes;
    return absl::ResourceExhaustedError("no");
  };
  const auto refused = decode_image(*testing::decode_helper(), image, {image.data()}, kLimits,
                                    "image.encoded", {.admit = admit});
  EXPECT_EQ(refused.status().message(), "no");
  EXPECT_EQ(asked,
            std::size_t{kWidth} * kHeight * (2 + 3) * sizeof(float));  // the result, and R to B beside it
}

std::uint32_t png_crc(const std::string& bytes) {
  std::uint32_t state = 0xFFFFFFFF;
  for (const char byte : bytes) {
    state ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~state;
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

/// A true PNG whose header, checksum and all, claims another size.
std::string png_that_claims(std::uint32_t width, std::uint32_t height) {
  std::string file = byte_file("png");
  constexpr std::size_t kHeaderChunk = 12;  // after the signature and the chunk's length
  file.replace(kHeaderChunk + 4, 8, big_endian(width) + big_endian(height));
  file.replace(kHeaderChunk + 17, 4, big_endian(png_crc(file.substr(kHeaderChunk, 17))));
  return file;
}

TEST(ImageDecoder, APngThatClaimsAHugeSizeIsRefusedByItsHeader) {
  expect_error(encoded(png_that_claims(900'000, 900'000)), absl::StatusCode::kResourceExhausted, ".data",
               "is 900000 x 900000 = 810000000000 pixels");
  ImageLimits generous = kLimits;
  generous.max_pixels = generous.max_bytes = std::size_t{1} << 50;
  expect_error(encoded(png_that_claims(900'000, 900'000)), absl::StatusCode::kResourceExhausted, ".data",
               "at most 2000 to 1", generous);
}

TEST(ImageDecoder, AnExrThatClaimsAHugeSizeIsRefused) {
  std::string file = float_file("exr");
  const std::size_t name = file.find(std::string("dataWindow\0box2i\0", 17));
  ASSERT_NE(name, std::string::npos);
  const std::int32_t huge = 30'000'000;
  std::memcpy(file.data() + name + 17 + 4 + 12, &huge,
              sizeof(huge));  // yMax, after the length and three corners
  const auto image = decode(encoded(file));
  EXPECT_FALSE(image.ok());
}

TEST(ImageDecoder, ARadianceFileThatClaimsAHugeSizeIsRefused) {
  std::string file = float_file("hdr");
  const std::string size = "-Y 7 +X 13";
  const std::size_t place = file.find(size);
  ASSERT_NE(place, std::string::npos);
  file.replace(place, size.size(), "-Y 700000 +X 1300000");
  expect_error(encoded(file), absl::StatusCode::kResourceExhausted, ".data", "pixels; at most");
}

TEST(ImageDecoder, AFileThatEndsEarlyIsAnErrorAndNeverHalfAPicture) {
  constexpr std::size_t kPngEndChunk = 12;  // without it the picture is whole
  for (const char* extension : kExtensions) {
    const std::string file = file_of(extension);
    for (std::size_t kept = 12; kept < file.size() - kPngEndChunk; kept += file.size() / 37 + 1) {
      const auto image = decode(encoded(file.substr(0, kept)));
      EXPECT_FALSE(image.ok()) << extension << " with " << kept << " of " << file.size() << " bytes";
    }
  }
}

TEST(ImageDecoder, FlippedBitsNeverCrash) {
  std::mt19937 random(20);
  int refused = 0;
  for (const char* extension : kExtensions) {
    const std::string file = file_of(extension);
    for (int trial = 0; trial < 150; ++trial) {
      std::string flipped = file;
      for (int flip = 0; flip < 3; ++flip)
        flipped[random() % flipped.size()] ^= static_cast<char>(1 << random() % 8);
      const auto image = decode(encoded(flipped));
      if (!image.ok()) {
        ++refused;
        EXPECT_FALSE(image.status().message().empty());
      } else {
        EXPECT_EQ(image->shape.bytes(), image->pixels.bytes());
      }
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(ImageDecoder, WhatIsNoImageOfThoseFormatsIsRefused) {
  const std::string gif = "GIF89a\1\0\1\0\200\0\0";
  for (const std::string& data : {std::string(), std::string("P6 1 1 255 abc"), gif, std::string(64, '\0')}) {
    expect_error(encoded(data), absl::StatusCode::kInvalidArgument, ".data",
                 "send EXR, HDR, PNG, TIFF or JPEG");
  }
  const std::string png_name_only = std::string("\x89PNG\r\n\x1a\n", 8);
  expect_error(encoded(png_name_only), absl::StatusCode::kInvalidArgument, ".data", "damaged or cut short");
  EXPECT_THAT(image_formats(), ::testing::ElementsAre("EXR", "HDR", "PNG", "TIFF", "JPEG"));
}

#else

TEST(ImageDecoder, WithoutOpenImageIoSaysWhatToDo) {
  const absl::Status status = decode(encoded("\x76\x2f\x31\x01")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("decode the image in the client"));
  EXPECT_TRUE(image_formats().empty());
}

#endif

}  // namespace
}  // namespace cumulus::server
