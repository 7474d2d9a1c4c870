// What the commands of sampling tables take, and what they say of what they do not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/end_to_end/image_jobs.h"

namespace cumulus::testing {
namespace {

class SamplingInputJobs : public ServedJobs {
 protected:
  template <class T>
  std::string write_npy(const std::string& name, const std::string& descr, const std::string& shape,
                        const std::vector<T>& values) const {
    std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.resize(118 - 1, ' ');
    std::ofstream file(folder_ / name, std::ios::binary);
    file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(118) << '\0' << header << '\n';
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(T)));
    return folder_ / name;
  }

  std::vector<float> densities(const std::string& input, const std::string& points,
                               const std::string& projection) const {
    succeed({"evaluate-density", input, points, "-o", folder_ / "pdf.npy", "--projection", projection});
    const std::string data = read_npy(folder_ / "pdf.npy").data;
    std::vector<float> pdf(data.size() / sizeof(float));
    std::memcpy(pdf.data(), data.data(), data.size());
    return pdf;
  }

  /// Of texels of the plane: each weight over the mean.
  template <class T>
  void expect_densities(const std::string& map, const std::vector<T>& weights, std::size_t height,
                        std::size_t width) const {
    std::vector<double> middles;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      middles.push_back((static_cast<double>(i % width) + 0.5) / static_cast<double>(width));
      middles.push_back((static_cast<double>(i / width) + 0.5) / static_cast<double>(height));
    }
    write_npy("middles.npy", "<f8", std::to_string(weights.size()) + ", 2", middles);
    const std::vector<float> pdf = densities(map, folder_ / "middles.npy", "plane");
    ASSERT_EQ(pdf.size(), weights.size());
    double sum = 0;
    for (const T weight : weights) sum += static_cast<double>(weight);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double expected = static_cast<double>(weights[i]) * static_cast<double>(weights.size()) / sum;
      EXPECT_NEAR(pdf[i], expected, 1e-6 * expected) << map << ", texel " << i;
    }
  }

  template <class T>
  void expect_map_is_taken(const std::string& descr, T unit) const {
    std::vector<T> weights;
    for (int i = 0; i < 12; ++i) weights.push_back(static_cast<T>(static_cast<T>((i * 5 + 3) % 11) * unit));
    expect_densities(write_npy("map.npy", descr, "3, 4", weights), weights, 3, 4);
    expect_densities(write_npy("row.npy", descr, "12,", weights), weights, 1, 12);
  }
};

TEST_F(SamplingInputJobs, MapsAreOfAnyNumbers) {
  expect_map_is_taken<std::uint8_t>("|u1", 20);
  expect_map_is_taken<std::uint16_t>("<u2", 6000);
  expect_map_is_taken<std::uint32_t>("<u4", 300000000);
  expect_map_is_taken<std::uint64_t>("<u8", 1ULL << 60);
  expect_map_is_taken<std::int32_t>("<i4", 100000000);
  expect_map_is_taken<std::int64_t>("<i8", 1LL << 59);
  expect_map_is_taken<float>("<f4", 0.3F);
  expect_map_is_taken<double>("<f8", 0.3);
}

TEST_F(SamplingInputJobs, NoWeightIsLostOrWithoutBoundAsAFloat) {
  const std::string row = write_npy("row.npy", "<f8", "4,", std::vector<double>{1e-300, 0.0, 1.0, -1e-300});
  write_npy("middles.npy", "<f8", "4, 2", std::vector<double>{.125, .5, .375, .5, .625, .5, .875, .5});
  const std::vector<float> pdf = densities(row, folder_ / "middles.npy", "plane");
  EXPECT_GT(pdf[0], 0.0F);
  EXPECT_EQ(pdf[1], 0.0F);
  EXPECT_EQ(pdf[3], 0.0F);
  const Ended clamped = run({"--json", "sampling-table", row, "-o", folder_ / "row.cst"});
  EXPECT_NE(clamped.output.find("\"values_clamped\":1,"), std::string::npos) << clamped.output;
  EXPECT_NE(
      clamped.output.find("1 negative (taken as 0) of 4 values, the first: row 0, column 3, channel 0 is -1"),
      std::string::npos)
      << clamped.output;
  fail({"sampling-table", row, "-o", folder_ / "row.cst", "--invalid-weights", "refuse"},
       "row.npy: row 0, column 3, channel 0 is -");
  const std::string large = write_npy("large.npy", "<f8", "2,", std::vector<double>{1e300, 1e300});
  succeed({"sampling-table", large, "-o", folder_ / "x.cst", "--invalid-weights", "refuse"});
}

TEST_F(SamplingInputJobs, PointsAreOfAnyNumbersAndDirectionsOfAnyLength) {
  const std::vector<std::int64_t> whole = {3, 2, -1, 0, 1, 0};
  const std::vector<float> floats(whole.begin(), whole.end());
  const auto evaluated = [&](const std::string& points) { return densities(kMap, points, "lat-long"); };
  const std::vector<float> right = evaluated(write_npy("f4.npy", "<f4", "2, 3", floats));
  EXPECT_EQ(evaluated(write_npy("i8.npy", "<i8", "2, 3", whole)), right);
  for (const double length : {0x1p-1000, 0x1p-140, 0x1p-70, 0x1p100, 0x1p1000}) {
    std::vector<double> scaled(whole.begin(), whole.end());
    for (double& component : scaled) component *= length;
    EXPECT_EQ(evaluated(write_npy("f8.npy", "<f8", "2, 3", scaled)), right) << length;
  }
  const std::vector<std::uint16_t> halves = {0x3400, 0x3800, 0x3A00, 0x3000};  // 0.25, 0.5, 0.75, 0.125
  EXPECT_EQ(evaluated(write_npy("f2.npy", "<f2", "2, 2", halves)),
            evaluated(write_npy("f8.npy", "<f8", "2, 2", std::vector<double>{0.25, 0.5, 0.75, 0.125})));
}

