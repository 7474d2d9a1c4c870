// The kernel that has row panels of whole rows, on images of any size that it can take.
#include "kernels/core/cuda_executor.h"

#if CUMULUS_WITH_CUDA
#include <gtest/gtest.h>

#include <vector>

#include "kernels/summed_area_table/row_panels/row_panels.h"
#include "tests/cases/summed_area_table_case.h"
#include "tests/kernels/summed_area_table_building.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using summed_area_table::build_shape;
using testing::ImagePattern;
using testing::ImageShape;
using testing::make_image;

void expect_tables(testing::CudaBackend& backend, ImageShape shape,
                   ImagePattern pattern = ImagePattern::kRandom) {
  const int to_whole_words = testing::padding_to_whole_words<std::uint8_t>(shape);
  for (const int padding : {to_whole_words, to_whole_words + 16}) {
    const auto image = make_image<std::uint8_t>(shape, 1, padding, pattern);
    SCOPED_TRACE(testing::describe(shape, 1, padding, pattern));
    const auto table =
        testing::build_aligned<std::uint32_t>(backend, image, [](auto& executor, const auto& job) {
          build_in_row_panels(executor, job,
                              plan_row_panels(build_shape(job), executor.numbers().multiprocessors));
        });
    EXPECT_EQ(verify_summed_area_table(image, table.data()), "");
  }
}

class PanelsOfSmallImagesOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {};
class PanelsOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {};

TEST_F(PanelsOfSmallImagesOnCuda, AreRight) {
  for (const ImageShape shape : {ImageShape{300, 208}, ImageShape{1, 4}, ImageShape{5, 2500}}) {
    expect_tables(backend(), shape);
  }
}

/// With all numbers of rows to a row panel, some of them in groups that are scanned together, the last row
/// panel with fewer; narrow and wide; as much as fits.
TEST_F(PanelsOnCuda, AreRightOnImagesOfEverySize) {
  const std::int64_t panels = executor().device().multiprocessors();
  for (std::int64_t rows = 1; rows <= 32; ++rows) expect_tables(backend(), {rows * panels - rows / 2, 260});
  for (const ImageShape shape : {ImageShape{8 * panels, 2048}, ImageShape{17 * panels - 3, 3840},
                                 ImageShape{23 * panels - 30, 3000}, ImageShape{32 * panels, 4096}})
    expect_tables(backend(), shape);
  expect_tables(backend(), {32 * panels - 1, 4092}, ImagePattern::kConstant);
}

}  // namespace
}  // namespace cumulus
#endif
