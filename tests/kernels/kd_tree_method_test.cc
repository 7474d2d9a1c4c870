#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kernels/kd_tree/method.h"
#include "kernels/kd_tree/tuning.h"
#include "tests/support/gpus.h"

// The choices for shapes from one point to 10^8, on GPUs that need not be there.

namespace cumulus {
namespace {

using kd_tree::BuildByLevels;
using kd_tree::BuildInBlocks;
using kd_tree::BuildPlan;
using kd_tree::choose_build;
using kd_tree::choose_nearest;
using kd_tree::ClosestSorted;
using kd_tree::NearestPerThread;
using kd_tree::NearestPlan;
using kd_tree::NearestSorted;

constexpr DeviceNumbers kH200{90, 132, 2048, 228 * 1024, 227 * 1024, std::size_t{50} << 20};
constexpr DeviceNumbers kRtx4090{89, 128, 1536, 100 * 1024, 99 * 1024, std::size_t{72} << 20};
/// With less shared memory than any supported GPU has.
constexpr DeviceNumbers kSmallGpu{61, 20, 2048, 96 * 1024, 48 * 1024, std::size_t{2} << 20};

struct ChosenBuild {
  int levels;   // that are split together
  int threads;  // of a block that goes on; 0: segments are leaves then
  std::size_t scratch_bytes;

  bool operator==(const ChosenBuild&) const = default;
};
std::ostream& operator<<(std::ostream& out, const ChosenBuild& chosen) {
  return out << "{" << chosen.levels << ", " << chosen.threads << ", " << chosen.scratch_bytes << "}";
}

struct BuildRow {
  std::size_t element_bytes;
  std::int64_t trees;
  std::int64_t points;
  int dimensions;
  std::int64_t leaf_size;
  KdTreeSplit split;
  ChosenBuild on_supported;  // H200, RTX 4090, and all others that are supported
  ChosenBuild on_small;