TEST_F(SamplingInputJobs, MessagesNameTheFileOrTheOption) {
  const auto zeros = [&](const std::string& name, const std::string& shape, std::size_t count) {
    return write_npy(name, "<f4", shape, std::vector<float>(count));
  };
  const std::string out = folder_ / "x.cst";
  fail({"sampling-table", zeros("black.npy", "2, 2", 4), "-o", out},
       "black.npy: every weight is zero, so there is nothing to draw; at least one texel needs a positive "
       "value, unless --uniform-if-zero is given");
  fail({"sampling-table", write_npy("below.npy", "<f4", "1, 2", std::vector<float>{0.0F, -0.5F}), "-o", out},
       "below.npy: every weight is zero, so there is nothing to draw: 1 negative (taken as 0) of 2 values, "
       "the "
       "first: row 0, column 1, channel 0 is -0.5; at least one texel needs a positive value");
  fail({"sampling-table", zeros("flat.npy", "2, 4", 8), "-o", out, "--projection", "equal-area"},
       "flat.npy: has 2 x 4 pixels; an EQUAL_AREA map is square (of --projection equal-area)");
  fail({"sampling-table", zeros("many.npy", "2, 4, 5", 40), "-o", out}, "many.npy: has 5 channels; 1 to 4");
  fail({"sampling-table", zeros("none.npy", "0, 4", 0), "-o", out},
       "none.npy has the shape [0, 4]; a map is");
  fail({"sampling-table", kMap, "-o", out, "--invalid-weights", "refuse"},
       "unless --invalid-weights is clamp");
  fail({"evaluate-density", kMap, zeros("pair.npy", "2,", 2), "-o", folder_ / "d.npy"},
       "pair.npy has the shape [2]; [count, 2], positions, or [count, 3], directions, is right");
  fail({"evaluate-density", kMap, zeros("up.npy", "1, 3", 3), "-o", folder_ / "d.npy", "--projection",
        "plane"},
       "up.npy: is FLOAT32 [1, 3]");
  fail({"evaluate-density", kMap, zeros("up.npy", "1, 3", 3), "-o", folder_ / "d.npy", "--layer", "1"},
       "--layer: is 1; the table has 1 layer, counted from 0");
}

TEST_F(SamplingInputJobs, NothingIsIgnoredInSilence) {
  const std::string table = folder_ / "x.cst";
  succeed({"sampling-table", kMap, "-o", table});
  const auto refused = [&](const std::vector<std::string>& words, const std::string& text) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.exit_code, 2) << ended.output;
    EXPECT_NE(ended.errors.find(text), std::string::npos) << ended.errors;
  };
  const std::string npy = folder_ / "s.npy";
  refused({"draw-samples", table, "-n", "4", "-o", npy, "--projection", "plane"},
          "--projection: is for an image, and " + table + " is a table already: leave it out");
  refused({"sampling-table", table, "--export", "npz", "-o", folder_ / "x.npz", "--mis-compensation"},
          "--mis-compensation: is for an image");
  refused({"evaluate-density", table, npy, "-o", npy, "--luminance", "average"},
          "--luminance: is for an image");
  refused({"draw-samples", table, "-n", "4", "-o", npy, "--total", "8"}, "give --sequence hammersley");
  refused({"draw-samples", table, "-n", "4", "-o", npy, "--map", kMap}, "--map requires --preview");
  refused({"draw-samples", table, "-n", "4", "-o", npy, "--seed", "18446744073709551616"},
          "--seed: is 18446744073709551616; a whole number, 0 to 18446744073709551615, is right");
  refused({"sampling-table", kMap, "-o", folder_ / "x.npz"}, "a table's name ends in .cst");
  refused({"sampling-table", kMap, "-o", folder_ / "map.exr"}, "a table's name ends in .cst");
  refused({"sampling-table", kMap, "-o", table, "--export", "pbrt"}, "ends in .npz is right");
  refused({"sampling-table", kMap, "-o", table, "--luminance", "0,0,0"},
          "--luminance: is 0,0,0; as floats one of them must be more than 0");
  refused({"sampling-table", kMap, "-o", table, "--luminance", "1e60,0,0"}, "three finite numbers");
  refused({"sampling-table", kMap, "-o", table, "--method", "alias", "--guide-size", "77"},
          "--guide-size: is for methods with a guide table");
}

TEST_F(SamplingInputJobs, ANarrowTallMapHasAPreview) {
  std::vector<float> weights(20000);
  std::iota(weights.begin(), weights.end(), 0.0F);
  const std::string map = write_npy("tall.npy", "<f4", "20000, 1", weights);
  succeed({"draw-samples", map, "-n", "100", "--preview", folder_ / "tall.png"});
  const Picture preview = read_picture(folder_ / "tall.png");
  EXPECT_EQ(preview.width, 1);
  EXPECT_EQ(preview.height, 20000);
}

}  // namespace
}  // namespace cumulus::testing
