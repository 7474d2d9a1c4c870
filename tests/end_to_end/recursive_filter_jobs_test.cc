// Filters from the command line: the real program against the real daemon, held against what the filters are
// for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/end_to_end/json.h"
#include "tests/end_to_end/npy_file.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/served_jobs.h"
#include "tests/support/test_data.h"

namespace cumulus::testing {
namespace {

constexpr std::size_t kHeight = 40;
constexpr std::size_t kWidth = 90;

class RecursiveFilterJobs : public ServedJobs {
 protected:
  static Ended run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--json");
    return ServedJobs::run(arguments);
  }
  /// Filters an image of kHeight x kWidth floats.
  std::vector<float> filtered(const std::vector<float>& image, std::vector<std::string> command) const {
    write_npy(folder_ / "in.npy", image);
    command.insert(command.begin() + 1, {folder_ / "in.npy", "-o", folder_ / "out.npy"});
    const Ended ended = run(command);
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    return read_npy(folder_ / "out.npy");
  }
  static void fail(const std::vector<std::string>& arguments, int exit_code, const std::string& part) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.output;
    EXPECT_NE(ended.errors.find(part), std::string::npos) << ended.errors;
  }

  static void write_npy(const std::string& path, const std::vector<float>& values) {
    write_npy(path, values, std::to_string(kHeight) + ", " + std::to_string(kWidth), "<f4");
  }
  /// The bytes of `values` as an array of another shape and type.
  static void write_npy(const std::string& path, const std::vector<float>& values, const std::string& shape,
                        const std::string& type) {
    std::string dictionary =
        "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }\n";
    dictionary.insert(dictionary.end() - 1, 128 - 10 - dictionary.size(), ' ');
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(dictionary.size());
    bytes += '\0';
    std::ofstream file(path, std::ios::binary);
    file << bytes << dictionary;
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
  }
  /// The floats that a .npy or .pfm file ends with.
  static std::vector<float> read_floats(const std::string& path, std::size_t count) {
    const std::string bytes = read_file(path);
    std::vector<float> values(count);
    if (bytes.size() < count * sizeof(float)) {
      ADD_FAILURE() << path << " has " << bytes.size() << " bytes";
      return values;
    }
    std::memcpy(values.data(), bytes.data() + bytes.size() - count * sizeof(float), count * sizeof(float));
    return values;
  }
  static std::vector<float> read_npy(const std::string& path, std::size_t count = kHeight * kWidth) {
    EXPECT_NE(read_file(path).find("'<f4'"), std::string::npos);
    return read_floats(path, count);
  }
  static std::vector<float> noise() {
    std::mt19937 random(1);
    std::vector<float> image(kHeight * kWidth);
    for (float& value : image) value = static_cast<float>(random() >> 8) * 0x1p-24F;
    return image;
  }
  /// Each row begun at its column `by`.
  static std::vector<float> rolled(const std::vector<float>& image, std::size_t by) {
    std::vector<float> result = image;
    for (std::size_t y = 0; y < kHeight; ++y) {
      const auto row = result.begin() + static_cast<std::ptrdiff_t>(y * kWidth);
      std::rotate(row, row + static_cast<std::ptrdiff_t>(by), row + kWidth);
    }
    return result;
  }
  static float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
  }
};

TEST_F(RecursiveFilterJobs, ALatLongMapIsBlurredAlikeWhereverItIsCut) {
  const std::vector<float> map = noise();
  const std::vector<std::string> seamless = {"blur", "--sigma", "12", "--boundary", "repeat,clamp"};
  EXPECT_LT(largest_difference(filtered(rolled(map, 31), seamless), rolled(filtered(map, seamless), 31)),
            2e-6F);
  const std::vector<std::string> cut = {"blur", "--sigma", "12"};
  EXPECT_GT(largest_difference(filtered(rolled(map, 31), cut), rolled(filtered(map, cut), 31)), 1e-3F);
}

TEST_F(RecursiveFilterJobs, BothMethodsBlurAlike) {
  const std::vector<float> map = noise();
  const auto deriche = filtered(map, {"blur", "--sigma", "3,5", "--method", "deriche"});
  const auto young = filtered(map, {"blur", "--sigma", "3,5", "--method", "young"});
  const float difference = largest_difference(deriche, young);
  EXPECT_LT(difference, 0.05F);
  EXPECT_GT(difference, 1e-5F);
  EXPECT_LT(largest_difference(deriche, filtered(map, {"blur", "--sigma", "3,5", "--method", "fir"})), 1e-3F);
}

