#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/support/gpus.h"

// How much scratch memory filters take on a GPU, of the image's bytes. That they take what they say is seen
// wherever they run.

namespace cumulus {
namespace {

template <class T>
double share(RecursiveFilterMethod method, std::int64_t side, int channels, const AxisFilter& axis) {
  const ImageView<const T, Space::kDevice> image(nullptr, side, side, channels);
  RecursiveFilterChoice choice;
  choice.method = method;
  const auto bytes = apply_recursive_filter_scratch_bytes<T, Space::kDevice>(
      FilterImages<const T, Space::kDevice>(image, 1), {axis, axis}, testing::kH200, choice);
  return static_cast<double>(bytes) /
         static_cast<double>(static_cast<std::size_t>(image.elements()) * sizeof(T));
}

TEST(RecursiveFilterScratch, OfTheTiledMethodIsAFewHundredths) {
  for (const std::int64_t side : {1024, 2048, 8192}) {
    for (const int channels : {1, 3}) {
      SCOPED_TRACE(std::to_string(side) + ", " + std::to_string(channels) + " channels");
      const auto of = [&]<class T>(T /*element*/, const AxisFilter& axis) {
        return share<T>(RecursiveFilterMethod::kTiled, side, channels, axis);
      };
      const double smaller = 1024.0 / static_cast<double>(side);
      EXPECT_LT(of(float{}, gaussian_filter(8, FilterBoundary::kClamp)), 0.026 * smaller);
      EXPECT_LT(of(float{}, deriche_filter(8, 0, FilterBoundary::kClamp)), 0.034 * smaller);
      EXPECT_LT(of(Float16{}, gaussian_filter(8, FilterBoundary::kClamp)), 0.052 * smaller);
    }
  }
}

TEST(RecursiveFilterScratch, OnTheChipAndInStripsIsNothing) {
  const AxisFilter three_poles = gaussian_filter(8, FilterBoundary::kClamp);
  const AxisFilter four_poles = deriche_filter(8, 0, FilterBoundary::kClamp);
  EXPECT_EQ(share<float>(RecursiveFilterMethod::kOnChip, 1024, 1, three_poles), 0);
  EXPECT_EQ(share<float>(RecursiveFilterMethod::kOnChip, 8192, 1, three_poles), 0);  // refused
  EXPECT_EQ(share<Float16>(RecursiveFilterMethod::kOnChip, 1000, 1, four_poles), 0);
  EXPECT_EQ(share<float>(RecursiveFilterMethod::kOnChip, 2048, 3, three_poles), 0);
  EXPECT_EQ(share<float>(RecursiveFilterMethod::kDecaying, 8192, 3, four_poles), 0);
}

}  // namespace
}  // namespace cumulus