  KdTreeShape shape() const { return kd_tree_shape(trees, points, dimensions, leaf_size); }
  BuildPlan plan(const DeviceNumbers& device) const {
    return choose_build(element_bytes, shape(), {leaf_size, split}, device);
  }
  std::string name() const {
    return std::to_string(trees) + " x " + std::to_string(points) + " x " + std::to_string(dimensions) +
           ", leaves of " + std::to_string(leaf_size) + ", " + std::to_string(element_bytes) + " bytes";
  }
};

ChosenBuild chosen(const BuildPlan& plan) {
  if (const auto* blocks = std::get_if<BuildInBlocks>(&plan))
    return {blocks->splits.levels, blocks->threads, blocks->scratch_bytes};
  const auto& by_levels = std::get<BuildByLevels>(plan);
  return {by_levels.splits.levels, 0, by_levels.scratch_bytes};
}

const std::vector<BuildRow>& build_rows() {
  constexpr KdTreeSplit kWidest = KdTreeSplit::kWidestSpread;
  constexpr KdTreeSplit kRound = KdTreeSplit::kRoundRobin;
  constexpr KdTreeSplit kMiddle = KdTreeSplit::kMidpoint;
  // clang-format off
  // element_bytes, trees, points, dimensions, leaf_size, split, on_supported, on_small
  static const std::vector<BuildRow> rows = {
    {4, 1, 1, 3, 40, kWidest, {0, 64, 1280}, {0, 64, 1280}},
    {4, 1, 64, 3, 40, kWidest, {0, 64, 1792}, {0, 64, 1792}},
    {4, 1, 1000, 3, 40, kWidest, {0, 128, 16896}, {0, 128, 16896}},
    {4, 1, 1000, 3, 10, kWidest, {0, 128, 16896}, {0, 128, 16896}},
    {4, 1, 1000, 3, 1, kWidest, {0, 1024, 16896}, {0, 1024, 16896}},
    {4, 1, 2048, 3, 40, kWidest, {0, 256, 33536}, {0, 256, 33536}},
    {4, 1, 2049, 3, 40, kWidest, {0, 512, 34048}, {0, 512, 34048}},
    {4, 1, 3000, 3, 10, kWidest, {0, 512, 48896}, {1, 256, 54016}},
    {4, 1, 10000, 3, 40, kWidest, {2, 512, 170240}, {2, 512, 170240}},
    {4, 1, 10000, 3, 10, kWidest, {2, 512, 170240}, {2, 512, 170240}},
    {4, 1, 35947, 3, 40, kWidest, {4, 512, 610560}, {4, 512, 610560}},
    {4, 1, 35947, 3, 10, kWidest, {4, 512, 610560}, {4, 512, 610560}},
    {4, 1, 100000, 3, 40, kWidest, {5, 512, 1668864}, {5, 512, 1668864}},
    {4, 1, 100000, 3, 10, kWidest, {5, 512, 1668864}, {6, 256, 1736192}},
    {4, 1, 100000, 2, 10, kWidest, {5, 512, 1268224}, {5, 512, 1268224}},
    {4, 1, 100000, 4, 40, kWidest, {5, 512, 2068992}, {6, 256, 2136832}},
    {4, 1, 100000, 6, 40, kWidest, {6, 256, 2938368}, {6, 256, 2938368}},
    {4, 1, 100000, 8, 40, kWidest, {6, 256, 3739904}, {7, 128, 3878912}},
    {4, 1, 100000, 16, 40, kWidest, {7, 128, 7091200}, {8, 64, 7381760}},
    {4, 1, 100000, 3, 4, kWidest, {6, 512, 1736192}, {6, 512, 1736192}},
    {4, 1, 100000, 3, 1, kWidest, {7, 1024, 1871360}, {7, 1024, 1871360}},
    {4, 1, 100000, 3, 5000, kWidest, {4, 0, 1635328}, {4, 0, 1635328}},
    {4, 1, 100000, 3, 10000, kWidest, {3, 0, 1618432}, {3, 0, 1618432}},
    {4, 1, 100000, 3, 100000, kWidest, {0, 0, 1601024}, {0, 0, 1601024}},
    {4, 1, 1000000, 3, 40, kWidest, {8, 512, 16542720}, {9, 256, 17082880}},
    {4, 1, 1000000, 3, 10, kWidest, {9, 256, 17082880}, {9, 256, 17082880}},
    {4, 1, 1000000, 3, 40, kRound, {8, 512, 16542720}, {9, 256, 17082880}},
    {4, 1, 1000000, 3, 40, kMiddle, {9, 512, 17084928}, {9, 512, 17084928}},
    {4, 1, 1000000, 3, 10, kMiddle, {9, 512, 17084928}, {9, 512, 17084928}},
    {4, 1, 1000000, 16, 40, kWidest, {11, 64, 72649472}, {11, 64, 72649472}},
    {4, 1, 1000000, 3, 1, kWidest, {10, 1024, 18165248}, {10, 1024, 18165248}},
    {4, 1, 10000000, 3, 40, kWidest, {12, 512, 168675840}, {12, 512, 168675840}},
    {4, 1, 10000000, 3, 10, kWidest, {12, 512, 168675840}, {12, 512, 168675840}},
    {4, 1, 10000000, 2, 40, kWidest, {11, 1024, 124321792}, {12, 512, 128626688}},
    {4, 1, 100000000, 3, 40, kWidest, {15, 512, 1669403136}, {15, 512, 1669403136}},
    {4, 1, 100000000, 3, 10, kWidest, {15, 512, 1669403136}, {16, 256, 1738543616}},
    {4, 1, 100000000, 2, 10, kMiddle, {15, 1024, 1269140992}, {16, 512, 1338019328}},
    {4, 4000, 1000, 3, 40, kWidest, {0, 128, 64096512}, {0, 128, 64096512}},
    {4, 4000, 1000, 3, 10, kWidest, {0, 128, 64096512}, {0, 128, 64096512}},
    {4, 3, 100000, 3, 40, kWidest, {5, 512, 5004288}, {5, 512, 5004288}},
    {4, 0, 1000, 3, 40, kWidest, {0, 128, 512}, {0, 128, 512}},
    {4, 7, 0, 3, 40, kWidest, {0, 64, 768}, {0, 64, 768}},
    {8, 1, 1000, 3, 40, kWidest, {0, 128, 28928}, {0, 128, 28928}},
    {8, 1, 10000, 3, 40, kWidest, {3, 256, 315136}, {3, 256, 315136}},
    {8, 1, 100000, 3, 40, kWidest, {6, 256, 3069696}, {6, 256, 3069696}},
    {8, 1, 100000, 3, 10, kWidest, {6, 256, 3069696}, {7, 128, 3338496}},
    {8, 1, 100000, 2, 40, kWidest, {5, 512, 2134784}, {6, 256, 2268160}},
    {8, 1, 100000, 8, 40, kWidest, {7, 128, 7353856}, {8, 64, 7907072}},
    {8, 1, 100000, 16, 40, kWidest, {8, 64, 14356224}, {9, 64, 15511808}},
    {8, 1, 1000000, 3, 40, kWidest, {9, 256, 30151936}, {10, 128, 32303360}},
    {8, 1, 1000000, 3, 40, kRound, {9, 256, 30151936}, {10, 128, 32303360}},
    {8, 1, 1000000, 3, 40, kMiddle, {10, 256, 32303360}, {10, 256, 32303360}},
    {8, 1, 1000000, 16, 10, kWidest, {12, 64, 150489856}, {12, 64, 150489856}},
    {8, 1, 10000000, 3, 40, kWidest, {13, 256, 314423296}, {13, 256, 314423296}},
    {8, 1, 100000000, 3, 40, kWidest, {16, 256, 3075382784}, {16, 256, 3075382784}},
    {8, 4000, 1000, 3, 40, kWidest, {0, 128, 112192512}, {0, 128, 112192512}},
  };
  // clang-format on
  return rows;
}

TEST(KdTreeMethod, ChoosesTheBuildOfEachShape) {
  for (const BuildRow& row : build_rows()) {
    SCOPED_TRACE(row.name());
    EXPECT_EQ(chosen(row.plan(kH200)), row.on_supported);
    EXPECT_EQ(chosen(row.plan(kRtx4090)), row.on_supported);
    EXPECT_EQ(chosen(row.plan(kd_tree::kMinSupportedGpu)), row.on_supported);
    EXPECT_EQ(chosen(row.plan(kSmallGpu)), row.on_small);
  }
}

TEST(KdTreeMethod, GivesBlocksNoMoreSharedMemoryThanTheyCanHave) {
  for (const BuildRow& row : build_rows()) {
    for (const DeviceNumbers& device : {kH200, kRtx4090, kSmallGpu}) {
      const BuildPlan plan = row.plan(device);
      const auto* blocks = std::get_if<BuildInBlocks>(&plan);
      if (blocks == nullptr) continue;
      SCOPED_TRACE(row.name());
      EXPECT_LE(blocks->shared_bytes, device.block_shared_bytes);
      EXPECT_LE(blocks->shared_bytes, kd_tree::kMaxBlockBytes);
      EXPECT_LE(blocks->capacity, blocks->threads * blocks->items);
      EXPECT_LE(std::int64_t{1} << (row.shape().levels - 1 - blocks->splits.levels), blocks->threads);
    }
  }
}

/// Of NearestRow: a thread has a query, in the queries' own order.
constexpr int kPerThread = -1;
/// Likewise: queries are sorted, and each has one neighbour.
constexpr int kClosest = 1;

struct NearestRow {
  std::size_t element_bytes;
  std::int64_t trees;
  std::int64_t points;
  int dimensions;
  std::int64_t leaf_size;
  std::int64_t queries;
  int neighbors;
  double period;
  int sorting_level;  // or kPerThread
  int list;           // threads of a block that sorts; else places of a list
  std::size_t scratch_bytes;

