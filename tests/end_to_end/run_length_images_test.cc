// Pictures as runs and back: the real command line against the real daemon.
#include <OpenImageIO/imageio.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/end_to_end/program.h"

namespace cumulus::testing {
namespace {

/// Writes a picture of stripes whose colours are not multiplied by alpha, which is 0 in places.
template <class T>
std::vector<T> write_stripes(const std::string& path, int channels, OIIO::TypeDesc type) {
  std::vector<T> samples;
  for (int pixel = 0; pixel < 70 * 50; ++pixel) {
    for (int c = 0; c < channels; ++c)
      samples.push_back(static_cast<T>(pixel / 23 * (c + 3) % 200 * (c < 3 ? 1 : 0)));
  }
  OIIO::ImageSpec spec(70, 50, channels, type);
  spec.attribute("oiio:UnassociatedAlpha", 1);
  const auto output = OIIO::ImageOutput::create(path);
  EXPECT_TRUE(output != nullptr && output->open(path, spec) && output->write_image(type, samples.data()));
  return samples;
}

template <class T>
std::vector<T> read_samples_as_stored(const std::string& path, OIIO::TypeDesc type) {
  OIIO::ImageSpec settings;
  settings.attribute("oiio:UnassociatedAlpha", 1);
  const auto input = OIIO::ImageInput::open(path, &settings);
  EXPECT_NE(input, nullptr) << OIIO::geterror();
  if (input == nullptr) return {};
  EXPECT_EQ(input->spec().format, type);
  std::vector<T> samples(static_cast<std::size_t>(input->spec().image_bytes()) / sizeof(T));
  EXPECT_TRUE(input->read_image(0, 0, 0, -1, type, samples.data()));
  return samples;
}

TEST(RunLengthImages, DecodeToTheSamePixels) {
  const Daemon daemon;
  const TemporaryFolder folder;
  const auto succeed = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--server", daemon.address()});
    const Ended ended = run_cumulus(arguments);
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  };
  const auto expect_same = [&]<class T>(const std::string& name, int channels, OIIO::TypeDesc type, T) {
    SCOPED_TRACE(name);
    const std::vector<T> samples = write_stripes<T>(folder / name, channels, type);
    for (const bool columns : {false, true}) {
      std::vector<std::string> encode = {"run-length", "encode", folder / name, "-o", folder / "p.rle"};
      if (columns) encode.emplace_back("--columns");
      succeed(encode);
      succeed({"run-length", "decode", folder / "p.rle", "-o", folder / ("back_" + name)});
      EXPECT_EQ(read_samples_as_stored<T>(folder / ("back_" + name), type), samples);
    }
  };
  expect_same("grey.png", 1, OIIO::TypeDesc::UINT8, std::uint8_t{});
  expect_same("rgba.png", 4, OIIO::TypeDesc::UINT8, std::uint8_t{});
  expect_same("deep.png", 3, OIIO::TypeDesc::UINT16, std::uint16_t{});
  expect_same("float.exr", 4, OIIO::TypeDesc::FLOAT, float{});
  expect_same("many.tif", 6, OIIO::TypeDesc::UINT16, std::uint16_t{});
  // p.rle holds 6 channels now, which PNG does not.
  const Ended refused = run_cumulus(
      {"--server", daemon.address(), "run-length", "decode", folder / "p.rle", "-o", folder / "many.png"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.errors.find("has 6"), std::string::npos) << refused.errors;
  EXPECT_FALSE(std::filesystem::exists(folder / "many.png"));
  // Formats that would change the samples are refused before anything is written, and told from those that do
  // not.
  const auto expect_refused = [&](const std::string& name, const std::string& part) {
    const Ended ended = run_cumulus(
        {"--server", daemon.address(), "run-length", "decode", folder / "p.rle", "-o", folder / name});
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_NE(ended.errors.find(part), std::string::npos) << ended.errors;
    EXPECT_FALSE(std::filesystem::exists(folder / name));
  };
  succeed({"run-length", "encode", folder / "float.exr", "-o", folder / "p.rle"});
  expect_refused("x.png", "would change samples of float32; end its name with .exr, .tif, .tiff, .npy");
  succeed({"run-length", "encode", folder / "grey.png", "-o", folder / "p.rle"});
  expect_refused("x.exr", "would change samples of uint8");
  expect_refused("x.jpg", "would change samples of uint8");
  // Samples of 16 bits count as 0 to 1, so that no mask is above 300.
  const Ended empty = run_cumulus({"--server", daemon.address(), "run-length", "coco-encode",
                                   folder / "deep.png", "-o", folder / "m.json", "--above", "300"});
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_NE(empty.errors.find("below 1 is right"), std::string::npos) << empty.errors;
}

}  // namespace
}  // namespace cumulus::testing
