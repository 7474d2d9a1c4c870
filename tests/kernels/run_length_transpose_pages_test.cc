// Transposes whose rows would each begin a large page.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "kernels/run_length/transpose/transpose.h"
#include "tests/support/fresh_regions.h"
#include "tests/support/impatient_turns.h"

namespace cumulus {
namespace {

TEST(Transposes, BeginFewFreshPagesAtOnce) {
  const ImageBatch batch{1, 1, 1 << 20, 64};
  std::vector<std::byte> from(batch.bytes());
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i % 251);
  testing::OneThread backend;
  const testing::FreshMemory memory(batch.bytes());
  testing::RegionTurns turns(memory);
  const SlicedCall sliced(turns);
  transpose_images(backend.executor(), batch, {from.data(), from.size()}, {memory.data(), batch.bytes()});
  EXPECT_LE(turns.most_regions(), 1);
  for (std::size_t y = 0; y < (std::size_t{1} << 20); y += 1023) {
    for (std::size_t x = 0; x < 64; ++x)
      ASSERT_EQ(memory.data()[(x << 20) + y], from[64 * y + x]) << y << ", " << x;
  }
}

}  // namespace
}  // namespace cumulus
