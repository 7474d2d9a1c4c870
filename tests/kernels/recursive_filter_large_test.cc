// Images of more bytes than 31 bits count: gigabytes of memory, seconds of time.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/cases/recursive_filter_case.h"
#include "tests/kernels/recursive_filter_running.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::FilterImage;
using testing::FilterPattern;
using testing::FilterShape;
using testing::make_filter_image;
using Method = RecursiveFilterMethod;

/// The image repeats a small one, and so does what a repeating boundary makes of it: the oracle filters that
/// alone.
constexpr FilterShape kPeriod = {100, 192};
constexpr FilterShape kLarge = {kPeriod.height * 240, kPeriod.width * 125};  // 2.3 GB of floats

std::vector<float> repeat(const FilterImage& small) {
  std::vector<float> large;
  large.reserve(static_cast<std::size_t>(kLarge.height * kLarge.width));
  for (std::int64_t y = 0; y < kLarge.height; ++y) {
    const float* row = small.row(y % kPeriod.height);
    for (std::int64_t x = 0; x < kLarge.width; x += kPeriod.width)
      large.insert(large.end(), row, row + kPeriod.width);
  }
  return large;
}

/// Empty if all periods of `filtered` are right.
std::string verify(const FilterImage& small, const RecursiveFilter& filter,
                   const std::vector<float>& filtered) {
  const std::vector<long double> exact = filter_serially(small, filter);
  const std::vector<double> right(exact.begin(), exact.end());
  const double bound = testing::recursive_filter_tolerance<float>(filter);
  for (std::int64_t y = 0; y < kLarge.height; ++y) {
    const double* expected = right.data() + y % kPeriod.height * kPeriod.width;
    const float* row = filtered.data() + y * kLarge.width;
    for (std::int64_t x = 0; x < kLarge.width; ++x) {
      if (!(std::abs(row[x] - expected[x % kPeriod.width]) <= bound))
        return "pixel " + std::to_string(y) + ", " + std::to_string(x) + " is " + std::to_string(row[x]);
    }
  }
  return "";
}

const FilterImage& small_image() {
  static const FilterImage kImage = make_filter_image(kPeriod, FilterPattern::kRandom);
  return kImage;
}

RecursiveFilter blur(double sigma) {
  const AxisFilter axis = gaussian_filter(sigma, FilterBoundary::kRepeat);
  return {axis, axis};
}

TEST(SlowRecursiveFilterOnTheCpu, IsRightBeyondTwoToThe31Bytes) {
  const std::vector<float> image = repeat(small_image());
  std::vector<float> filtered(image.size());
  CpuExecutor executor(2);
  apply_recursive_filter<float>(
      executor, ImageView<const float, Space::kHost>(image.data(), kLarge.height, kLarge.width), blur(8),
      ImageView<float, Space::kHost>(filtered.data(), kLarge.height, kLarge.width));
  EXPECT_EQ(verify(small_image(), blur(8), filtered), "");
}

using LargeRecursiveFilterOnCuda = testing::OnEveryBackend<testing::CudaBackend>;

/// Takes 5 GB of the device's memory.
TEST_F(LargeRecursiveFilterOnCuda, SlowIsRightBeyondTwoToThe31Bytes) {
  const std::vector<float> image = repeat(small_image());
  for (const Method method : {Method::kDecaying, Method::kTiled, Method::kLines}) {
    SCOPED_TRACE("method " + std::to_string(static_cast<int>(method)));
    const std::vector<float> filtered =
        testing::apply_to<float>(backend(), image, kLarge, kLarge.width, 1, blur(8), method);
    EXPECT_EQ(verify(small_image(), blur(8), filtered), "");
  }
}

}  // namespace
}  // namespace cumulus
