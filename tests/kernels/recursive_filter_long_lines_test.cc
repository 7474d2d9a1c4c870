// Images whose lines are so long that a group of them goes on from one slice of a call to the next.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/cases/recursive_filter_case.h"
#include "tests/kernels/recursive_filter_running.h"
#include "tests/support/executors.h"
#include "tests/support/impatient_turns.h"

namespace cumulus {
namespace {

using testing::FilterImage;
using testing::FilterPattern;
using testing::FilterShape;

/// In one piece, a group of such an image's lines is a sixth of its time and more.
void expect_slices(const FilterShape& shape) {
  const FilterImage image = make_filter_image(shape, FilterPattern::kRandom);
  const AxisFilter axis = deriche_filter(5, 0, FilterBoundary::kClamp);
  testing::OneThread backend;
  const std::vector<float> at_once = apply(backend, image, {axis, axis});
  testing::ImpatientTurns turns;
  const SlicedCall sliced(turns);
  const std::vector<float> filtered = apply(backend, image, {axis, axis});
  EXPECT_LE(turns.longest_share(), 0.1);
  EXPECT_TRUE(filtered == at_once);
}

TEST(LongLines, OfRowsAreFilteredInSlices) { expect_slices({48, 250001}); }
TEST(LongLines, OfColumnsAreFilteredInSlices) { expect_slices({250001, 48}); }

}  // namespace
}  // namespace cumulus
