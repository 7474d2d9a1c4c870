// Tables and box filters of a real HDR map in all their forms: the real command line against the real daemon.
#include <OpenImageIO/imageio.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cases/summed_area_table_boxes.h"
#include "tests/end_to_end/image_jobs.h"
#include "tests/end_to_end/json.h"

namespace cumulus::testing {
namespace {

class TableJobs : public ImageJobs {};

TEST_F(TableJobs, ARadiusMapGivesEachPixelItsOwnBox) {
  const Picture map = read_picture(kMap);
  Picture radii{map.width, map.height, 1, OIIO::TypeDesc::FLOAT, {}};
  for (int i = 0; i < map.width * map.height; ++i) radii.pixels.push_back(i % map.width < 500 ? 0.0F : 1.5F);
  write_picture(folder_ / "radii.exr", radii);
  succeed({"box-filter", kMap, "-o", folder_ / "box.exr", "--radius-map", folder_ / "radii.exr",
           "--radius-scale", "2", "--preview", folder_ / "box.png", "--compression", "zip"});
  const Picture means = read_picture(folder_ / "box.exr");
  ASSERT_EQ(means.pixels.size(), map.pixels.size());
  for (int y = 0; y < map.height; y += 7) {
    for (int x = 0; x < map.width; x += 13) {
      const auto at = static_cast<std::size_t>((y * map.width + x) * map.channels);
      const double expected = x < 500 ? map.pixels[at] : box_mean(map, y, x, 0, 3);
      ASSERT_NEAR(means.pixels[at], expected, 1e-5 * std::abs(expected) + 1e-6) << y << ", " << x;
    }
  }
  const Picture preview = read_picture(folder_ / "box.png");
  EXPECT_EQ(preview.width, map.width);
  EXPECT_EQ(preview.channels, 3);

  radii.width -= 1;
  radii.pixels.resize(static_cast<std::size_t>(radii.width * radii.height));
  write_picture(folder_ / "narrow.exr", radii);
  fail({"box-filter", kMap, "-o", folder_ / "b.exr", "--radius-map", folder_ / "narrow.exr"},
       "--radius-map: ");
}

TEST_F(TableJobs, AnArrayIsWrittenAsItComesAndMayReplaceItsInput) {
  const std::string array = folder_ / "map.npy";
  for (const std::string& input : {kMap, array}) {
    succeed({"box-filter", input, "-o", folder_ / "map.tif", "--radius", "2"});  // once all of it is there
    succeed({"box-filter", input, "-o", array, "--radius", "2"});
    const std::vector<float> right = read_picture(folder_ / "map.tif").pixels;
    const std::string data = read_npy(array).data;
    ASSERT_EQ(data.size(), right.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(data.data(), right.data(), data.size()), 0) << input;
  }
}

/// The picture as it goes on beyond its border, `margin` pixels of that.
Picture extended(const Picture& picture, int margin, const std::string& boundary) {
  Picture wide{picture.width + 2 * margin, picture.height + 2 * margin, 1, OIIO::TypeDesc::FLOAT, {}};
  for (int y = -margin; y < picture.height + margin; ++y) {
    for (int x = -margin; x < picture.width + margin; ++x) {
      const std::int64_t row = position_beyond(y, picture.height, boundary);
      const std::int64_t column = position_beyond(x, picture.width, boundary);
      const bool zero = row < 0 || column < 0;
      wide.pixels.push_back(zero ? 0.0F
                                 : picture.pixels[static_cast<std::size_t>(row * picture.width + column)]);
    }
  }
  return wide;
}

Picture noise(int width, int height) {
  Picture picture{width, height, 1, OIIO::TypeDesc::FLOAT, {}};
  for (int i = 0; i < width * height; ++i) picture.pixels.push_back(static_cast<float>(i * i % 31));
  return picture;
}

/// A box filter and blurs of pictures on disk.
class Boundaries : public ImageJobs {
 protected:
  using Words = std::vector<std::string>;

