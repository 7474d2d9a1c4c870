// The decaying method's way through an image in strips: how images are divided, and what strips publish.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/cases/recursive_filter_case.h"
#include "tests/kernels/recursive_filter_running.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::apply_to;
using testing::FilterPattern;
using testing::FilterShape;
using testing::make_filter_image;
using Method = RecursiveFilterMethod;

class RecursiveFilterStripsOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {
 protected:
  void expect_right(const RecursiveFilter& filter, FilterShape shape) {
    SCOPED_TRACE(describe(shape));
    const auto image = make_filter_image(shape, FilterPattern::kRandom, 3);
    RecursiveFilterRun run{};
    const auto result = apply_to<float>(backend(), image.elements, shape, image.row_stride, 1, filter,
                                        Method::kDecaying, &run);
    EXPECT_EQ(run.method, testing::method_that_runs(Method::kDecaying, backend().executor().numbers()));
    EXPECT_LE(testing::largest_filter_error(image, filter_serially(image, filter), result.data()),
              testing::recursive_filter_tolerance<float>(filter));
  }
};

TEST_F(RecursiveFilterStripsOnCuda, AreRightInImagesWiderThanALaunch) {
  for (const FilterBoundary boundary :
       {FilterBoundary::kZero, FilterBoundary::kClamp, FilterBoundary::kRepeat, FilterBoundary::kReflect}) {
    SCOPED_TRACE(testing::name_of(boundary));
    const RecursiveFilter filter{gaussian_filter(3, boundary), gaussian_filter(12, boundary)};
    expect_right(filter, {70, 64 * 137});
    expect_right(filter, {70, 64 * 24, 4});
    expect_right({{}, gaussian_filter(4, boundary)}, {5, 64 * 270});
  }
  const RecursiveFilter clamped{gaussian_filter(2, FilterBoundary::kMirror),
                                deriche_filter(6, 1, FilterBoundary::kClamp)};
  expect_right(clamped, {65, 64 * 137 - 3});
  expect_right(clamped, {65, 64 * 140 - 61, 3});
}

TEST_F(RecursiveFilterStripsOnCuda, AreRightInImagesOfManyParts) {
  for (const FilterBoundary boundary : testing::kFilterBoundaries) {
    SCOPED_TRACE(testing::name_of(boundary));
    const RecursiveFilter filter{gaussian_filter(12, boundary), gaussian_filter(2, FilterBoundary::kClamp)};
    expect_right(filter, {1, 1});
    expect_right(filter, {64 * 150 + 1, 20});
    expect_right(filter, {64 * 9 - 1, 64 * 20});
    expect_right({gaussian_filter(9, boundary), {}}, {64 * 40, 130});
  }
}

TEST_F(RecursiveFilterStripsOnCuda, AreRightInBatchesOfHalves) {
  const RecursiveFilter filter{deriche_filter(5, 0, FilterBoundary::kRepeat),
                               gaussian_filter(5, FilterBoundary::kClamp)};
  for (const FilterShape shape : {FilterShape{100, 320}, {200, 130, 3}}) {
    SCOPED_TRACE(describe(shape));
    constexpr std::int64_t kCount = 17;
    std::vector<Float16> elements;
    std::vector<testing::FilterImage> images;
    for (std::uint32_t i = 0; i < kCount; ++i) {
      images.push_back(make_filter_image(shape, FilterPattern::kRandom, 0, i));
      const auto of_one = testing::elements_as<Float16>(images.back());
      elements.insert(elements.end(), of_one.begin(), of_one.end());
    }
    const auto result = apply_to<Float16>(backend(), elements, shape, images[0].row_stride, kCount, filter,
                                          Method::kDecaying);
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto of_one = static_cast<std::size_t>(shape.height * shape.width * shape.channels);
      EXPECT_EQ(verify_recursive_filter(images[i], filter, result.data() + i * of_one), "") << i;
    }
  }
}

TEST_F(RecursiveFilterStripsOnCuda, GiveTheSameBitsEachTime) {
  const RecursiveFilter filter{gaussian_filter(8, FilterBoundary::kClamp),
                               gaussian_filter(8, FilterBoundary::kReflect)};
  const FilterShape shape{1024, 1024};
  const auto image = make_filter_image(shape, FilterPattern::kRandom);
  const auto run = [&] {
    return apply_to<float>(backend(), image.elements, shape, image.row_stride, 1, filter, Method::kDecaying);
  };
  const auto first = run();
  for (int again = 0; again < 5; ++again) EXPECT_EQ(run(), first);
}

}  // namespace
}  // namespace cumulus