  NearestPlan plan(const DeviceNumbers& device) const {
    NeighborSearch search;
    search.queries = queries;
    search.period[1] = period;
    return choose_nearest(element_bytes, kd_tree_shape(trees, points, dimensions, leaf_size), search,
                          neighbors, device);
  }
};

const std::vector<NearestRow>& nearest_rows() {
  // clang-format off
  // element_bytes, trees, points, dimensions, leaf_size, queries, neighbors, period, sorting_level, list,
  // scratch_bytes
  static const std::vector<NearestRow> rows = {
    {4, 1, 1000000, 3, 10, 1, 8, 0, kPerThread, 8, 512},
    {4, 1, 1000000, 3, 10, 1023, 8, 0, kPerThread, 8, 512},
    {4, 1, 1000, 3, 10, 1024, 8, 0, 6, 128, 16640},
    {4, 1, 100000, 3, 10, 1024, 8, 0, 10, 128, 410624},
    {4, 1, 1000000, 3, 10, 1024, 8, 0, kPerThread, 8, 512},
    {4, 1, 1000000, 3, 10, 2047, 8, 0, kPerThread, 8, 512},
    {4, 1, 1000000, 3, 10, 2048, 8, 0, 11, 128, 3179520},
    {4, 1, 1000000, 3, 10, 2000000, 1, 0, 16, kClosest, 25049856},
    {4, 1, 1000, 4, 10, 1024, 1, 0, 6, kClosest, 14592},
    {4, 1, 1000000, 3, 10, 1023, 1, 0, kPerThread, 8, 512},
    {4, 1, 1000000, 5, 10, 2000000, 1, 0, 16, 128, 29506048},
    {8, 1, 1000000, 3, 10, 2000000, 1, 0, 16, kClosest, 25049856},
    {8, 1, 1000000, 3, 10, 2000000, 1, 1, 16, 128, 27408896},
    {8, 1, 1000000, 5, 10, 2000000, 1, 0, 16, 128, 29506048},
    {4, 4000, 1000, 3, 10, 2000, 1, 0, 6, kClosest, 100097024},
    {4, 1, 1000000, 3, 10, 2000000, 8, 0, 16, 128, 27408896},
    {4, 1, 1000000, 3, 10, 2000000, 9, 0, 16, 32, 27408896},
    {4, 1, 1000000, 3, 10, 2000000, 50, 0, 16, 32, 27408896},
    {4, 1, 1000000, 3, 10, 2000000, 128, 0, 16, 32, 27408896},
    {4, 1, 1000000, 2, 10, 2000000, 8, 0, 16, 128, 26360320},
    {4, 1, 1000000, 4, 10, 2000000, 8, 0, 16, 128, 28457472},
    {4, 1, 1000000, 5, 10, 2000000, 8, 0, 16, 128, 29506048},
    {4, 1, 1000000, 9, 10, 2000000, 8, 0, kPerThread, 8, 512},
    {4, 1, 1000000, 6, 10, 200000, 8, 0, 16, 128, 8954624},
    {4, 1, 1000000, 8, 10, 200000, 32, 0, 16, 32, 11051776},
    {4, 1, 1000000, 3, 10, 2000000, 8, 1, 16, 128, 27408896},
    {4, 1, 1000000, 3, 10, 2000000, 1, 1, 16, 128, 27408896},
    {4, 1, 10000000, 3, 10, 2000000, 8, 0, 19, 128, 51264000},
    {4, 1, 10000000, 3, 10, 2000000, 50, 0, 19, 32, 51264000},
    {4, 1, 10000000, 3, 10, 16000, 8, 0, kPerThread, 8, 512},
    {4, 1, 100000000, 3, 10, 2000000, 8, 0, 20, 128, 430848512},
    {4, 1, 100000000, 3, 40, 100000, 128, 0, 16, 32, 102126848},
    {4, 4000, 1000, 3, 10, 1000, 8, 0, kPerThread, 8, 512},
    {4, 4000, 1000, 3, 10, 2000, 8, 0, 6, 128, 109136896},
    {4, 0, 1000, 3, 10, 2000, 8, 0, 6, 128, 768},
    {8, 1, 1000000, 3, 10, 1023, 8, 0, kPerThread, 8, 512},
    {8, 1, 1000000, 3, 10, 2000000, 8, 0, 16, 128, 27408896},
    {8, 1, 1000000, 3, 10, 2000000, 33, 0, 16, 32, 27408896},
    {8, 1, 1000000, 8, 10, 2000000, 124, 1, 16, 32, 32651776},
    {8, 1, 1000000, 9, 10, 2000000, 33, 0, kPerThread, 128, 512},
    {8, 1, 1000, 2, 40, 10, 128, 0, kPerThread, 128, 512},
  };
  // clang-format on
  return rows;
}

TEST(KdTreeMethod, ChoosesTheSearchOfEachShape) {
  for (const NearestRow& row : nearest_rows()) {
    SCOPED_TRACE(std::to_string(row.queries) + " queries of " + std::to_string(row.points) + " points, k " +
                 std::to_string(row.neighbors));
    for (const DeviceNumbers& device : {kH200, kRtx4090, kd_tree::kMinSupportedGpu, kSmallGpu}) {
      const NearestPlan plan = row.plan(device);
      EXPECT_EQ(scratch_bytes_of(plan), row.scratch_bytes);
      if (row.sorting_level == kPerThread) {
        ASSERT_TRUE(std::holds_alternative<NearestPerThread>(plan));
        EXPECT_EQ(std::get<NearestPerThread>(plan).list_capacity, row.list);
      } else if (row.list == kClosest) {
        ASSERT_TRUE(std::holds_alternative<ClosestSorted>(plan));
        EXPECT_EQ(std::get<ClosestSorted>(plan).level, row.sorting_level);
      } else {
        ASSERT_TRUE(std::holds_alternative<NearestSorted>(plan));
        EXPECT_EQ(std::get<NearestSorted>(plan).level, row.sorting_level);
        EXPECT_EQ(std::get<NearestSorted>(plan).threads, row.list);
        EXPECT_LE(std::get<NearestSorted>(plan).shared_bytes, device.block_shared_bytes);
      }
    }
  }
}

TEST(KdTreeMethod, DoesNotSortQueriesWhoseListsDoNotFit) {
  DeviceNumbers tiny = kSmallGpu;
  tiny.block_shared_bytes = 16 * 1024;
  NeighborSearch search;
  search.queries = 2000;
  const KdTreeShape shape = kd_tree_shape(1, 1000, 3, 10);
  EXPECT_TRUE(std::holds_alternative<NearestPerThread>(choose_nearest(4, shape, search, 128, tiny)));
  EXPECT_TRUE(std::holds_alternative<NearestSorted>(choose_nearest(4, shape, search, 8, tiny)));
}

TEST(KdTreeMethod, SaysWhatListsAndLayoutsTake) {
  NeighborSearch search;
  search.queries = 2049;
  const KdTreeShape shape = kd_tree_shape(3, 1000, 3, 10);
  EXPECT_EQ(kd_tree::choose_count().scratch_bytes, 512u);
  EXPECT_EQ(kd_tree::choose_list(shape, search).tiles, 4);
  EXPECT_EQ(kd_tree::choose_list(shape, search).scratch_bytes, 768u);
  EXPECT_EQ(kd_tree::choose_left_balanced(4, shape).levels, 10);
  EXPECT_EQ(kd_tree::choose_left_balanced(4, shape).part_bits, 12);
  EXPECT_EQ(kd_tree::choose_left_balanced(8, {1, 0, 3, 1}).levels, 0);
}

TEST(KdTreeMethod, ChoosesOnTheCpu) {
  NeighborSearch search;
  search.queries = 4096;
  EXPECT_TRUE(kd_tree::choose_cpu_query(kd_tree_shape(1, 1 << 16, 3, 40), search).in_morton_order);
  EXPECT_FALSE(kd_tree::choose_cpu_query(kd_tree_shape(1, (1 << 16) - 1, 3, 40), search).in_morton_order);
  search.queries = 4095;
  EXPECT_FALSE(kd_tree::choose_cpu_query(kd_tree_shape(1, 1 << 16, 3, 40), search).in_morton_order);
  EXPECT_EQ(kd_tree::choose_cpu_build(4, kd_tree_shape(1, 1000, 3, 40), 1).subtree_points, 32768u);
  EXPECT_EQ(kd_tree::choose_cpu_build(4, kd_tree_shape(1, 1000, 3, 40), 2).subtree_points, 2048u);
  EXPECT_EQ(kd_tree::choose_cpu_build(4, kd_tree_shape(1, 100'000, 8, 40), 4).subtree_points, 6250u);
  EXPECT_EQ(kd_tree::choose_cpu_build(4, kd_tree_shape(1, 100'000, 9, 40), 4).subtree_points, 0u);
}

}  // namespace
}  // namespace cumulus
