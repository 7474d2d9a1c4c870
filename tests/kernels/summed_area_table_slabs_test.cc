// The kernel that has slabs of whole rows, on images of any size that it can take.
#include "kernels/core/cuda_executor.h"

#if CUMULUS_WITH_CUDA
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/summed_area_table/table_methods.h"
#include "tests/cases/summed_area_table_case.h"
#include "tests/kernels/summed_area_table_building.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using summed_area_table::build_in_slabs;
using testing::ImagePattern;
using testing::ImageShape;
using testing::make_image;
using testing::TestImage;

template <class Sum, class Input>
std::vector<Sum> build(testing::CudaBackend& backend, const TestImage<Input>& image) {
  return testing::build_aligned<Sum>(
      backend, image, [](auto& executor, const auto& job) { return build_in_slabs(executor, job); });
}

template <class Input, class Sum>
void expect_tables(testing::CudaBackend& backend, ImageShape shape,
                   ImagePattern pattern = ImagePattern::kRandom) {
  const int to_whole_words = testing::padding_to_whole_words<Input>(shape);
  for (const int padding : {to_whole_words, to_whole_words + 16}) {
    const auto image = make_image<Input>(shape, 1, padding, pattern);
    SCOPED_TRACE(testing::describe(shape, 1, padding, pattern));
    EXPECT_EQ(verify_summed_area_table(image, build<Sum>(backend, image).data()), "");
  }
}

class SlabsOfSmallImagesOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {};
class SlabsOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {};

TEST_F(SlabsOfSmallImagesOnCuda, AreRight) {
  for (const ImageShape shape : {ImageShape{300, 208}, ImageShape{1, 4}, ImageShape{5, 2500}}) {
    expect_tables<float, float>(backend(), shape);
    expect_tables<std::uint8_t, std::uint32_t>(backend(), shape);
  }
}

/// As wide or as high as fits on an H200, narrow ones, and a last slab with fewer rows.
TEST_F(SlabsOnCuda, AreRightOnImagesOfEverySize) {
  for (const ImageShape shape :
       {ImageShape{3000, 4096}, ImageShape{2999, 4092}, ImageShape{3001, 3000}, ImageShape{1320, 4096},
        ImageShape{4096, 2048}, ImageShape{4001, 1000}, ImageShape{2048, 2048}, ImageShape{2640, 128}}) {
    expect_tables<float, float>(backend(), shape);
    expect_tables<std::uint8_t, std::uint32_t>(backend(), shape);
  }
  for (const ImageShape shape : {ImageShape{4096, 4096}, ImageShape{4000, 4096}, ImageShape{3999, 4092}})
    expect_tables<std::uint8_t, std::uint32_t>(backend(), shape);
  expect_tables<float, float>(backend(), {2500, 3840}, ImagePattern::kCancelling);
  expect_tables<std::uint8_t, std::uint32_t>(backend(), {4096, 4096}, ImagePattern::kConstant);
}

TEST_F(SlabsOnCuda, AreTheSameEachTime) {
  const auto image = make_image<float>({3000, 4096}, 1, 0, ImagePattern::kCancelling);
  const auto first = build<float>(backend(), image);
  for (int repeat = 0; repeat < 4; ++repeat) EXPECT_TRUE(build<float>(backend(), image) == first);
}

TEST_F(SlabsOnCuda, LeaveNanWhereItIs) {
  auto image = make_image<float>({1200, 2400}, 1, 0, ImagePattern::kIntegers);
  for (const std::int64_t column : {1350, 350}) {
    image.row(430)[column] = std::numeric_limits<float>::quiet_NaN();
    const auto table = build<float>(backend(), image);
    for (std::int64_t y = 0; y < image.height; ++y) {
      for (std::int64_t x = 0; x < image.width; ++x) {
        ASSERT_EQ(std::isnan(table[static_cast<std::size_t>(y * image.width + x)]), y >= 430 && x >= column)
            << y << ", " << x;
      }
    }
  }
}

TEST_F(SlabsOnCuda, AreNotForOtherImages) {
  const testing::BackendArray<testing::CudaBackend, float> pixels(backend(), std::vector<float>(1 << 16));
  testing::BackendArray<testing::CudaBackend, float> sums(backend(), 1 << 16);
  const auto refused = [&](std::int64_t height, std::int64_t width) {
    TableJob<float, float, Space::kDevice> job;
    job.image = {pixels.const_span().data(), height, width};
    job.sums = {sums.span().data(), height, width};
    return !build_in_slabs(backend().executor(), job);
  };
  EXPECT_TRUE(refused(100, 102)) << "rows begin anywhere";
  EXPECT_TRUE(refused(2, 1 << 15)) << "wider than a slab";
  EXPECT_TRUE(refused(1 << 14, 4)) << "more rows than the GPU holds";
}

}  // namespace
}  // namespace cumulus
#endif