TEST_F(RecursiveFilterJobs, ABlurOfASkyWithASunIsNeverNegativeByDefault) {
  std::vector<float> sky(kHeight * kWidth, 1e-4F);
  sky[kHeight / 2 * kWidth + kWidth / 2] = 65504;
  const auto deriche = filtered(sky, {"blur", "--sigma", "2", "--method", "deriche"});
  EXPECT_LT(*std::min_element(deriche.begin(), deriche.end()), 0.0F);
  const auto fir = filtered(sky, {"blur", "--sigma", "2"});
  EXPECT_GE(*std::min_element(fir.begin(), fir.end()), 0.99999e-4F);
  EXPECT_EQ(fir, filtered(sky, {"blur", "--sigma", "2", "--method", "fir"}));
}

TEST_F(RecursiveFilterJobs, TheDerivativeOfARampIsItsSlope) {
  std::vector<float> ramp(kHeight * kWidth);
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = 0.25F * static_cast<float>(i % kWidth);
  const auto slope = filtered(ramp, {"blur", "--sigma", "2,1", "--derivative", "1,0"});
  const auto nothing = filtered(ramp, {"blur", "--sigma", "1,2", "--derivative", "0,1"});
  for (std::size_t y = 0; y < kHeight; ++y) {
    for (std::size_t x = 30; x < kWidth - 30; ++x) ASSERT_NEAR(slope[y * kWidth + x], 0.25F, 1e-5F) << x;
    for (std::size_t x = 0; x < kWidth; ++x) ASSERT_NEAR(nothing[y * kWidth + x], 0.0F, 1e-5F) << x;
  }
}

