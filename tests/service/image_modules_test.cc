// What the image modules do with bytes and samples, without a decoder's process and without a command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "images/load.h"

namespace cumulus::images {
namespace {

std::string write(const std::string& name, const Picture& picture, const WriteBytes& write_bytes) {
  const absl::StatusOr<const ImageLibrary*> library = library_that_writes(name);
  EXPECT_TRUE(library.ok()) << library.status();
  return library.ok() ? (*library)->write(name, picture, write_bytes) : "";
}

std::string written(const std::string& name, const Picture& picture) {
  std::string file;
  const auto keep = [&](std::int64_t position, std::span<const std::byte> bytes) {
    const auto place = static_cast<std::size_t>(position);
    file.resize(std::max(file.size(), place + bytes.size()));
    std::memcpy(file.data() + place, bytes.data(), bytes.size());
    return true;
  };
  EXPECT_EQ(write(name, picture, keep), "") << name;
  return file;
}

/// Reads those channels of a file in memory; returns what went wrong, or nothing.
std::string read(const std::string& format, std::string_view file, Samples samples, void* pixels,
                 int first = 0, int end = 3) {
  const absl::StatusOr<const ImageLibrary*> library = library_that_reads(format);
  EXPECT_TRUE(library.ok()) << library.status();
  if (!library.ok()) return "";
  const OpenedFile opened = (*library)->open_memory(format, file, AlphaColours::kMultiplied);
  return opened.file == nullptr ? opened.error : (*library)->read(*opened.file, first, end, samples, pixels);
}

template <class T>
void expect_the_same_again(const std::string& name, const std::string& format, Samples samples,
                           const std::vector<T>& pixels) {
  const Picture picture{.width = 16,
                        .height = 8,
                        .channels = 3,
                        .pixels = pixels.data(),
                        .samples = samples,
                        .stored = {samples}};
  std::vector<T> again(pixels.size());
  EXPECT_EQ(read(format, written(name, picture), samples, again.data()), "") << name;
  EXPECT_EQ(again, pixels) << name;
}

/// Of 16 x 8 pixels with three channels.
template <class T>
std::vector<T> counted() {
  std::vector<T> pixels(std::size_t{16} * 8 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<T>(i * 157 % 251);
  return pixels;
}

TEST(ImageModules, ReadWhatTheyHaveWritten) {
  expect_the_same_again("x.png", "png", Samples::kUint8, counted<std::uint8_t>());
  expect_the_same_again("x.png", "png", Samples::kUint16, counted<std::uint16_t>());
  expect_the_same_again("x.exr", "openexr", Samples::kFloat32, counted<float>());
  expect_the_same_again("x.exr", "openexr", Samples::kUint32, counted<std::uint32_t>());
  expect_the_same_again("x.tif", "tiff", Samples::kUint16, counted<std::uint16_t>());
}

/// Nanoseconds that each of the process's threads has had a processor for; nothing where the system keeps no
/// account of that.
std::map<std::string, std::int64_t> processor_times() {
  std::map<std::string, std::int64_t> times;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::int64_t time = 0;
    if (std::ifstream(thread.path() / "schedstat") >> time && time > 0) times[thread.path()] = time;
  }
  return times;
}

/// Which part of the processor's time of `body` its busiest thread has had: what it takes on a busy machine
/// says little.
template <class Body>
double share_of_the_busiest(const Body& body) {
  auto before = processor_times();
  body();
  double all = 0;
  double busiest = 0;
  for (const auto& [thread, time] : processor_times()) {
    const auto spent = static_cast<double>(time - before[thread]);
    all += spent;
    busiest = std::max(busiest, spent);
  }
  return busiest / all;
}

TEST(ImageModules, ReadAndWriteExrOnAllProcessors) {
  if (std::thread::hardware_concurrency() < 2 || processor_times().empty())
    GTEST_SKIP() << "one processor, or no account of threads' times";
  constexpr int kSide = 1024;
  std::vector<float> pixels(std::size_t{3} * kSide * kSide);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = 1.0F + static_cast<float>(i * 7919 % 1021) / static_cast<float>(1 + i % 97);
  const Picture picture{
      .width = kSide, .height = kSide, .channels = 3, .pixels = pixels.data(), .samples = Samples::kFloat32};
  std::string file = written("x.exr", picture);  // starts the threads
  EXPECT_LT(share_of_the_busiest([&] { file = written("x.exr", picture); }), 0.8);
  std::vector<float> again(pixels.size());
  EXPECT_LT(share_of_the_busiest([&] { read("openexr", file, Samples::kFloat32, again.data()); }), 0.8);
  EXPECT_EQ(again, pixels);
}

TEST(ImageModules, SayOfAFileThatEndsEarlyThatItDoes) {
  const std::vector<float> pixels = counted<float>();
  std::vector<float> target(pixels.size());
  const Picture picture{
      .width = 16, .height = 8, .channels = 3, .pixels = pixels.data(), .samples = Samples::kFloat32};
  for (const auto& [name, format] : {std::pair("x.png", "png"), std::pair("x.hdr", "hdr")}) {
    const std::string file = written(name, picture);
    for (std::size_t kept = 8; kept + 12 < file.size(); ++kept) {  // 12: the end of a PNG
      const std::string part = file.substr(0, kept);
      EXPECT_THAT(read(format, part, Samples::kFloat32, target.data()),
                  ::testing::HasSubstr("unexpected end"))
          << name << " with " << kept;
    }
  }
}

TEST(ImageModules, RefuseRunsThatAreLongerThanTheirRow) {
  const std::string header = "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 8\n";
  std::vector<float> target(8 * 3);
  const std::string planes = header + std::string("\2\2\0\x8\x89\1", 6) + std::string(64, '\1');
  EXPECT_EQ(read("hdr", planes, Samples::kFloat32, target.data()), "a run is longer than its row");
  const std::string flat = header + std::string("\5\5\5\x80\1\1\1\x8", 8) + std::string(64, '\1');
  EXPECT_EQ(read("hdr", flat, Samples::kFloat32, target.data()), "a run is longer than its row");
}

/// Whose own colours a PNG keeps; what is read is multiplied, also where alpha itself is not asked for.
TEST(ImageModules, MultiplyColoursByAnAlphaThatStandsElsewhere) {
  const std::vector<std::uint8_t> pixels = {200, 100, 50, 51, 10, 20, 30, 255};
  const Picture picture{.width = 2,
                        .height = 1,
                        .channels = 4,
                        .pixels = pixels.data(),
                        .samples = Samples::kUint8,
                        .colours = AlphaColours::kAsStored};
  const std::string file = written("x.png", picture);
  std::vector<std::uint8_t> colours(6);
  EXPECT_EQ(read("png", file, Samples::kUint8, colours.data(), 0, 3), "");
  EXPECT_EQ(colours, (std::vector<std::uint8_t>{40, 20, 10, 10, 20, 30}));
  std::vector<std::uint8_t> with_alpha(4);
  EXPECT_EQ(read("png", file, Samples::kUint8, with_alpha.data(), 2, 4), "");
  EXPECT_EQ(with_alpha, (std::vector<std::uint8_t>{10, 51, 30, 255}));
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
  for (const char* name : {"x.tga", "x.png"})
    EXPECT_EQ(write(name, picture, anywhere), "its format has no integers of 32 bits") << name;
}

}  // namespace
}  // namespace cumulus::images
