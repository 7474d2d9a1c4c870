#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kernels/kd_tree/method.h"
#include "kernels/kd_tree/sampled/layout.h"
#include "kernels/kd_tree/tuning.h"
#include "tests/support/gpus.h"

// Which trees are built from samples, and with how much room, on GPUs that need not be there.

namespace cumulus {
namespace {

/// A build for one frame.
struct SampledRow {
  std::size_t element_bytes;
  std::int64_t trees;
  std::int64_t points;
  int dimensions;
  std::int64_t leaf_size;
  int first_levels;  // 0: the exact build
  int second_levels;
  int bucket_levels;
  bool wide;
  int sample_shift;
  std::size_t scratch_bytes;

  kd_tree::BuildPlan plan(const DeviceNumbers& device, KdTreeSplit split = KdTreeSplit::kWidestSpread) const {
    return kd_tree::choose_build(element_bytes, kd_tree_shape(trees, points, dimensions, leaf_size),
                                 {leaf_size, split, KdTreeMedians::kSampled}, device);
  }
  std::string name() const {
    return std::to_string(trees) + " x " + std::to_string(points) + " x " + std::to_string(dimensions) +
           ", leaves of " + std::to_string(leaf_size) + ", " + std::to_string(element_bytes) + " bytes";
  }
};

const std::vector<SampledRow>& sampled_rows() {
  // clang-format off
  // element_bytes, trees, points, dimensions, leaf_size, first_levels, second_levels, bucket_levels, wide, sample_shift, scratch_bytes
  static const std::vector<SampledRow> rows = {
    {4, 1, 131071, 3, 20, 0, 0, 0, false, 0, 0},
    {4, 1, 131072, 3, 20, 4, 4, 4, false, 4, 8846592},
    {4, 1, 131072, 2, 20, 4, 4, 4, false, 4, 8846592},
    {4, 1, 131072, 3, 1, 4, 4, 8, true, 4, 8846592},
    {4, 1, 1000000, 3, 2, 5, 6, 7, false, 4, 67912960},
    {4, 1, 1000000, 3, 3, 5, 6, 7, false, 4, 67912960},
    {4, 1, 1000000, 3, 10, 5, 6, 5, false, 4, 67912960},
    {4, 1, 1000000, 3, 20, 5, 6, 4, false, 4, 67912960},
    {4, 1, 1000000, 3, 40, 5, 6, 3, false, 4, 67912960},
    {4, 1, 1000000, 3, 49, 5, 6, 3, false, 4, 67912960},
    {4, 1, 1000000, 3, 100, 0, 0, 0, false, 0, 0},
    {4, 1, 1000000, 2, 20, 5, 6, 4, false, 4, 67912960},
    {4, 1, 1000000, 4, 20, 0, 0, 0, false, 0, 0},
    {8, 1, 1000000, 3, 20, 0, 0, 0, false, 0, 0},
    {4, 2, 1000000, 3, 20, 0, 0, 0, false, 0, 0},
    {4, 1, 5200000, 3, 20, 7, 7, 3, false, 4, 417414400},
    {4, 1, 10000000, 3, 20, 7, 7, 4, false, 4, 707804416},
    {4, 1, 10000000, 3, 40, 7, 7, 3, false, 4, 707804416},
    {4, 1, 20000000, 3, 20, 7, 8, 4, false, 5, 1594793216},
    {4, 1, 30000000, 3, 20, 8, 8, 4, false, 5, 2913574144},
    {4, 1, 50000000, 3, 20, 7, 8, 6, true, 7, 4479474944},
    {4, 1, 50000000, 3, 49, 7, 8, 4, true, 7, 4479474944},
    {4, 1, 100000000, 3, 3, 8, 8, 8, true, 7, 10050313472},
    {4, 1, 100000000, 3, 20, 8, 8, 6, true, 7, 10050313472},
    {4, 1, 100000000, 3, 49, 8, 8, 4, true, 7, 10050313472},
    {4, 1, 110000000, 3, 20, 0, 0, 0, false, 0, 0},
  };
  // clang-format on
  return rows;
}

TEST(KdTreeSampledMethod, ChoosesSamplesWhereTheyAreFaster) {
  for (const SampledRow& row : sampled_rows()) {
    SCOPED_TRACE(row.name());
    const kd_tree::BuildPlan plan = row.plan(testing::kH200);
    const auto* samples = std::get_if<kd_tree::BuildFromSamples>(&plan);
    ASSERT_EQ(samples != nullptr, row.first_levels > 0);
    for (const DeviceNumbers& device : {testing::kRtx4090, kd_tree::kMinSupportedGpu}) {
      EXPECT_FALSE(std::holds_alternative<kd_tree::BuildFromSamples>(row.plan(device)));
    }
    for (const KdTreeSplit split : {KdTreeSplit::kRoundRobin, KdTreeSplit::kMidpoint}) {
      EXPECT_FALSE(std::holds_alternative<kd_tree::BuildFromSamples>(row.plan(testing::kH200, split)));
    }
    if (samples == nullptr) continue;
    EXPECT_EQ(samples->first_levels, row.first_levels);
    EXPECT_EQ(samples->second_levels, row.second_levels);
    EXPECT_EQ(samples->bucket_levels, row.bucket_levels);
    EXPECT_EQ(samples->wide_blocks, row.wide);
    EXPECT_EQ(samples->sample_shift, row.sample_shift);
    EXPECT_EQ(samples->scratch_bytes, row.scratch_bytes);
    EXPECT_GE(samples->scratch_bytes, samples->exact.scratch_bytes);
  }
}

/// What kernels count on.
TEST(KdTreeSampledMethod, GivesSamplesRoomWhateverTheShape) {
  for (std::int64_t points = kd_tree::kMinSampledPoints; points < 110'000'000; points += points / 97) {
    for (const std::int64_t leaf_size : {1, 2, 3, 5, 10, 20, 33, 40, 49, 77, 150}) {
      const SampledRow row{4, 1, points, 3, leaf_size, 0, 0, 0, false, 0, 0};
      const kd_tree::BuildPlan plan = row.plan(testing::kH200);
      const auto* samples = std::get_if<kd_tree::BuildFromSamples>(&plan);
      SCOPED_TRACE(row.name());
      if (samples == nullptr) {
        ASSERT_TRUE(leaf_size < 3 || leaf_size > 49 || points > 100'000'000);
        continue;
      }
      const kd_tree::BucketBlocks& blocks =
          samples->wide_blocks ? kd_tree::kWideBuckets : kd_tree::kNarrowBuckets;
      const unsigned leaves = 1u << samples->bucket_levels;
      EXPECT_EQ(samples->upper_levels() + samples->bucket_levels,
                kd_tree_shape(1, points, 3, leaf_size).levels - 1);
      EXPECT_LE(samples->second_levels, kd_tree::kMaxStepLevels);
      EXPECT_LE(leaves, static_cast<unsigned>(blocks.threads));
      EXPECT_LE(static_cast<unsigned>(blocks.large_threads) / leaves, 32u);
      EXPECT_LE(samples->small_capacity + leaves, static_cast<unsigned>(blocks.threads * blocks.items));
      EXPECT_LE(samples->bucket_capacity + leaves,
                static_cast<unsigned>(blocks.large_threads * blocks.large_items));
      EXPECT_LE(samples->sample_capacity + (1u << samples->second_levels),
                static_cast<unsigned>(kd_tree::kSampleThreads * kd_tree::kSampleItems));
      EXPECT_EQ((samples->small_capacity | samples->bucket_capacity | samples->sample_capacity) % 2, 0u);
      EXPECT_LE(samples->shared_bytes, kd_tree::kSampledBlockBytes);
      EXPECT_GT(samples->small_capacity, points >> samples->upper_levels());
    }
  }
}

}  // namespace
}  // namespace cumulus