/// True is 1, where of bytes 255 is.
TEST_F(RecursiveFilterJobs, AMaskOfTruthValuesIsBlurredAsZerosAndOnes) {
  std::ofstream(folder_ / "mask.npy") << npy_file("|b1", "2, 2", std::string(4, '\1'));
  const Ended ended = run({"blur", folder_ / "mask.npy", "--sigma", "2", "-o", folder_ / "soft.npy"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  for (const float value : read_npy(folder_ / "soft.npy", 4)) EXPECT_NEAR(value, 1, 1e-6);
}

TEST_F(RecursiveFilterJobs, ASigmaOfZeroLeavesItsAxisAsItIs) {
  std::vector<float> lines(kHeight * kWidth);
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i] = static_cast<float>(i / kWidth % 7);
  EXPECT_LT(largest_difference(filtered(lines, {"blur", "--sigma", "6,0"}), lines), 1e-5F);
  EXPECT_GT(largest_difference(filtered(lines, {"blur", "--sigma", "0,6"}), lines), 1.0F);
}

TEST_F(RecursiveFilterJobs, OptionsMayStandBeforeTheInput) {
  write_npy(folder_ / "in.npy", noise());
  const auto after = filtered(noise(), {"blur", "--sigma", "3,5", "--boundary", "repeat,clamp"});
  succeed({"blur", "--boundary", "repeat,clamp", "--derivative", "0", "--sigma", "3,5", folder_ / "in.npy",
           "-o", folder_ / "before.npy"});
  EXPECT_EQ(read_npy(folder_ / "before.npy"), after);
  succeed({"filter", "--feedback", "-0.5,0.1", folder_ / "in.npy", "-o", folder_ / "out.npy"});
  succeed(
      {"box-filter", "--radius", "2", "--boundary", "clamp", folder_ / "in.npy", "-o", folder_ / "out.npy"});
}

TEST_F(RecursiveFilterJobs, TheSplineOfTheCoefficientsGoesThroughThePixels) {
  const std::vector<float> image = noise();
  const auto coefficients = filtered(image, {"bspline-prefilter"});
  const auto at = [&](std::ptrdiff_t y, std::ptrdiff_t x) {
    const auto mirrored = [](std::ptrdiff_t i, std::size_t length) {
      const auto last = static_cast<std::ptrdiff_t>(length) - 1;
      return static_cast<std::size_t>(i < 0 ? -i : i > last ? 2 * last - i : i);
    };
    return static_cast<double>(coefficients[mirrored(y, kHeight) * kWidth + mirrored(x, kWidth)]);
  };
  const double weights[] = {1.0 / 6, 4.0 / 6, 1.0 / 6};
  for (std::size_t i = 0; i < image.size(); ++i) {
    double value = 0;
    for (std::ptrdiff_t dy = -1; dy <= 1; ++dy) {
      for (std::ptrdiff_t dx = -1; dx <= 1; ++dx) {
        value +=
            weights[dy + 1] * weights[dx + 1] *
            at(static_cast<std::ptrdiff_t>(i / kWidth) + dy, static_cast<std::ptrdiff_t>(i % kWidth) + dx);
      }
    }
    ASSERT_NEAR(value, image[i], 3e-6) << i;
  }
}

TEST_F(RecursiveFilterJobs, FeedbackIsTheRecursionItSays) {
  std::vector<float> impulse(kHeight * kWidth);
  impulse[20 * kWidth + 45] = 1;
  const auto response =
      filtered(impulse, {"filter", "--feedback=-0.9,0.2", "--gain", "0.5", "--boundary", "zero"});
  // One line: both directions of y[i] = x[i] + 0.9 y[i-1] - 0.2 y[i-2], far from its ends.
  std::vector<double> line(401);
  line[200] = 0.5;
  for (std::size_t i = 2; i < line.size(); ++i) line[i] += 0.9 * line[i - 1] - 0.2 * line[i - 2];
  for (std::size_t i = line.size() - 2; i-- > 0;) line[i] += 0.9 * line[i + 1] - 0.2 * line[i + 2];
  for (std::size_t y = 0; y < kHeight; ++y) {
    for (std::size_t x = 0; x < kWidth; ++x) {
      ASSERT_NEAR(response[y * kWidth + x], line[200 + y - 20] * line[200 + x - 45], 1e-5) << y << ", " << x;
    }
  }
}

TEST_F(RecursiveFilterJobs, TakeImageFilesAndTellWhatTheyDid) {
  const Ended ended = run({"blur", test_data("sunrise.exr").string(), "-o", folder_ / "blurred.exr",
                           "--sigma", "20", "--boundary", "repeat,clamp"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  const Json report(ended.output);
  EXPECT_EQ(report.text("command"), "blur");
  EXPECT_EQ(report.number("width"), 1024);
  EXPECT_EQ(report.text("element_type"), "float32");
  EXPECT_GT(report.number("server_seconds.compute"), 0);
}

TEST_F(RecursiveFilterJobs, ShowAPreview) {
  succeed({"blur", test_data("sunrise.exr").string(), "-o", folder_ / "blurred.exr", "--sigma", "20",
           "--preview", folder_ / "blurred.png"});
  EXPECT_EQ(read_file(folder_ / "blurred.png").substr(0, 4), "\x89PNG");
  succeed({"blur", folder_ / "blurred.png", "-o", folder_ / "again.png", "--sigma", "2"});
  fail({"blur", folder_ / "blurred.png", "-o", folder_ / "again.png", "--sigma", "2", "--preview",
        folder_ / "p.png"},
       1, "leave --preview out");
}

TEST_F(RecursiveFilterJobs, TheBloomExampleAddsWhatTheCommandBlurs) {
  const std::string map = test_data("sunrise.exr").string();
  const Ended ended = Program(CUMULUS_EXAMPLE_BLOOM, {daemon_->address(), map, folder_ / "bloom.pfm"}).wait();
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  const Ended unwritten =
      Program(CUMULUS_EXAMPLE_BLOOM, {daemon_->address(), map, folder_ / "missing/bloom.pfm"}).wait();
  EXPECT_EQ(unwritten.exit_code, 1);
  EXPECT_NE(unwritten.errors.find("cannot write "), std::string::npos) << unwritten.errors;
  constexpr std::size_t kRow = 1024 * 3;
  constexpr std::size_t kCount = 512 * kRow;
  succeed({"box-filter", map, "-o", folder_ / "map.npy", "--radius", "0"});
  std::vector<float> sum = read_npy(folder_ / "map.npy", kCount);
  const std::vector<float> before = sum;
  for (const auto& [sigma, weight] : {std::pair("2", 0.04F), {"8", 0.03F}, {"32", 0.02F}, {"128", 0.01F}}) {
    succeed({"blur", map, "-o", folder_ / "glow.npy", "--sigma", sigma, "--boundary", "repeat,clamp"});
    const std::vector<float> glow = read_npy(folder_ / "glow.npy", kCount);
    for (std::size_t i = 0; i < kCount; ++i) sum[i] += weight * glow[i];
  }
  const float brightest = *std::max_element(before.begin(), before.end());
  const std::vector<float> bloom = read_floats(folder_ / "bloom.pfm", kCount);  // rows from the bottom up
  float largest = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const float right = sum[(511 - i / kRow) * kRow + i % kRow];
    largest = std::max(largest, std::abs(bloom[i] - right));
  }
  EXPECT_LT(largest, 1e-6F * brightest);
  const auto light = [](const std::vector<float>& pixels) {
    return std::accumulate(pixels.begin(), pixels.end(), 0.0);
  };
  EXPECT_NEAR(light(bloom) / light(before), 1.1, 0.02);
}

TEST_F(RecursiveFilterJobs, TakeAnAlgorithmAndTellWhichRan) {
  write_npy(folder_ / "in.npy", noise());
  for (const std::string algorithm : {"auto", "lines", "tiled", "on-chip", "decaying"}) {
    const Ended ended = run({"blur", folder_ / "in.npy", "-o", folder_ / "out.npy", "--sigma", "3",
                             "--algorithm", algorithm, "--max-truncation-error", "1e-5"});
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
    const Json report(ended.output);
    if (algorithm != "auto" && report.text("device.backend") == "cuda") {
      EXPECT_EQ(report.text("algorithm"), algorithm);
    }
    EXPECT_LE(report.number("truncation_bound"), 1e-5);
  }
}

TEST_F(RecursiveFilterJobs, SayWhatIsWrong) {
  const std::string map = test_data("sunrise.exr").string();
  fail({"blur", map, "-o", folder_ / "x.png", "--sigma", "2"}, 1, "does not fit into the 0 to 1 of ");
  fail({"blur", map, "-o", folder_ / "x.exr", "--sigma", "0.1"}, 2, "--sigma");
  fail({"blur", map, "-o", folder_ / "x.exr", "--sigma", "1,2,3"}, 2,
       "--sigma: is 1,2,3: 3 values; at most 2 are right");
  fail({"blur", map, "-o", folder_ / "x.exr", "--sigma", "0,0"}, 2,
       "--sigma: is 0; a number, 0.5 to 10000, is right");
  fail({"blur", map, "-o", folder_ / "x.exr", "--sigma", ",2"}, 2,
       "--sigma: is empty; a number, 0.5 to 10000, is right");
  fail({"blur", map, "-o", folder_ / "x.exr", "--sigma", "2,0", "--derivative", "1"}, 2,
       "--derivative: an axis whose sigma is 0 has none");
  fail({"blur", map, "-o", folder_ / "x.exr", "--sigma", "2", "--boundary", "wrap"}, 2,
       "--boundary: is wrap; one of clamp, exact, mirror, reflect, repeat, zero is right");
  fail({"blur", map, "-o", folder_ / "x.exr", "--sigma", "2", "--derivative", "1", "--method", "young"}, 2,
       "only --method deriche has derivatives");
  fail({"blur", map, "-o", folder_ / "x.exr", "--sigma", "2", "--method", "fir", "--algorithm", "tiled"}, 2,
       "--algorithm: is of recursive filters");
  fail({"blur", map, "-o", folder_ / "x.exr", "--sigma", "2", "--method", "fir", "--max-truncation-error",
        "0"},
       2, "--max-truncation-error: is of recursive filters");
  write_npy(folder_ / "five.npy", noise(), "30, 24, 5", "<f4");
  fail({"filter", map, "-o", folder_ / "x.exr", "--feedback=-2,1.21"}, 1,
       "cumulus: --feedback: has the pole 1 ");
  fail({"filter", map, "-o", folder_ / "x.exr", "--feedback=-0.5", "--gain", "0"}, 1,
       "cumulus: --gain: is 0; ");
  fail({"summed-area-table", folder_ / "five.npy", "-o", folder_ / "x.npy"}, 1,
       "cumulus: " + (folder_ / "five.npy") + ": has 5 channels; 1 to 4 is right");
  fail({"filter", map, "-o", folder_ / "x.exr", "--feedback=-0.5", "--gain", "inf"}, 2, "--gain: is inf; ");
  write_npy(folder_ / "long.npy", noise(), "1, 3600", "<f4");
  fail({"blur", folder_ / "long.npy", "-o", folder_ / "x.npy", "--sigma", "400", "--algorithm", "decaying"},
       1, "cumulus: --max-truncation-error: ");
  fail({"blur", folder_ / "long.npy", "-o", folder_ / "x.npy", "--sigma", "400", "--algorithm", "decaying"},
       1, "or FILTER_TILED, is right (--algorithm tiled leaves nothing out)");
  write_npy(folder_ / "doubles.npy", noise(), "40, 45", "<f8");
  fail({"blur", folder_ / "doubles.npy", "-o", folder_ / "x.npy", "--sigma", "4", "--algorithm", "tiled"}, 1,
       "FILTER_BY_LINES is right (--algorithm lines takes every image and every filter, auto the fastest "
       "way)");
  fail({"blur", folder_ / "doubles.npy", "-o", folder_ / "x.npy", "--sigma", "4", "--preview",
        folder_ / "p.png"},
       1, "leave --preview out");
  fail({"blur", folder_ / "long.npy", "-o", folder_ / "x.hdr", "--sigma", "4"}, 1, ".exr and .tif take");
  fail({"blur", map, "-o", folder_ / "x.exr", "--sigma", "4", "--algorithm", "fast"}, 2, "--algorithm");
  fail({"blur", map, "-o", folder_ / "x.exr", "--sigma", "4", "--max-truncation-error", "2"}, 2,
       "--max-truncation-error");
  fail({"bspline-prefilter", map, "-o", folder_ / "x.exr", "--degree", "4"}, 2, "--degree");
}

}  // namespace
}  // namespace cumulus::testing
