#pragma once

#include <OpenImageIO/imageio.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/end_to_end/served_jobs.h"
#include "tests/support/test_data.h"

// Image files, for tests of whole jobs on them.

namespace cumulus::testing {

inline const std::string kMap = test_data("sunrise.exr").string();

struct Picture {
  int width = 0;
  int height = 0;
  int channels = 0;
  OIIO::TypeDesc stored;
  std::vector<float> pixels;
};

inline Picture read_picture(const std::string& path) {
  Picture picture;
  const auto input = OIIO::ImageInput::open(path);
  EXPECT_NE(input, nullptr) << OIIO::geterror();
  if (input == nullptr) return picture;
  const OIIO::ImageSpec spec = input->spec();
  picture = {spec.width, spec.height, spec.nchannels, spec.format, {}};
  picture.pixels.resize(static_cast<std::size_t>(spec.width * spec.height * spec.nchannels));
  EXPECT_TRUE(input->read_image(0, 0, 0, -1, OIIO::TypeDesc::FLOAT, picture.pixels.data()))
      << input->geterror();
  return picture;
}

inline void write_picture(const std::string& path, const Picture& picture) {
  const auto output = OIIO::ImageOutput::create(path);
  ASSERT_NE(output, nullptr) << OIIO::geterror();
  ASSERT_TRUE(output->open(path, {picture.width, picture.height, picture.channels, picture.stored}));
  ASSERT_TRUE(output->write_image(OIIO::TypeDesc::FLOAT, picture.pixels.data())) << output->geterror();
  ASSERT_TRUE(output->close());
}

struct Npy {
  std::string header;
  std::string data;
};

inline Npy read_npy(const std::string& path) {
  const std::string file = read_file(path);
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(file[8]) +
                                               256 * static_cast<unsigned char>(file[9]));
  EXPECT_EQ((10 + length) % 64, 0U);
  return {file.substr(10, length), file.substr(10 + length)};
}

/// The mean of the box around a pixel, channel by channel, by its definition.
inline double box_mean(const Picture& map, int y, int x, int channel, int radius) {
  double sum = 0;
  for (int j = y - radius; j <= y + radius; ++j) {
    for (int i = x - radius; i <= x + radius; ++i) {
      const int row = std::clamp(j, 0, map.height - 1);
      const int column = std::clamp(i, 0, map.width - 1);
      sum += map.pixels[static_cast<std::size_t>((row * map.width + column) * map.channels + channel)];
    }
  }
  return sum / ((2 * radius + 1) * (2 * radius + 1));
}

/// Jobs that read and write image files.
class ImageJobs : public ServedJobs {};

}  // namespace cumulus::testing
