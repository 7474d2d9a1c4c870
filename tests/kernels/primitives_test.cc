#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "kernels/primitives/diagonal_tiles.h"
#include "tests/kernels/primitives_kernels.h"

// Against serial oracles; on a GPU, but for what needs none.

namespace cumulus::testing {
namespace {

/// The next tile in the order of the diagonals.
GridTile tile_behind(const GridTile& tile, std::int32_t rows, std::int32_t columns) {
  if (tile.column > 0 && tile.row + 1 < rows) return {tile.row + 1, tile.column - 1, tile.plane};
  const std::int32_t diagonal = tile.row + tile.column + 1;
  const std::int32_t row = std::max(0, diagonal - (columns - 1));
  return {row, diagonal - row, tile.plane};
}

bool same(const GridTile& a, const GridTile& b) {
  return a.row == b.row && a.column == b.column && a.plane == b.plane;
}

TEST(DiagonalTiles, AreTakenDiagonalByDiagonal) {
  for (std::int32_t rows = 1; rows <= 20; ++rows) {
    for (std::int32_t columns = 1; columns <= 20; ++columns) {
      const auto at = [=](std::int32_t ticket) {
        return tile_of_ticket(3, static_cast<std::uint32_t>(ticket), static_cast<std::uint32_t>(rows),
                              static_cast<std::uint32_t>(columns));
      };
      EXPECT_TRUE(same(at(0), {0, 0, 3}));
      for (std::int32_t ticket = 1; ticket < rows * columns; ++ticket) {
        EXPECT_TRUE(same(at(ticket), tile_behind(at(ticket - 1), rows, columns)))
            << ticket << " of " << rows << " x " << columns;
      }
      EXPECT_TRUE(same(at(rows * columns - 1), {rows - 1, columns - 1, 3}));
    }
  }
}

TEST(DiagonalTiles, AreTakenSoInGridsOfBillions) {
  struct Grid {
    std::uint32_t rows, columns;
  };
  std::mt19937 random(2);
  for (const Grid grid : {Grid{65535, 65535}, Grid{1, 4000000000}, Grid{4000000000, 1}, Grid{3, 1 << 30},
                          Grid{40000, 100000}}) {
    std::uniform_int_distribution<std::uint32_t> tickets(0, grid.rows * grid.columns - 2);
    for (int i = 0; i < 20000; ++i) {
      const std::uint32_t ticket = i == 0 ? grid.rows * grid.columns - 2 : tickets(random);
      const GridTile tile = tile_of_ticket(0, ticket, grid.rows, grid.columns);
      // Numbers of rows and columns above 2^31 do not fit; such a grid has one of the other.
      if (grid.rows > INT32_MAX || grid.columns > INT32_MAX) {
        EXPECT_EQ(static_cast<std::uint32_t>(tile.row) + static_cast<std::uint32_t>(tile.column), ticket);
        continue;
      }
      const GridTile next =
          tile_behind(tile, static_cast<std::int32_t>(grid.rows), static_cast<std::int32_t>(grid.columns));
      ASSERT_TRUE(same(tile_of_ticket(0, ticket + 1, grid.rows, grid.columns), next)) << ticket;
    }
  }
}

class PrimitivesCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
    device_ = std::make_unique<CudaDevice>(0);
    executor_ = std::make_unique<CudaExecutor>(*device_);
  }
  CudaExecutor& executor() { return *executor_; }

 private:
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<CudaExecutor> executor_;
};

std::vector<Affine> random_maps(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Affine> maps(count);
  for (Affine& map : maps)
    map = {static_cast<std::uint32_t>(random()) | 1, static_cast<std::uint32_t>(random())};
  return maps;
}

/// The maps before each, and all of them at the end.
std::vector<Affine> products_before(const std::vector<Affine>& maps) {
  std::vector<Affine> before;
  Affine product;
  for (const Affine& map : maps) {
    before.push_back(product);
    product = {product.scale * map.scale, map.scale * product.offset + map.offset};
  }
  before.push_back(product);
  return before;
}

TEST_F(PrimitivesCuda, StatusWordsAreSeenWholeByAllBlocks) {
  for (const int bytes : {4, 8, 12}) EXPECT_EQ(count_torn_words(executor(), bytes, 20000), 0u) << bytes;
}

TEST_F(PrimitivesCuda, TaggedValuesOfTwoSizesShareMemoryThatIsNotCleared) {
  EXPECT_EQ(count_wrong_tagged_values(executor(), 500), 0u);
}

TEST_F(PrimitivesCuda, BatchesComeWholeRoundAfterRound) {
  for (const Await how : {Await::kAll, Await::kMissing, Await::kTogether}) {
    EXPECT_EQ(count_wrong_neighbours(executor(), 2000, how), 0u) << static_cast<int>(how);
  }
}

