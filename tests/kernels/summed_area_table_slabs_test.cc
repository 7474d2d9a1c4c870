// The kernel that has slabs of whole rows of bytes, on images of any size that it can take.
#include "kernels/core/cuda_executor.h"

#if CUMULUS_WITH_CUDA
#include <gtest/gtest.h>

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

void expect_tables(testing::CudaBackend& backend, ImageShape shape,
                   ImagePattern pattern = ImagePattern::kRandom) {
  const int to_whole_words = testing::padding_to_whole_words<std::uint8_t>(shape);
  for (const int padding : {to_whole_words, to_whole_words + 16}) {
    const auto image = make_image<std::uint8_t>(shape, 1, padding, pattern);
    SCOPED_TRACE(testing::describe(shape, 1, padding, pattern));
    const auto table = testing::build_aligned<std::uint32_t>(
        backend, image, [](auto& executor, const auto& job) { return build_in_slabs(executor, job); });
    EXPECT_EQ(verify_summed_area_table(image, table.data()), "");
  }
}

class SlabsOfSmallImagesOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {};
class SlabsOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {};

TEST_F(SlabsOfSmallImagesOnCuda, AreRight) {
  for (const ImageShape shape : {ImageShape{300, 208}, ImageShape{1, 4}, ImageShape{5, 2500}})
    expect_tables(backend(), shape);
}

/// With all numbers of rows to a slab, some of them in groups that are scanned together, the last slab with
/// fewer; narrow and wide; as much as fits.
TEST_F(SlabsOnCuda, AreRightOnImagesOfEverySize) {
  const std::int64_t slabs = executor().device().multiprocessors();
  for (std::int64_t rows = 1; rows <= 32; ++rows) expect_tables(backend(), {rows * slabs - rows / 2, 260});
  for (const ImageShape shape : {ImageShape{8 * slabs, 2048}, ImageShape{17 * slabs - 3, 3840},
                                 ImageShape{23 * slabs - 30, 3000}, ImageShape{32 * slabs, 4096}})
    expect_tables(backend(), shape);
  expect_tables(backend(), {32 * slabs - 1, 4092}, ImagePattern::kConstant);
}

TEST_F(SlabsOnCuda, AreNotForOtherImages) {
  const testing::BackendArray<testing::CudaBackend, std::uint8_t> pixels(backend(),
                                                                         std::vector<std::uint8_t>(1 << 17));
  testing::BackendArray<testing::CudaBackend, std::uint32_t> sums(backend(), 1 << 17);
  const auto refused = [&](std::int64_t height, std::int64_t width) {
    TableJob<std::uint8_t, std::uint32_t, Space::kDevice> job;
    job.image = {pixels.const_span().data(), height, width};
    job.sums = {sums.span().data(), height, width};
    return !build_in_slabs(backend().executor(), job);
  };
  EXPECT_TRUE(refused(100, 102)) << "rows begin anywhere";
  EXPECT_TRUE(refused(2, 1 << 15)) << "wider than a slab";
  EXPECT_TRUE(refused(1 << 13, 16)) << "more rows than the GPU holds";
}

}  // namespace
}  // namespace cumulus
#endif
