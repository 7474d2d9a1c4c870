#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "tests/kernels/primitives_kernels.h"

// Against serial oracles. On a GPU only: nothing of kernels/primitives that blocks wait in runs elsewhere.

namespace cumulus::testing {
namespace {

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

TEST_F(PrimitivesCuda, BatchesComeWholeRoundAfterRound) {
  EXPECT_EQ(count_wrong_neighbours(executor(), 2000, false), 0u);
  EXPECT_EQ(count_wrong_neighbours(executor(), 2000, true), 0u);
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

TEST_F(PrimitivesCuda, TilesGoThroughARingOfStagesInOrder) {
  if (!has_stage_rings()) GTEST_SKIP() << "compute capability 9.0 is needed";
  constexpr int kRows = 256, kColumns = 512, kBlocks = 2000;
  std::vector<float> values(kRows * kColumns);
  std::mt19937 random(3);
  for (float& value : values) value = static_cast<float>(random() % 1000);  // sums are exact
  std::vector<float> expected(kRows);
  for (std::size_t i = 0; i < values.size(); ++i) expected[i / kColumns] += 2 * values[i];
  const std::vector<float> sums = sum_rows_through_ring(executor(), values, kRows, kColumns, kBlocks);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) wrong += sums[i] != expected[i % kRows];
  EXPECT_EQ(wrong, 0u);
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
