// The kernel that goes down strips of large images, on images of any size.
#include "kernels/core/cuda_executor.h"

#if CUMULUS_WITH_CUDA
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/summed_area_table/methods.h"
#include "tests/cases/summed_area_table_case.h"
#include "tests/kernels/summed_area_table_building.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using summed_area_table::build_in_strips_of;
using testing::ImagePattern;
using testing::ImageShape;
using testing::make_image;
using testing::TestImage;

/// Strips that there are.
struct Strips {
  int columns;
  int blocks_per_strip;
};
constexpr Strips kStrips[] = {{64, 2}, {128, 2}, {128, 1}};

template <class Sum, class Input>
std::vector<Sum> build(testing::CudaBackend& backend, Strips strips, const TestImage<Input>& image) {
  return testing::build_aligned<Sum>(backend, image, [&](auto& executor, const auto& job) {
    return build_in_strips_of(strips.columns, strips.blocks_per_strip, executor, job);
  });
}

template <class Input, class Sum>
void expect_tables(testing::CudaBackend& backend, ImageShape shape) {
  const int to_whole_words = testing::padding_to_whole_words<Input>(shape);
  for (const int padding : {to_whole_words, to_whole_words + 16}) {
    const auto image = make_image<Input>(shape, 1, padding, ImagePattern::kRandom);
    for (const Strips strips : kStrips) {
      SCOPED_TRACE(std::to_string(shape.height) + " x " + std::to_string(shape.width) + " in strips of " +
                   std::to_string(strips.columns) + " by " + std::to_string(strips.blocks_per_strip) +
                   " blocks, rows padded by " + std::to_string(padding));
      EXPECT_EQ(verify_summed_area_table(image, build<Sum>(backend, strips, image).data()), "");
    }
  }
}

class StripsOfSmallImagesOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {};
class StripsOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {};

TEST_F(StripsOfSmallImagesOnCuda, AreRight) {
  for (const ImageShape shape :
       {ImageShape{300, 208}, ImageShape{1, 5}, ImageShape{129, 259}, ImageShape{64, 70}}) {
    expect_tables<float, float>(backend(), shape);
    expect_tables<std::uint8_t, std::uint32_t>(backend(), shape);
  }
}

/// Many bands, through all places of their ring several times.
TEST_F(StripsOnCuda, AreRightDownTallImages) {
  expect_tables<float, float>(backend(), {20000, 333});
  expect_tables<std::uint8_t, std::uint32_t>(backend(), {20000, 333});
}

TEST_F(StripsOnCuda, LeaveNanWhereItIs) {
  auto image = make_image<float>({1200, 700}, 1, 0, ImagePattern::kIntegers);
  image.row(430)[350] = std::numeric_limits<float>::quiet_NaN();
  for (const Strips strips : kStrips) {
    const auto table = build<float>(backend(), strips, image);
    for (std::int64_t y = 0; y < image.height; ++y) {
      for (std::int64_t x = 0; x < image.width; ++x) {
        ASSERT_EQ(std::isnan(table[static_cast<std::size_t>(y * image.width + x)]), y >= 430 && x >= 350)
            << y << ", " << x;
      }
    }
  }
}

TEST_F(StripsOnCuda, AreNotForOtherImages) {
  const testing::BackendArray<testing::CudaBackend, float> pixels(backend(), std::vector<float>(1 << 16));
  testing::BackendArray<testing::CudaBackend, float> sums(backend(), 1 << 16);
  TableJob<float, float, Space::kDevice> job;
  job.image = {pixels.const_span().data(), 100, 102};
  job.sums = {sums.span().data(), 100, 102};
  EXPECT_FALSE(build_in_strips_of(64, 2, backend().executor(), job)) << "rows begin anywhere";
  job.image = {pixels.const_span().data(), 2, 32 * 1000};
  job.sums = {sums.span().data(), 2, 32 * 1000};
  EXPECT_FALSE(build_in_strips_of(64, 2, backend().executor(), job)) << "more strips than run at once";
}

}  // namespace
}  // namespace cumulus
#endif
