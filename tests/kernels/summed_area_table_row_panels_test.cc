// The kernel that has row panels of whole rows, on images of any size that it can take.
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

using summed_area_table::build_in_row_panels;
using testing::ImagePattern;
using testing::ImageShape;
using testing::make_image;

template <class Input, class Sum>
void expect_tables(testing::CudaBackend& backend, ImageShape shape,
                   ImagePattern pattern = ImagePattern::kRandom) {
  const int to_whole_words = testing::padding_to_whole_words<Input>(shape);
  for (const int padding : {to_whole_words, to_whole_words + 16}) {
    const auto image = make_image<Input>(shape, 1, padding, pattern);
    SCOPED_TRACE(testing::describe(shape, 1, padding, pattern));
    const auto table = testing::build_aligned<Sum>(
        backend, image, [](auto& executor, const auto& job) { return build_in_row_panels(executor, job); });
    EXPECT_EQ(verify_summed_area_table(image, table.data()), "");
  }
}

/// Whether the kernel leaves an image of this size to others.
template <class Input, class Sum>
bool refused(testing::CudaBackend& backend, ImageShape shape) {
  const auto elements = static_cast<std::size_t>(shape.height * shape.width);
  const testing::BackendArray<testing::CudaBackend, Input> pixels(backend, std::vector<Input>(elements));
  testing::BackendArray<testing::CudaBackend, Sum> sums(backend, elements);
  TableJob<Input, Sum, Space::kDevice> job;
  job.image = {pixels.const_span().data(), shape.height, shape.width};
  job.sums = {sums.span().data(), shape.height, shape.width};
  return !build_in_row_panels(backend.executor(), job);
}

class PanelsOfSmallImagesOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {};
class PanelsOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {};

TEST_F(PanelsOfSmallImagesOnCuda, AreRight) {
  for (const ImageShape shape : {ImageShape{300, 208}, ImageShape{1, 4}, ImageShape{5, 2500}}) {
    expect_tables<std::uint8_t, std::uint32_t>(backend(), shape);
    expect_tables<float, float>(backend(), shape);
  }
}

/// Rows of floats in registers, and more of them in shared memory; one segment of a row to a warp, and two.
TEST_F(PanelsOfSmallImagesOnCuda, AreRightWherePanelsAreHigh) {
  const std::int64_t panels = executor().device().multiprocessors();
  expect_tables<float, float>(backend(), {19 * panels - 3, 36});
  expect_tables<float, float>(backend(), {2 * panels, 3076});
}

/// With all numbers of rows to a row panel, some of them in groups that are scanned together, the last row
/// panel with fewer; narrow and wide; as much as fits.
TEST_F(PanelsOnCuda, AreRightOnImagesOfEverySize) {
  const std::int64_t panels = executor().device().multiprocessors();
  for (std::int64_t rows = 1; rows <= 32; ++rows)
    expect_tables<std::uint8_t, std::uint32_t>(backend(), {rows * panels - rows / 2, 260});
  for (const ImageShape shape : {ImageShape{8 * panels, 2048}, ImageShape{17 * panels - 3, 3840},
                                 ImageShape{23 * panels - 30, 3000}, ImageShape{32 * panels, 4096}})
    expect_tables<std::uint8_t, std::uint32_t>(backend(), shape);
  expect_tables<std::uint8_t, std::uint32_t>(backend(), {32 * panels - 1, 4092}, ImagePattern::kConstant);
}

TEST_F(PanelsOnCuda, OfFloatsAreRightOnImagesOfEverySize) {
  const std::int64_t panels = executor().device().multiprocessors();
  for (std::int64_t rows = 1; rows <= 32; ++rows)
    expect_tables<float, float>(backend(), {rows * panels - rows / 2, 260});
  for (const ImageShape shape :
       {ImageShape{8 * panels, 2048}, ImageShape{17 * panels - 3, 2052}, ImageShape{15 * panels, 3072},
        ImageShape{6 * panels - 5, 3076}, ImageShape{13 * panels - 1, 4096}})
    expect_tables<float, float>(backend(), shape);
  expect_tables<float, float>(backend(), {23 * panels - 1, 2044}, ImagePattern::kCancelling);
}

/// The highest image of a width that the GPU holds, whatever its shared memory.
TEST_F(PanelsOnCuda, OfFloatsTakeWhatFits) {
  const std::int64_t panels = executor().device().multiprocessors();
  for (const std::int64_t width : {std::int64_t{2048}, std::int64_t{2560}, std::int64_t{4096}}) {
    std::int64_t rows = 33;
    while (rows > 0 && refused<float, float>(backend(), {rows * panels, width})) --rows;
    EXPECT_GE(rows, 8) << width;
    EXPECT_LE(rows, 32) << width;
    EXPECT_TRUE((refused<float, float>(backend(), {rows * panels + 1, width}))) << width;
    expect_tables<float, float>(backend(), {rows * panels, width}, ImagePattern::kIntegers);
  }
}

TEST_F(PanelsOnCuda, LeaveNanWhereItIs) {
  auto image = make_image<float>({3000, 1400}, 1, 0, ImagePattern::kIntegers);
  image.row(1430)[750] = std::numeric_limits<float>::quiet_NaN();
  const auto table = testing::build_aligned<float>(
      backend(), image, [](auto& executor, const auto& job) { return build_in_row_panels(executor, job); });
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      ASSERT_EQ(std::isnan(table[static_cast<std::size_t>(y * image.width + x)]), y >= 1430 && x >= 750)
          << y << ", " << x;
    }
  }
}

TEST_F(PanelsOnCuda, AreNotForOtherImages) {
  EXPECT_TRUE((refused<std::uint8_t, std::uint32_t>(backend(), {100, 102}))) << "rows begin anywhere";
  EXPECT_TRUE((refused<std::uint8_t, std::uint32_t>(backend(), {2, 1 << 15}))) << "wider than a panel";
  EXPECT_TRUE((refused<std::uint8_t, std::uint32_t>(backend(), {1 << 13, 16}))) << "too many rows";
  EXPECT_TRUE((refused<float, float>(backend(), {100, 102}))) << "rows begin anywhere";
  EXPECT_TRUE((refused<float, float>(backend(), {2, 4100}))) << "wider than a panel";
  EXPECT_TRUE((refused<float, float>(backend(), {1 << 13, 16}))) << "too many rows";
}

}  // namespace
}  // namespace cumulus
#endif
