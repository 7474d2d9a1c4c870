// The kernel that goes down strips of large images, on images of any size.
#include "kernels/core/cuda_executor.h"

#if CUMULUS_WITH_CUDA
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/summed_area_table/strips/strips.h"
#include "tests/cases/summed_area_table_case.h"
#include "tests/kernels/summed_area_table_building.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using summed_area_table::build_shape;
using summed_area_table::kStripForms;
using summed_area_table::StripForm;
using testing::ImagePattern;
using testing::ImageShape;
using testing::make_image;
using testing::TestImage;

template <class Sum, class Input>
std::vector<Sum> build(testing::CudaBackend& backend, StripForm strips, const TestImage<Input>& image) {
  return testing::build_aligned<Sum>(backend, image, [&](auto& executor, const auto& job) {
    build_in_strips(executor, job, plan_strips(build_shape(job), strips));
  });
}

template <class Input, class Sum>
void expect_tables(testing::CudaBackend& backend, ImageShape shape) {
  const int to_whole_words = testing::padding_to_whole_words<Input>(shape);
  for (const int padding : {to_whole_words, to_whole_words + 16}) {
    const auto image = make_image<Input>(shape, 1, padding, ImagePattern::kRandom);
    for (const StripForm strips : kStripForms) {
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
  for (const StripForm strips : kStripForms) {
    const auto table = build<float>(backend(), strips, image);
    for (std::int64_t y = 0; y < image.height; ++y) {
      for (std::int64_t x = 0; x < image.width; ++x) {
        ASSERT_EQ(std::isnan(table[static_cast<std::size_t>(y * image.width + x)]), y >= 430 && x >= 350)
            << y << ", " << x;
      }
    }
  }
}

}  // namespace
}  // namespace cumulus
#endif
