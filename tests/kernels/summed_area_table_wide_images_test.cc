// Images whose rows would each take longer than a slice of a call may.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <vector>

#include "kernels/summed_area_table/local.h"
#include "kernels/summed_area_table/queries.h"
#include "tests/cases/summed_area_table_boxes.h"
#include "tests/kernels/summed_area_table_building.h"
#include "tests/support/executors.h"
#include "tests/support/impatient_turns.h"
#include "tests/support/tries.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using testing::build_job;
using testing::CpuBackend;
using testing::ImagePattern;
using testing::ImpatientTurns;
using testing::job_of;
using testing::least_of_three;
using testing::make_image;
using testing::OneThread;
using testing::Tables;
using testing::verify_square_filter;

/// In one piece, most of such an image's time is one step.
constexpr double kShareOfAStep = 0.2;

void expect_slices(const std::function<void()>& call) {
  const auto longest_share = [&] {
    ImpatientTurns turns;
    const SlicedCall sliced(turns);
    call();
    return turns.longest_share();
  };
  EXPECT_LE(least_of_three(kShareOfAStep, longest_share), kShareOfAStep);
}

template <class Sum, class Input>
void expect_wide_table(int channels, bool exclusive) {
  const auto image = make_image<Input>({3, 300000}, channels, 7, ImagePattern::kRandom);
  CpuBackend backend;
  auto job = job_of<Sum>(backend, image);
  job.exclusive = exclusive;
  const Tables<Sum> tables = build_job(backend, image.elements, job, kSumsSquares<Input, Sum>);
  EXPECT_EQ(verify_summed_area_table(image, tables.sums.data(), exclusive), "") << channels;
  if constexpr (kSumsSquares<Input, Sum>) {
    EXPECT_EQ(verify_summed_area_table(squares_of(image), tables.squares.data(), exclusive), "") << channels;
  }
}

TEST(WideImages, HaveRightTables) {
  for (const int channels : {1, 2, 3, 4}) {
    expect_wide_table<std::uint32_t, std::uint8_t>(channels, false);
    expect_wide_table<std::uint64_t, std::uint16_t>(channels, true);
    expect_wide_table<float, float>(channels, true);
  }
}

TEST(WideImages, AreSummedInSlices) {
  const auto image = make_image<std::uint8_t>({4, 1 << 21}, 1, 0, ImagePattern::kRandom);
  OneThread backend;
  ImpatientTurns turns;
  const SlicedCall sliced(turns);
  // Once: its results' hash is of one build.
  build_job(backend, image.elements, job_of<std::uint32_t>(backend, image));
  EXPECT_LE(turns.longest_share(), kShareOfAStep);
}

TEST(WideImages, AreFilteredInSlices) {
  const auto image = make_image<std::uint8_t>({2, 1 << 20}, 1, 0, ImagePattern::kRandom);
  OneThread backend;
  std::vector<float> means(image.elements.size());
  std::vector<float> deviations(image.elements.size());
  BoxFilterJob<std::uint8_t, Space::kHost> job;
  job.image = {image.elements.data(), image.height, image.width, image.channels};
  job.means = {means.data(), image.height, image.width, image.channels};
  job.deviations = deviations.data();
  job.box = {9, 9};
  backend.executor().reserve_scratch(filter_box_scratch_bytes(job, backend.executor().numbers()));
  expect_slices([&] { filter_box(backend.executor(), job); });
  EXPECT_EQ(verify_square_filter(image, 9, means.data()), "");
}

TEST(WideImages, HaveTileLocalTablesInSlices) {
  const auto image = make_image<float>({64, 1 << 17}, 1, 0, ImagePattern::kRandom);
  OneThread backend;
  std::vector<float> local(image.elements.size());
  std::vector<double> above(static_cast<std::size_t>(local_above_elements(image.height, image.width, 1)));
  std::vector<double> left(static_cast<std::size_t>(local_left_elements(image.height, image.width, 1)));
  LocalTableJob<float, Space::kHost> job;
  job.image = {image.elements.data(), image.height, image.width, 1};
  job.local = {local.data(), image.height, image.width, 1};
  job.above = above.data();
  job.left = left.data();
  backend.executor().reserve_scratch(
      build_local_summed_area_table_scratch_bytes(job, backend.executor().numbers()));
  expect_slices([&] { build_local_summed_area_table(backend.executor(), job); });
  double sum = 0;  // of the tiles so far
  for (std::int64_t tile = 0; tile < local_tile_columns(image.width); ++tile) {
    const std::int64_t end = (tile + 1) * kLocalTileColumns;
    double own = 0;
    for (std::int64_t y = 0; y < image.height; ++y) {
      const float* row = image.elements.data() + y * image.width;
      own += std::accumulate(row + end - kLocalTileColumns, row + end, 0.0);
    }
    sum += own;
    const auto last = static_cast<std::size_t>(image.height * image.width - image.width + end - 1);
    ASSERT_NEAR(local[last], own, 0.1) << tile;
    ASSERT_NEAR(left[left.size() - static_cast<std::size_t>(local_tile_columns(image.width) - tile)], sum,
                1e-3)
        << tile;
  }
}

}  // namespace
}  // namespace cumulus
