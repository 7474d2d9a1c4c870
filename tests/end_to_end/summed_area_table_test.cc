// Tables and box filters of a real HDR map in all their forms: the real command line against the real daemon.
#include <OpenImageIO/imageio.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/end_to_end/image_jobs.h"

namespace cumulus::testing {
namespace {

class TableJobs : public ImageJobs {};

TEST_F(TableJobs, ARadiusMapGivesEachPixelItsOwnBox) {
  const Picture map = read_picture(kMap);
  Picture radii{map.width, map.height, 1, OIIO::TypeDesc::FLOAT, {}};
  for (int i = 0; i < map.width * map.height; ++i) radii.pixels.push_back(i % map.width < 500 ? 0.0F : 1.5F);
  write_picture(folder_ / "radii.exr", radii);
  succeed({"box-filter", kMap, "-o", folder_ / "box.exr", "--radius-map", folder_ / "radii.exr",
           "--radius-scale", "2", "--preview", folder_ / "box.png"});
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

TEST_F(TableJobs, ABoxGoesOnAtTheOtherSideOfALatLongMap) {
  succeed({"box-filter", kMap, "-o", folder_ / "box.exr", "--radius", "6,1", "--boundary", "repeat,clamp",
           "--deviation", folder_ / "deviation.exr"});
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

TEST_F(TableJobs, TablesComeInEveryForm) {
  const auto size_of = [&](const std::string& file) { return read_npy(folder_ / file).data.size(); };
  succeed({"summed-area-table", kMap, "-o", folder_ / "sums.npy", "--exclusive", "--squares",
           folder_ / "squares.npy"});
  constexpr std::size_t kExclusive = std::size_t{513} * 1025 * 3;
  EXPECT_EQ(size_of("sums.npy"), kExclusive * sizeof(double));
  EXPECT_EQ(size_of("squares.npy"), kExclusive * sizeof(double));
  succeed(
      {"summed-area-table", kMap, "-o", folder_ / "centered.npy", "--subtract-mean", folder_ / "means.npy"});
  EXPECT_NE(read_npy(folder_ / "centered.npy").header.find("'<f4'"), std::string::npos);
  EXPECT_EQ(size_of("means.npy"), 3 * sizeof(float));
  succeed({"summed-area-table", folder_ / "centered.npy", "-o", folder_ / "singles.tif", "--accumulator",
           "float32"});
  EXPECT_EQ(read_picture(folder_ / "singles.tif").stored, OIIO::TypeDesc(OIIO::TypeDesc::FLOAT));
  fail({"summed-area-table", kMap, "-o", folder_ / "x.npy", "--accumulator", "uint32"}, "accumulator");
  // The table of a table's doubles, which no image file holds.
  succeed({"summed-area-table", folder_ / "sums.npy", "-o", folder_ / "twice.npy"});
  EXPECT_EQ(size_of("twice.npy"), kExclusive * sizeof(double));
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