TEST_F(PrimitivesCuda, BlocksGetCarriesRoundAfterRound) {
  for (const int blocks : {1, 2, 31, 32, 33, 128}) {
    EXPECT_EQ(count_wrong_carries(executor(), blocks, 1000), 0u) << blocks;
  }
}

TEST_F(PrimitivesCuda, WarpsLookBackOverThousandsOfTiles) {
  for (const std::size_t count : {1u, 31u, 32u, 33u, 1025u, 640007u}) {
    for (std::uint32_t round = 0; round < 3; ++round) {
      const std::vector<Affine> maps = random_maps(count, round);
      std::vector<Affine> expected = products_before(maps);
      expected.pop_back();
      EXPECT_TRUE(scan_by_warps(executor(), maps) == expected) << count;
    }
  }
}

TEST_F(PrimitivesCuda, ThreadsLookBackAlongColumnsAndRows) {
  struct Grid {
    int rows, columns;
  };
  for (const Grid grid : {Grid{1, 1}, Grid{1, 300}, Grid{300, 1}, Grid{7, 5}, Grid{97, 131}}) {
    const auto index = [&](int row, int column, int plane) {
      return (static_cast<std::size_t>(row) * static_cast<std::size_t>(grid.columns) +
              static_cast<std::size_t>(column)) *
                 32 +
             static_cast<std::size_t>(plane);
    };
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> values(index(grid.rows, 0, 0));
    for (std::uint64_t& value : values) value = random();
    std::vector<std::uint64_t> above(values.size()), left(values.size());
    for (int row = 0; row < grid.rows; ++row) {
      for (int column = 0; column < grid.columns; ++column) {
        for (int plane = 0; plane < 32; ++plane) {
          const std::size_t here = index(row, column, plane);
          if (row > 0)
            above[here] = above[index(row - 1, column, plane)] + values[index(row - 1, column, plane)];
          if (column > 0)
            left[here] = left[index(row, column - 1, plane)] + values[index(row, column - 1, plane)];
        }
      }
    }
    const SumsBefore sums = look_back_along_both(executor(), values, grid.rows, grid.columns);
    EXPECT_TRUE(sums.above == above) << grid.rows << " x " << grid.columns;
    EXPECT_TRUE(sums.left == left) << grid.rows << " x " << grid.columns;
  }
}

TEST_F(PrimitivesCuda, BlocksScanWhatDoesNotCommute) {
  for (const std::size_t count : {128u, 1024u}) {
    const std::vector<Affine> maps = random_maps(count, 5);
    EXPECT_TRUE(scan_by_block(executor(), maps) == products_before(maps)) << count;
  }
}

TEST_F(PrimitivesCuda, WarpsSumSeveralValuesTogether) {
  constexpr std::size_t kValues = 8, kLanes = 16;
  std::vector<std::uint32_t> values(kValues * 32);
  std::mt19937 random(4);
  for (std::uint32_t& value : values) value = static_cast<std::uint32_t>(random());
  const WarpSums sums = sum_by_warp(executor(), values);
  for (std::size_t k = 0; k < kValues; ++k) {
    std::uint32_t all = 0, before = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      if (lane % kLanes == 0) before = 0;
      EXPECT_EQ(sums.exclusive[k * 32 + lane], before);
      before += values[k * 32 + lane];
      EXPECT_EQ(sums.inclusive[k * 32 + lane], before);
      all += values[k * 32 + lane];
    }
    EXPECT_EQ(sums.sums[k * 32 / kValues], all) << k;
  }
}

TEST_F(PrimitivesCuda, CopiedWordsAreThereWhereTheirArrivalIsCounted) {
  if (executor().device().numbers().architecture < 90) GTEST_SKIP() << "needs compute capability 9.0";
  std::vector<float> words(32 * 4000);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<float>(i + 1);
  const std::vector<float> copied = copy_words_through_slots(executor(), words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    ASSERT_EQ(copied[i], is_word_there(static_cast<int>(i)) ? words[i] : 0.0F) << i;
  }
}

TEST_F(PrimitivesCuda, CooperativeLaunchesAreRefusedWhereBlocksDoNotFit) {
  EXPECT_TRUE(launches_cooperatively_what_fits(executor()));
}

TEST_F(PrimitivesCuda, LaunchesOnlyRaiseWhatSharedMemoryAKernelMayHave) {
  const std::size_t most = executor().device().numbers().block_shared_bytes;
  EXPECT_EQ(dynamic_shared_limit_after(executor(), {most, 1024, most / 2}), most);
  EXPECT_EQ(count_refused_launches(executor(), 8, 500), 0);
}

TEST_F(PrimitivesCuda, ADependentKernelWaitsForItsPrimary) {
  EXPECT_EQ(count_words_read_too_early(executor(), 100000), 0u);
}

}  // namespace
}  // namespace cumulus::testing
