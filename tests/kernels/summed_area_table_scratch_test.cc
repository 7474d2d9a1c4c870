#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "kernels/core/float16.h"
#include "kernels/summed_area_table/summed_area_table.h"

// How much scratch memory tables take on a GPU, of the bytes of image and table. That they take what they say
// is seen wherever they are built.

namespace cumulus {
namespace {

template <class Input, class Sum>
double share(std::int64_t side, int channels, bool squares) {
  const ImageView<const Input, Space::kDevice> image(nullptr, side, side, channels);
  const auto bytes = summed_area_table::tables_scratch_bytes<Input, Sum>(image, 1, squares, false);
  return static_cast<double>(bytes) / static_cast<double>(static_cast<std::size_t>(image.elements()) *
                                                          (sizeof(Input) + sizeof(Sum) * (squares ? 2 : 1)));
}

template <class Input, class Sum>
void expect_small_shares() {
  for (const std::int64_t side : {1024, 4096, 16384}) {
    for (const int channels : {1, 2, 3, 4}) {
      SCOPED_TRACE(std::to_string(side) + ", " + std::to_string(channels) + " channels");
      const bool doubles = sizeof(Input) == 8;
      const double most = channels > 1 && !doubles ? 0.062 : doubles ? 0.033 : 0.03;
      EXPECT_LT((share<Input, Sum>(side, channels, false)), most);
      if constexpr (kSumsSquares<Input, Sum>) {
        EXPECT_LT((share<Input, Sum>(side, channels, true)), doubles ? 0.043 : 0.036);
      }
    }
  }
}

TEST(SummedAreaTableScratch, IsAFewHundredthsOfImageAndTable) {
  expect_small_shares<std::uint8_t, std::uint32_t>();
  expect_small_shares<std::uint8_t, std::uint64_t>();
  expect_small_shares<std::uint16_t, std::uint32_t>();
  expect_small_shares<std::uint16_t, std::uint64_t>();
  expect_small_shares<std::uint32_t, std::uint64_t>();
  expect_small_shares<std::int32_t, std::int64_t>();
  expect_small_shares<Float16, float>();
  expect_small_shares<Float16, double>();
  expect_small_shares<float, float>();
  expect_small_shares<float, double>();
  expect_small_shares<double, double>();
}

TEST(SummedAreaTableScratch, IsNoneOnTheCpu) {
  const ImageView<const float, Space::kHost> image(nullptr, 4096, 4096, 3);
  EXPECT_EQ((summed_area_table::tables_scratch_bytes<float, double>(image, 5, true, true)), 0u);
}

}  // namespace
}  // namespace cumulus
