// Images whose lines are so long that a group of them goes on from one slice of a call to the next.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/recursive_filter/fir/blur.h"
#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/cases/recursive_filter_case.h"
#include "tests/kernels/recursive_filter_running.h"
#include "tests/support/executors.h"
#include "tests/support/fresh_regions.h"
#include "tests/support/impatient_turns.h"

namespace cumulus {
namespace {

using testing::FilterImage;
using testing::FilterPattern;
using testing::FilterShape;
using testing::OneThread;

/// In one piece, a group of such an image's lines is a sixth of its time and more.
void expect_slices(const FilterShape& shape) {
  const FilterImage image = make_filter_image(shape, FilterPattern::kRandom);
  const AxisFilter axis = deriche_filter(5, 0, FilterBoundary::kClamp);
  OneThread backend;
  const std::vector<float> at_once = apply(backend, image, {axis, axis});
  testing::ImpatientTurns turns;
  const SlicedCall sliced(turns);
  const std::vector<float> filtered = apply(backend, image, {axis, axis});
  EXPECT_LE(turns.longest_share(), 0.1);
  EXPECT_TRUE(filtered == at_once);
}

TEST(LongLines, OfRowsAreFilteredInSlices) { expect_slices({48, 250001}); }
TEST(LongLines, OfColumnsAreFilteredInSlices) { expect_slices({250001, 48}); }

/// Of lines that are as long as the filter's memory, the runs that a boundary needs take most of the time: in
/// one piece, a fifth and more.
void expect_boundary_runs_in_slices(const FilterShape& shape, const RecursiveFilter& filter) {
  const FilterImage image = make_filter_image(shape, FilterPattern::kRandom);
  OneThread backend;
  const std::vector<float> at_once = apply(backend, image, filter);
  testing::ImpatientTurns turns;
  const SlicedCall sliced(turns);
  const std::vector<float> filtered = apply(backend, image, filter);
  EXPECT_LE(turns.longest_share(), 0.12);
  EXPECT_TRUE(filtered == at_once);
}

TEST(LongLines, FindTheirBoundaryStatesInSlices) {
  for (const FilterBoundary boundary :
       {FilterBoundary::kRepeat, FilterBoundary::kReflect, FilterBoundary::kMirror}) {
    SCOPED_TRACE(testing::name_of(boundary));
    const AxisFilter axis = deriche_filter(10000, 0, boundary);
    expect_boundary_runs_in_slices({16, 250001}, {{}, axis});
    expect_boundary_runs_in_slices({250001, 16}, {axis, {}});
  }
}

/// What a step begins to write to, the system fills with zeros in that step: of 16 rows of 2 MiB, few at
/// once.
template <class Filter>
void expect_few_fresh_pages_at_once(const Filter& filter) {
  constexpr FilterShape kShape = {16, 1 << 19};
  const FilterImage image = make_filter_image(kShape, FilterPattern::kRandom);
  OneThread backend;
  const testing::FreshMemory memory(std::size_t{32} << 20);
  testing::RegionTurns turns(memory);
  const FilterImages<const float, Space::kHost> images(
      {image.elements.data(), kShape.height, kShape.width, 1, image.row_stride}, 1);
  const FilterImages<float, Space::kHost> filtered(
      {reinterpret_cast<float*>(memory.data()), kShape.height, kShape.width}, 1);
  const SlicedCall sliced(turns);
  filter(backend.executor(), images, filtered);
  EXPECT_LE(turns.most_regions(), 2);
  EXPECT_EQ(memory.written_regions(), 16);
}

TEST(LongLines, BeginFewFreshPagesAtOnce) {
  const AxisFilter axis = deriche_filter(5, 0, FilterBoundary::kClamp);
  for (const RecursiveFilter& filter : {RecursiveFilter{{}, axis}, RecursiveFilter{axis, {}}}) {
    expect_few_fresh_pages_at_once([&](CpuExecutor& executor, const auto& images, const auto& filtered) {
      apply_recursive_filter(executor, images, filter, filtered);
    });
  }
  expect_few_fresh_pages_at_once([](CpuExecutor& executor, const auto& images, const auto& filtered) {
    const FirBlur along_y{FirAxis{3, FilterBoundary::kClamp}, {}};
    executor.reserve_scratch(fir_gaussian_blur_scratch_bytes(images, along_y, {}));
    fir_gaussian_blur<float>(executor, images, along_y, filtered);
  });
}

std::vector<float> blur_row(OneThread& backend, const std::vector<float>& row, double sigma,
                            FilterBoundary boundary) {
  std::vector<float> blurred(row.size());
  const auto width = static_cast<std::int64_t>(row.size());
  const FilterImages<const float, Space::kHost> images({row.data(), 1, width}, 1);
  const FirBlur blur{{}, FirAxis{sigma, boundary}};
  backend.executor().reserve_scratch(fir_gaussian_blur_scratch_bytes(images, blur, {}));
  fir_gaussian_blur<float>(backend.executor(), images, blur, {{blurred.data(), 1, width}, 1});
  return blurred;
}

/// Pixel `at` of the same row, blurred in double.
double blurred_pixel(const std::vector<float>& row, std::int64_t at, double sigma, FilterBoundary boundary) {
  const auto reach = static_cast<std::int64_t>(std::ceil(10 * sigma));
  double sum = 0;
  double weights = 0;
  for (std::int64_t d = -reach; d <= reach; ++d) {
    const double weight = std::exp(-0.5 * static_cast<double>(d * d) / (sigma * sigma));
    const std::int64_t source =
        recursive_filter::source_pixel(at + d, static_cast<std::int64_t>(row.size()), boundary);
    if (source >= 0) sum += weight * static_cast<double>(row[static_cast<std::size_t>(source)]);
    weights += weight;
  }
  return sum / weights;
}

TEST(LongLines, AreBlurredByFirInPieces) {
  constexpr std::int64_t kWidth = (1 << 20) + 5;
  const FilterImage image = make_filter_image({1, kWidth}, FilterPattern::kRandom);
  OneThread backend;
  for (const double sigma : {2.0, 9.0, 50.0}) {
    for (const FilterBoundary boundary : {FilterBoundary::kRepeat, FilterBoundary::kZero}) {
      const std::vector<float> at_once = blur_row(backend, image.elements, sigma, boundary);
      for (std::int64_t border = 0; border <= kWidth; border += 1 << 14) {
        for (std::int64_t at = std::max<std::int64_t>(0, border - 6); at < std::min(border + 6, kWidth);
             ++at) {
          ASSERT_NEAR(at_once[static_cast<std::size_t>(at)],
                      blurred_pixel(image.elements, at, sigma, boundary), 1e-5)
              << sigma << ", pixel " << at;
        }
      }
      testing::ImpatientTurns turns;
      const SlicedCall sliced(turns);
      EXPECT_TRUE(blur_row(backend, image.elements, sigma, boundary) == at_once) << sigma;
      EXPECT_GE(turns.slices(), 2) << sigma;
    }
  }
}

}  // namespace
}  // namespace cumulus
