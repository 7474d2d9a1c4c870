// How brackets are matched on a GPU: of the size alone, without a GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "kernels/bracket_match/method.h"

namespace cumulus::bracket_match {
namespace {

struct MatchCase {
  std::int64_t count;
  bool segmented;
  std::int64_t tiles;  // of 4096 elements
  std::int64_t scan_groups;
  int tree_levels;
  std::int64_t link_blocks;
  std::size_t scratch_bytes;
};

TEST(BracketMatchMethod, NumbersBy64BitsFromTwoToThe31On) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;
  EXPECT_FALSE(needs_wide_indices(kLimit - 1));
  EXPECT_TRUE(needs_wide_indices(kLimit));
}

/// Whether or not there are segments, tiles and launches are the same; a bit for each element comes on top.
TEST(BracketMatchMethod, MatchesByTilesAndGroupsOfThem) {
  const MatchCase cases[] = {
      {0, false, 0, 0, 1, 0, 512},
      {0, true, 0, 0, 1, 0, 512},
      {1, false, 1, 1, 1, 1, 2816},
      {1, true, 1, 1, 1, 1, 3328},
      {2, false, 1, 1, 1, 1, 2816},
      {2, true, 1, 1, 1, 1, 3328},
      {31, false, 1, 1, 1, 1, 2816},
      {31, true, 1, 1, 1, 1, 3328},
      {32, false, 1, 1, 1, 1, 2816},
      {32, true, 1, 1, 1, 1, 3328},
      {4095, false, 1, 1, 1, 1, 2816},
      {4095, true, 1, 1, 1, 1, 3328},
      {4096, false, 1, 1, 1, 1, 2816},
      {4096, true, 1, 1, 1, 1, 3328},
      {4097, false, 2, 1, 1, 1, 3840},
      {4097, true, 2, 1, 1, 1, 4864},
      {8192, false, 2, 1, 1, 1, 3840},
      {8192, true, 2, 1, 1, 1, 4864},
      {16384, false, 4, 1, 1, 1, 5888},
      {16384, true, 4, 1, 1, 1, 7936},
      {16385, false, 5, 1, 1, 2, 6912},
      {16385, true, 5, 1, 1, 2, 9472},
      {65536, false, 16, 1, 1, 4, 18176},
      {65536, true, 16, 1, 1, 4, 26368},
      {100000, false, 25, 1, 1, 7, 27392},
      {100000, true, 25, 1, 1, 7, 40192},
      {131072, false, 32, 1, 1, 8, 34560},
      {131072, true, 32, 1, 1, 8, 50944},
      {131073, false, 33, 1, 2, 9, 36608},
      {131073, true, 33, 1, 2, 9, 53504},
      {262144, false, 64, 1, 2, 16, 68608},
      {262144, true, 64, 1, 2, 16, 101376},
      {1000000, false, 245, 1, 2, 62, 259840},
      {1000000, true, 245, 1, 2, 62, 385280},
      {1048576, false, 256, 1, 2, 64, 271360},
      {1048576, true, 256, 1, 2, 64, 402432},
      {4194304, false, 1024, 1, 2, 256, 1082368},
      {4194304, true, 1024, 1, 2, 256, 1606656},
      {4194305, false, 1025, 1, 3, 257, 1084416},
      {4194305, true, 1025, 1, 3, 257, 1609216},
      {10000000, false, 2442, 1, 3, 611, 2580736},
      {10000000, true, 2442, 1, 3, 611, 3831040},
      {16777216, false, 4096, 1, 3, 1024, 4327424},
      {16777216, true, 4096, 1, 3, 1024, 6424576},
      {16777217, false, 4097, 2, 3, 1025, 4329216},
      {16777217, true, 4097, 2, 3, 1025, 6426880},
      {33554432, false, 8192, 2, 3, 2048, 8653824},
      {33554432, true, 8192, 2, 3, 2048, 12848128},
      {100000000, false, 24415, 6, 3, 6104, 25789440},
      {100000000, true, 24415, 6, 3, 6104, 38289920},
      {134217728, false, 32768, 8, 3, 8192, 34612224},
      {134217728, true, 32768, 8, 3, 8192, 51389440},
      {134221824, false, 32769, 9, 4, 8193, 34614272},
      {134221824, true, 32769, 9, 4, 8193, 51392000},
      {268435456, false, 65536, 16, 4, 16384, 69223936},
      {268435456, true, 65536, 16, 4, 16384, 102778368},
      {2147483647, false, 524288, 128, 4, 131072, 553786112},
      {2147483647, true, 524288, 128, 4, 131072, 822221568},
      {2147483648, false, 524288, 128, 4, 131072, 553786112},
      {2147483648, true, 524288, 128, 4, 131072, 822221568},
      {2147483649, false, 524289, 129, 4, 131073, 553788160},
      {2147483649, true, 524289, 129, 4, 131073, 822224128},
      {4294967296, false, 1048576, 256, 4, 262144, 1107571456},
      {4294967296, true, 1048576, 256, 4, 262144, 1644442368},
      {68719476736, false, 16777216, 4096, 5, 4194304, 17721135872},
      {68719476736, true, 16777216, 4096, 5, 4194304, 26311070464},
  };
  for (const MatchCase& c : cases) {
    SCOPED_TRACE(std::to_string(c.count) + (c.segmented ? " elements in segments" : " elements"));
    const MatchPlan plan = choose_match(c.count, c.segmented);
    EXPECT_EQ(plan.tiles, c.tiles);
    EXPECT_EQ(plan.scan_groups, c.scan_groups);
    EXPECT_EQ(plan.tree.levels, c.tree_levels);
    EXPECT_EQ(plan.link_blocks(), c.link_blocks);
    EXPECT_EQ(plan.segmented, c.segmented);
    EXPECT_EQ(plan.scratch_bytes(), c.scratch_bytes);
    EXPECT_EQ(match_brackets_scratch_bytes<Space::kDevice>(c.count, c.segmented), c.scratch_bytes);
  }
}

struct ClipsCase {
  std::int64_t count;
  bool wide;
  std::int64_t blocks;
  int rounds;
  std::size_t scratch_bytes;
};

TEST(BracketMatchMethod, IntersectsClipsInAsManyRoundsAsLinksDouble) {
  const ClipsCase cases[] = {
      {0, false, 0, 0, 1024},
      {1, false, 1, 0, 3840},
      {2, false, 1, 1, 3840},
      {31, false, 1, 5, 3840},
      {32, false, 1, 5, 3840},
      {4095, false, 16, 12, 36096},
      {4096, false, 16, 12, 36096},
      {4097, false, 17, 13, 37632},
      {8192, false, 32, 13, 69888},
      {16384, false, 64, 14, 137472},
      {16385, false, 65, 15, 139008},
      {65536, false, 256, 16, 542976},
      {100000, false, 391, 17, 828160},
      {131072, false, 512, 17, 1083648},
      {131073, false, 513, 18, 1086208},
      {262144, false, 1024, 18, 2166272},
      {1000000, false, 3907, 20, 8260352},
      {1048576, false, 4096, 20, 8660480},
      {4194304, false, 4096, 22, 34637312},
      {4194305, false, 4096, 23, 34639872},
      {10000000, false, 4096, 24, 82581248},
      {16777216, false, 4096, 24, 138545664},
      {16777217, false, 4096, 25, 138547968},
      {33554432, false, 4096, 25, 277089792},
      {100000000, false, 4096, 27, 825789952},
      {134217728, false, 4096, 27, 1108354560},
      {134221824, false, 4096, 28, 1108389376},
      {268435456, false, 4096, 28, 2216708096},
      {2147483647, false, 4096, 31, 17733655808},
      {2147483648, true, 4096, 31, 34913524992},
      {2147483649, true, 4096, 32, 34913527552},
      {4294967296, true, 4096, 32, 69827048704},
      {68719476736, true, 4096, 36, 1117232764160},
  };
  for (const ClipsCase& c : cases) {
    SCOPED_TRACE(std::to_string(c.count) + " elements");
    const ClipsPlan plan = choose_clips(c.count);
    EXPECT_EQ(plan.wide, c.wide);
    EXPECT_EQ(plan.blocks, c.blocks);
    EXPECT_EQ(plan.rounds, c.rounds);
    EXPECT_EQ(plan.match.tiles, (c.count + 4095) / 4096);
    EXPECT_EQ(plan.scratch_bytes(), c.scratch_bytes);
    EXPECT_EQ(intersect_clips_scratch_bytes<Space::kDevice>(c.count), c.scratch_bytes);
  }
}

/// The CPU has tiles of its own, and no use for a bit for each element.
TEST(BracketMatchMethod, TakesNoMoreOnTheHostForSegments) {
  for (const std::int64_t count : {0, 1, 16384, 16385, 1 << 20}) {
    const auto tiles = static_cast<std::size_t>((count + 16383) / 16384);
    const auto blocks = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
    const std::size_t bytes = 2 * blocks(tiles * 2048) + 4 * blocks(tiles * 8);
    EXPECT_EQ(match_brackets_scratch_bytes<Space::kHost>(count, false), bytes);
    EXPECT_EQ(match_brackets_scratch_bytes<Space::kHost>(count, true), bytes);
    EXPECT_EQ(intersect_clips_scratch_bytes<Space::kHost>(count),
              bytes + blocks(static_cast<std::size_t>(count) * 4) + blocks(tiles * 16) + blocks(tiles * 8));
  }
}

}  // namespace
}  // namespace cumulus::bracket_match