  std::vector<float> filtered(Words command, const Picture& picture, const Words& more) const {
    write_picture(folder_ / "in.exr", picture);
    command.insert(command.begin() + 1, {folder_ / "in.exr", "-o", folder_ / "out.exr"});
    command.insert(command.end(), more.begin(), more.end());
    succeed(command);
    return read_picture(folder_ / "out.exr").pixels;
  }
};

TEST_F(Boundaries, MeanTheSameToABoxAndABlur) {
  constexpr int kMargin = 40;
  const Picture picture = noise(24, 16);
  for (const Words& command : {Words{"box-filter", "--radius", "3"}, Words{"blur", "--sigma", "2"}}) {
    EXPECT_EQ(filtered(command, picture, {}), filtered(command, picture, {"--boundary", "clamp"}))
        << command[0];
    for (const std::string boundary : {"zero", "clamp", "repeat", "reflect", "mirror"}) {
      const Picture wide = extended(picture, kMargin, boundary);
      const auto whole = filtered(command, wide, {"--boundary", "zero"});
      const auto found = filtered(command, picture, {"--boundary", boundary});
      for (int y = 0; y < picture.height; ++y) {
        for (int x = 0; x < picture.width; ++x) {
          ASSERT_NEAR(found[static_cast<std::size_t>(y * picture.width + x)],
                      whole[static_cast<std::size_t>((y + kMargin) * wide.width + x + kMargin)], 1e-3)
              << command[0] << " " << boundary << ": " << y << ", " << x;
        }
      }
    }
  }
}

/// Exact: the filter of a picture between zeros over that of a white one between zeros.
TEST_F(Boundaries, ExactIsTheMeanOfWhatLiesInside) {
  constexpr int kMargin = 40;
  const Picture picture = noise(24, 16);
  Picture white = picture;
  std::fill(white.pixels.begin(), white.pixels.end(), 1.0F);
  for (const Words& command : {Words{"box-filter", "--radius", "3"}, Words{"blur", "--sigma", "2"},
                               Words{"blur", "--sigma", "2", "--method", "young"},
                               Words{"blur", "--sigma", "2", "--method", "fir"}}) {
    const Picture wide = extended(picture, kMargin, "zero");
    const auto sums = filtered(command, wide, {"--boundary", "zero"});
    const auto parts = filtered(command, extended(white, kMargin, "zero"), {"--boundary", "zero"});
    const auto found = filtered(command, picture, {"--boundary", "exact"});
    for (int y = 0; y < picture.height; ++y) {
      for (int x = 0; x < picture.width; ++x) {
        const auto at = static_cast<std::size_t>((y + kMargin) * wide.width + x + kMargin);
        ASSERT_NEAR(found[static_cast<std::size_t>(y * picture.width + x)], sums[at] / parts[at], 1e-4)
            << command.back() << ": " << y << ", " << x;
      }
    }
  }
}

TEST_F(Boundaries, HaveTheSameNamesInBoxFilterAndBlur) {
  write_picture(folder_ / "in.exr", noise(24, 16));
  const auto command = [&](Words words, const std::string& boundary) {
    words.insert(words.end(), {folder_ / "in.exr", "-o", folder_ / "out.exr", "--boundary", boundary});
    return words;
  };
  const std::string names = "clamp, exact, mirror, reflect, repeat, zero is right";
  fail(command({"box-filter", "--radius", "2"}, "wrap"), names, 2);
  fail(command({"blur", "--sigma", "2"}, "wrap"), names, 2);
  const std::string no_means = "clamp, mirror, reflect, repeat";
  fail(command({"blur", "--sigma", "2", "--derivative", "1,0"}, "exact"), no_means, 2);
  succeed(command({"blur", "--sigma", "2", "--derivative", "1,0"}, "clamp,exact"));
  fail(command({"bspline-prefilter"}, "exact"), no_means, 2);
  fail(command({"filter", "--feedback=-0.5"}, "exact"), no_means, 2);
}

TEST_F(TableJobs, ABoxGoesOnAtTheOtherSideOfALatLongMap) {
  succeed({"box-filter", kMap, "-o", folder_ / "box.exr", "--radius", "6,1", "--boundary", "repeat,clamp",
           "--deviation", folder_ / "deviation.exr", "--compression", "zip"});
  const Picture map = read_picture(kMap);
  const Picture means = read_picture(folder_ / "box.exr");
  const Picture deviations = read_picture(folder_ / "deviation.exr");
  ASSERT_EQ(means.pixels.size(), map.pixels.size());
  ASSERT_EQ(deviations.pixels.size(), map.pixels.size());
  for (int y = 0; y < map.height; y += 5) {
    for (const int x : {0, 3, 500, map.width - 1}) {
      double sum = 0;
      double squares = 0;
      for (int j = y - 1; j <= y + 1; ++j) {
        for (int i = x - 6; i <= x + 6; ++i) {
          const int row = std::clamp(j, 0, map.height - 1);
          const int column = (i + map.width) % map.width;
          const double pixel =
              map.pixels[static_cast<std::size_t>((row * map.width + column) * map.channels)];
          sum += pixel;
          squares += pixel * pixel;
        }
      }
      const auto at = static_cast<std::size_t>((y * map.width + x) * map.channels);
      const double mean = sum / 39;
      ASSERT_NEAR(means.pixels[at], mean, 1e-5 * std::abs(mean) + 1e-6) << y << ", " << x;
      // From a table in double of a map whose sun is 10^4 times as bright as its sky.
      ASSERT_NEAR(std::pow(deviations.pixels[at], 2), squares / 39 - mean * mean, 1e-4 * squares / 39 + 1e-3);
    }
  }
}

/// The last pixel's channels of an array of T.
template <class T>
std::vector<double> last_pixel(const Npy& array, std::size_t channels) {
  std::vector<T> last(channels);
  const std::size_t bytes = channels * sizeof(T);
  EXPECT_GE(array.data.size(), bytes);
  std::memcpy(last.data(), array.data.data() + array.data.size() - bytes, bytes);
  return {last.begin(), last.end()};
}

TEST_F(TableJobs, TablesComeInEveryForm) {
  const auto size_of = [&](const std::string& file) { return read_npy(folder_ / file).data.size(); };
  succeed({"summed-area-table", kMap, "-o", folder_ / "sums.npy", "--exclusive", "--squares",
           folder_ / "squares.npy"});
  constexpr std::size_t kExclusive = std::size_t{513} * 1025 * 3;
  EXPECT_EQ(size_of("sums.npy"), kExclusive * sizeof(double));
  EXPECT_EQ(size_of("squares.npy"), kExclusive * sizeof(double));
  const Picture map = read_picture(kMap);
  std::vector<double> sums(3);
  std::vector<double> squares(3);
  for (std::size_t i = 0; i < map.pixels.size(); ++i) {
    const double pixel = map.pixels[i];
    sums[i % 3] += pixel;
    squares[i % 3] += pixel * pixel;
  }
  for (std::size_t channel = 0; channel < 3; ++channel) {
    EXPECT_NEAR(last_pixel<double>(read_npy(folder_ / "sums.npy"), 3)[channel], sums[channel],
                1e-9 * sums[channel]);
    EXPECT_NEAR(last_pixel<double>(read_npy(folder_ / "squares.npy"), 3)[channel], squares[channel],
                1e-9 * squares[channel]);
  }
  EXPECT_EQ(read_npy(folder_ / "sums.npy").data.substr(0, 1025 * 3 * sizeof(double)),
            std::string(1025 * 3 * sizeof(double), '\0'));
  succeed(
      {"summed-area-table", kMap, "-o", folder_ / "centered.npy", "--subtract-mean", folder_ / "means.npy"});
  EXPECT_NE(read_npy(folder_ / "centered.npy").header.find("'<f4'"), std::string::npos);
  EXPECT_EQ(size_of("means.npy"), 3 * sizeof(float));
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const double pixels = 512.0 * 1024.0;
    EXPECT_NEAR(last_pixel<float>(read_npy(folder_ / "means.npy"), 3)[channel], sums[channel] / pixels,
                1e-6 * sums[channel] / pixels);
    // Nothing is left at the end but roundings, of up to (512 + 1024) 2^-24 of the absolute pixels' sum.
    EXPECT_NEAR(last_pixel<float>(read_npy(folder_ / "centered.npy"), 3)[channel], 0, 2e-4 * sums[channel]);
  }
  succeed({"summed-area-table", folder_ / "centered.npy", "-o", folder_ / "singles.tif", "--accumulator",
           "float32"});
  EXPECT_EQ(read_picture(folder_ / "singles.tif").stored, OIIO::TypeDesc(OIIO::TypeDesc::FLOAT));
  fail({"summed-area-table", kMap, "-o", folder_ / "x.npy", "--accumulator", "uint32"}, "accumulator");
  // The table of a table's doubles, which no image file holds.
  succeed({"summed-area-table", folder_ / "sums.npy", "-o", folder_ / "TWICE.NPY"});
  EXPECT_EQ(size_of("TWICE.NPY"), kExclusive * sizeof(double));
}

/// A table of one pixel and zeros holds that pixel everywhere: a radius map in each type of sums.
TEST_F(TableJobs, RadiusMapsAreOfAnyTypeOfNumbers) {
  constexpr int kColumns = 24;
  constexpr int kRows = 16;
  Picture image{kColumns, kRows, 1, OIIO::TypeDesc::FLOAT, {}};
  for (int i = 0; i < kColumns * kRows; ++i) image.pixels.push_back(static_cast<float>(i * i % 31));
  write_picture(folder_ / "in.exr", image);
  succeed({"box-filter", folder_ / "in.exr", "-o", folder_ / "right.npy", "--radius", "2"});
  const std::string right = read_npy(folder_ / "right.npy").data;

  Picture two{kColumns, kRows, 1, OIIO::TypeDesc::FLOAT, std::vector<float>(kColumns * kRows)};
  two.pixels[0] = 2;
  write_picture(folder_ / "two.exr", two);
  succeed({"summed-area-table", folder_ / "two.exr", "-o", folder_ / "float64.npy"});
  two.stored = OIIO::TypeDesc::UINT8;
  two.pixels[0] = 2 / 255.0F;
  write_picture(folder_ / "two.png", two);
  succeed({"summed-area-table", folder_ / "two.png", "-o", folder_ / "uint32.npy"});
  succeed({"summed-area-table", folder_ / "two.png", "-o", folder_ / "uint32.exr"});
  succeed(
      {"summed-area-table", folder_ / "two.png", "-o", folder_ / "uint64.npy", "--accumulator", "uint64"});
  Picture radii{kColumns, kRows, 3, OIIO::TypeDesc::HALF, std::vector<float>(3 * kColumns * kRows, 2.0F)};
  write_picture(folder_ / "halves.exr", radii);
  std::fill(radii.pixels.begin(), radii.pixels.end(), 2 / 65535.0F);
  radii.stored = OIIO::TypeDesc::UINT16;
  write_picture(folder_ / "uint16.png", radii);
  for (const char* map :
       {"float64.npy", "uint32.npy", "uint32.exr", "uint64.npy", "halves.exr", "uint16.png"}) {
    succeed({"box-filter", folder_ / "in.exr", "-o", folder_ / "box.npy", "--radius-map", folder_ / map});
    EXPECT_TRUE(read_npy(folder_ / "box.npy").data == right) << map;
  }
  // A radius of 0 along the columns holds for the map too.
  succeed({"box-filter", folder_ / "in.exr", "-o", folder_ / "right.npy", "--radius", "2,0"});
  succeed({"box-filter", folder_ / "in.exr", "-o", folder_ / "box.npy", "--radius", "9,0", "--radius-map",
           folder_ / "uint16.png"});
  EXPECT_TRUE(read_npy(folder_ / "box.npy").data == read_npy(folder_ / "right.npy").data);
}

TEST_F(TableJobs, SumsAreOfTheSamplesThatTheFileHas) {
  Picture grey{5, 4, 1, OIIO::TypeDesc::UINT16, std::vector<float>(20, 1.0F)};
  write_picture(folder_ / "in.png", grey);
  succeed({"summed-area-table", folder_ / "in.png", "-o", folder_ / "sums.npy"});
  const Npy sums = read_npy(folder_ / "sums.npy");
  EXPECT_NE(sums.header.find("'<u8'"), std::string::npos) << sums.header;
  EXPECT_EQ(last_pixel<std::uint64_t>(sums, 1).front(), 20 * 65535);
  // Image files have no integers of 64 bits.
  for (const auto& [name, type, stored] : {std::tuple("sums.tif", OIIO::TypeDesc::DOUBLE, "float64"),
                                           std::tuple("sums.exr", OIIO::TypeDesc::FLOAT, "float32")}) {
    const Ended ended = run({"--json", "summed-area-table", folder_ / "in.png", "-o", folder_ / name});
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
    EXPECT_EQ(Json(ended.output).text("element_type"), "uint64");
    EXPECT_EQ(Json(ended.output).text("stored_as"), stored);
    const Picture table = read_picture(folder_ / name);
    EXPECT_EQ(table.stored, OIIO::TypeDesc(type));
    EXPECT_EQ(table.pixels.back(), 20.0F * 65535.0F) << name;
  }
}

TEST_F(TableJobs, AWarningTellsWhichPixelSpoilsWhatLiesBelow) {
  Picture image{6, 5, 3, OIIO::TypeDesc::FLOAT, std::vector<float>(6 * 5 * 3, 1.0F)};
  write_picture(folder_ / "in.exr", image);
  const std::vector<std::vector<std::string>> jobs = {
      {"--json", "box-filter", folder_ / "in.exr", "-o", folder_ / "box.npy", "--radius", "1"},
      {"--json", "summed-area-table", folder_ / "in.exr", "-o", folder_ / "sums.npy"}};
  for (const auto& job : jobs) EXPECT_EQ(run(job).output.find("warning"), std::string::npos);
  image.pixels[(2 * 6 + 4) * 3 + 1] = std::numeric_limits<float>::quiet_NaN();
  write_picture(folder_ / "in.exr", image);
  for (auto job : jobs) {
    job.insert(job.end(), {"--non-finite", "keep"});
    const Ended ended = run(job);
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_NE(Json(ended.output).text("warnings.0").find("row 2, column 4,"), std::string::npos)
        << ended.output;
  }
}

TEST_F(TableJobs, MessagesNameTheOptionThatIsWrong) {
  fail({"box-filter", kMap, "-o", folder_ / "b.exr", "--radius", "3,9000"},
       "--radius along y: is 9000; 0 to 1024, the larger of the image's width and height, is right");
  Picture bytes{4, 4, 1, OIIO::TypeDesc::UINT8, std::vector<float>(16)};
  write_picture(folder_ / "in.png", bytes);
  fail({"summed-area-table", folder_ / "in.png", "-o", folder_ / "s.npy", "--subtract-mean",
        folder_ / "m.npy"},
       "--subtract-mean: is for float16 and float32 pixels; those of");
  fail({"box-filter", folder_ / "in.png", "-o", folder_ / "b.hdr", "--radius", "1"},
       ".exr and .tif take any number of channels");
  Picture large{300, 300, 1, OIIO::TypeDesc::UINT16, std::vector<float>(300 * 300, 1.0F)};
  write_picture(folder_ / "large.png", large);
  fail({"summed-area-table", folder_ / "large.png", "-o", folder_ / "s.npy", "--accumulator", "uint32"},
       "--accumulator: is UINT32, which 300 x 300 pixels of 65535 overflow; UINT64, or overflow "
       "WRAP_OVERFLOW, is "
       "right (--accumulator uint64, or --wrap)");
  succeed({"summed-area-table", folder_ / "large.png", "-o", folder_ / "s.npy", "--accumulator", "uint32",
           "--wrap"});
  EXPECT_EQ(last_pixel<std::uint32_t>(read_npy(folder_ / "s.npy"), 1).front(),
            static_cast<double>(static_cast<std::uint32_t>(90000ULL * 65535ULL)));
  succeed({"summed-area-table", folder_ / "large.png", "-o", folder_ / "wide.npy"});
  fail({"box-filter", folder_ / "wide.npy", "-o", folder_ / "b.npy", "--radius", "1"},
       "wide.npy: has elements of type UINT64; UINT8 or UINT16");
  const auto refused = [&](const std::vector<std::string>& words, const std::string& text) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_NE(ended.errors.find(text), std::string::npos) << ended.errors;
  };
  refused({"summed-area-table", kMap, "-o", folder_ / "s.hdr"}, "end its name with .exr, .tif or .npy");
  refused({"summed-area-table", kMap, "-o", folder_ / "s.npy", "--accumulator", "float16"},
          "--accumulator: is float16; one of float32, float64, int64, uint32, uint64 is right");
  refused({"box-filter", kMap, "-o", folder_ / "b.exr", "--radius", "1", "--radius-scale", "2"},
          "--radius-scale requires --radius-map");
}

TEST_F(TableJobs, BoxFiltersSayWhatDoesNotGoTogether) {
  EXPECT_EQ(run({"box-filter", kMap, "-o", folder_ / "b.exr"}).exit_code, 2);
  EXPECT_EQ(run({"box-filter", kMap, "-o", folder_ / "b.exr", "--radius", "1", "--boundary", "no"}).exit_code,
            2);
  EXPECT_EQ(run({"summed-area-table", kMap, "-o", folder_ / "s.npy", "--subtract-mean", "m.png"}).exit_code,
            2);
  Picture bytes{4, 4, 1, OIIO::TypeDesc::UINT8, std::vector<float>(16)};
  write_picture(folder_ / "in.png", bytes);
  fail({"box-filter", folder_ / "in.png", "-o", folder_ / "b.png", "--radius", "1", "--preview",
        folder_ / "p.png"},
       "leave --preview out");
}

}  // namespace
}  // namespace cumulus::testing
