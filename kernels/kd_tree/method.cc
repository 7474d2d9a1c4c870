#include "kernels/kd_tree/method.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

#include "kernels/core/div.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/kd_tree/build/layout.h"
#include "kernels/kd_tree/cpu/candidate.h"
#include "kernels/kd_tree/left_balanced/places.h"
#include "kernels/kd_tree/query/layout.h"
#include "kernels/kd_tree/sampled/layout.h"
#include "kernels/kd_tree/tuning.h"

namespace cumulus::kd_tree {
namespace {

std::size_t size_of(std::int64_t count) { return static_cast<std::size_t>(count); }

/// The smallest block that takes a segment of `level` to its leaves. A group of a level has at most as many
/// points as its threads take, so that there are never more groups than threads.
std::optional<BuildInBlocks> block_for(std::size_t element_bytes, const KdTreeShape& shape,
                                       const KdTreeOptions& options, int level, std::size_t max_bytes) {
  const std::int64_t points = max_segment_points(shape, options, level);
  // Uneven groups may fill the room that their level has, up to the last point.
  const std::int64_t room =
      options.split == KdTreeSplit::kMidpoint ? kd_tree_capacity(shape, options.leaf_size, level) : points;
  const auto items = static_cast<int>(std::min<std::int64_t>(kMaxBlockItems, options.leaf_size));
  const std::int64_t groups = std::int64_t{1} << (shape.levels - 1 - level);
  for (int threads = kMinBlockThreads; threads <= kMaxBlockThreads; threads *= 2) {
    if (room > std::int64_t{threads} * items || groups > threads) continue;
    const std::size_t bytes = BlockLayout(element_bytes, shape.dimensions, points, groups).bytes;
    if (bytes > max_bytes) return std::nullopt;
    BuildInBlocks plan;
    plan.threads = threads;
    plan.items = items;
    plan.capacity = static_cast<int>(points);
    plan.shared_bytes = bytes;
    return plan;
  }
  return std::nullopt;
}

LevelSplits splits_of(std::size_t element_bytes, const KdTreeShape& shape, const KdTreeOptions& options,
                      int levels) {
  LevelSplits splits;
  splits.levels = levels;
  splits.bound_keys = size_of((shape.trees << levels) * 2 * shape.dimensions);
  if (levels == 0) return splits;
  splits.segments = size_of(shape.trees << (levels - 1));
  splits.split_keys = splits.segments * 2 * size_of(shape.dimensions);
  splits.histograms = splits.segments * kDigits * size_of(selection_passes(element_bytes));
  for (int level = 0; level < levels; ++level) {
    splits.tiles =
        std::max(splits.tiles, size_of((shape.trees << level) * segment_tiles(shape, options, level)));
  }
  return splits;
}

/// In the order in which build/build.cu takes them.
std::size_t build_bytes(std::size_t element_bytes, const KdTreeShape& shape, const LevelSplits& splits) {
  const std::size_t segment_bytes =
      element_bytes == 4 ? sizeof(Segment<std::uint32_t>) : sizeof(Segment<std::uint64_t>);
  return ScratchSize()
      .add<std::byte>(size_of(shape.coordinates()) * element_bytes)
      .add<std::uint32_t>(size_of(shape.all_points()))
      .add<std::byte>(splits.segments * segment_bytes)
      .add<std::byte>(splits.bound_keys * element_bytes)
      .add<std::byte>(splits.split_keys * element_bytes)
      .add<std::uint32_t>(splits.histograms)
      .add<std::uint32_t>(splits.segments)
      .add<std::uint64_t>(splits.tiles)
      .add<std::uint64_t>(1)
      .add<KdTreeReport>(1)
      .bytes();
}

/// Levels first, as few as possible.
std::optional<BuildInBlocks> build_in_blocks(std::size_t element_bytes, const KdTreeShape& shape,
                                             const KdTreeOptions& options, const DeviceNumbers& device) {
  const std::size_t max_bytes = std::min(kMaxBlockBytes, device.block_shared_bytes);
  for (int level = 0; level < shape.levels; ++level) {
    std::optional<BuildInBlocks> plan = block_for(element_bytes, shape, options, level, max_bytes);
    if (!plan.has_value()) continue;
    plan->splits = splits_of(element_bytes, shape, options, level);
    plan->scratch_bytes = build_bytes(element_bytes, shape, plan->splits);
    return plan;
  }
  return std::nullopt;
}

/// The levels of buckets for blocks of this kind: the most whose buckets are not too large. 0: none.
int bucket_levels(const KdTreeShape& shape, const BucketBlocks& blocks) {
  for (int levels = blocks.max_levels; levels >= blocks.min_levels; --levels) {
    const int above = shape.levels - 1 - levels;
    if (above < 2 || above > 2 * kMaxStepLevels) continue;
    const std::int64_t points = shape.points >> above;
    if (points < kMinBucketPoints) return 0;
    if (points < blocks.max_points) return levels;
  }
  return 0;
}

/// How many times larger than expected a part between quantiles of samples may be, which has `samples` of
/// them: that is gamma distributed (E. Wilson and M. Hilferty, "The distribution of chi-square", 1931).
double room(double samples) {
  const double root = 1 - 1 / (9 * samples) + kRoomDeviations / (3 * std::sqrt(samples));
  return root * root * root;
}

unsigned capacity(double expected, double room) {
  return static_cast<unsigned>(static_cast<std::int64_t>(expected * room) / 4 * 4 + 16);
}

/// The rooms of a plan whose levels are known; false where samples' blocks or buckets' are too small for
/// them.
bool make_room(BuildFromSamples& plan, std::int64_t points, const BucketBlocks& blocks) {
  const double part = static_cast<double>(points) / (1 << plan.first_levels);
  const double bucket = part / (1 << plan.second_levels);
  plan.first_samples = std::min(kPartSamples << plan.first_levels, kMaxFirstSamples);
  const double part_samples = static_cast<double>(plan.first_samples) / (1 << plan.first_levels);
  plan.part_capacity = capacity(part, room(part_samples));
  plan.sample_shift = kMinSampleShift;
  const auto samples = [&] { return capacity(part / (1 << plan.sample_shift), room(part_samples)); };
  while (samples() > kMaxSampleCapacity) {
    if (++plan.sample_shift > kMaxSampleShift) return false;
  }
  plan.sample_capacity = samples();
  const double bucket_samples = bucket / (1 << plan.sample_shift);
  plan.bucket_capacity = capacity(bucket, room(1 / (1 / part_samples + 1 / bucket_samples)));
  // Each group has as many points as its threads take.
  const unsigned groups = 1u << plan.bucket_levels;
  if (plan.bucket_capacity + groups > static_cast<unsigned>(blocks.large_threads * blocks.large_items)) {
    return false;
  }
  plan.small_capacity =
      std::min(capacity(bucket, kSmallBucket), static_cast<unsigned>(blocks.threads * blocks.items) - groups);
  return true;
}

/// In the order in which sampled/build.cu takes them.
std::size_t sampled_bytes(const BuildFromSamples& plan) {
  const std::size_t parts = std::size_t{1} << plan.first_levels;
  const std::size_t buckets = std::size_t{1} << plan.upper_levels();
  return ScratchSize()
      .add<std::uint32_t>(buckets)
      .add<PivotPoint>(buckets)
      .add<std::uint32_t>(counter_words(plan.first_levels, plan.second_levels))
      .add<std::uint32_t>(buckets + 1)
      .add<std::uint32_t>(buckets)
      .add<std::uint32_t>(buckets)
      .add<std::uint32_t>(3)
      .add<PointRecord>(size_of(plan.first_samples))
      .add<PointRecord>(parts * plan.sample_capacity)
      .add<PointRecord>(parts * plan.part_capacity)
      .add<PointRecord>(buckets * plan.bucket_capacity)
      .add<std::uint64_t>(1)
      .add<KdTreeReport>(1)
      .bytes();
}

/// A build from samples with blocks of one kind for its buckets, where these fit.
std::optional<BuildFromSamples> with_buckets(const KdTreeShape& shape, const BucketBlocks& blocks) {
  BuildFromSamples plan;
  plan.bucket_levels = bucket_levels(shape, blocks);
  if (plan.bucket_levels == 0) return std::nullopt;
  const int above = shape.levels - 1 - plan.bucket_levels;
  plan.first_levels = above / 2;
  plan.second_levels = above - plan.first_levels;
  if (!make_room(plan, shape.points, blocks)) return std::nullopt;
  const std::size_t samples = std::max(size_of(plan.first_samples), size_of(plan.sample_capacity));
  plan.shared_bytes =
      std::max(part_bytes(kSampleThreads, samples, std::size_t{1} << plan.second_levels),
               part_bytes(blocks.large_threads, plan.bucket_capacity, std::size_t{1} << plan.bucket_levels));
  return plan;
}

/// Where samples make a faster build than `exact`.
std::optional<BuildFromSamples> build_from_samples(std::size_t element_bytes, const KdTreeShape& shape,
                                                   const KdTreeOptions& options, const BuildInBlocks& exact,
                                                   const DeviceNumbers& device) {
  if (options.medians != KdTreeMedians::kSampled || options.split != KdTreeSplit::kWidestSpread ||
      element_bytes != 4 || shape.dimensions > kPartAxes || shape.trees != 1 ||
      shape.points < kMinSampledPoints || device.block_shared_bytes < kSampledBlockBytes) {
    return std::nullopt;
  }
  std::optional<BuildFromSamples> plan = with_buckets(shape, kNarrowBuckets);
  if (!plan.has_value()) {
    plan = with_buckets(shape, kWideBuckets);
    if (!plan.has_value()) return std::nullopt;
    plan->wide_blocks = true;
  }
  plan->exact = exact;
  plan->scratch_bytes = std::max(sampled_bytes(*plan), exact.scratch_bytes);
  return plan;
}

/// What every search takes: the first fault's number and its description.
ScratchSize fault_bytes() { return ScratchSize().add<std::uint64_t>(1).add<NeighborReport>(1); }

bool is_periodic(const NeighborSearch& search) {
  return std::any_of(search.period.begin(), search.period.end(), [](double period) { return period > 0; });
}

/// Whether queries are worth sorting, and there are kernels for them.
bool sorts_queries(const KdTreeShape& shape, const NeighborSearch& search) {
  return shape.dimensions <= kMaxSortedDimensions && search.queries >= kMinSortedQueries &&
         search.queries < (std::int64_t{1} << 31) && shape.nodes() <= kMaxNodesPerQuery * search.queries;
}

/// Not many more nodes than queries.
int sorting_level(const KdTreeShape& shape, const NeighborSearch& search) {
  int level = 0;
  while (level + 1 < shape.levels && (std::int64_t{2} << level) <= search.queries) ++level;
  return level;
}

/// In the order in which query/sorted.cu takes them.
ScratchSize& add_sort(ScratchSize& size, const KdTreeShape& shape, const NeighborSearch& search, int level) {
  const std::size_t queries = size_of(shape.trees * search.queries);
  return size.add<std::uint32_t>(queries)
      .add<std::uint32_t>(queries)
      .add<std::uint32_t>(queries)
      .add<std::uint32_t>(size_of(shape.trees << level))
      .add<std::uint32_t>(size_of(shape.trees))
      .add<std::uint32_t>(1);
}

NearestSorted sorted_plan(std::size_t element_bytes, const KdTreeShape& shape, const NeighborSearch& search,
                          int neighbors) {
  NearestSorted plan;
  plan.level = sorting_level(shape, search);
  plan.lists_in_registers = neighbors <= kRegisterListCapacity;
  plan.threads = plan.lists_in_registers ? kRegisterListThreads : kHeapListThreads;
  plan.child_extents = size_of(shape.trees * (shape.nodes() / 2) * shape.dimensions);
  // A key is a distance and an index of 4 bytes.
  plan.shared_bytes = size_of(neighbors) * kColumnPitch * size_of(plan.threads / 32) * (element_bytes + 4);
  ScratchSize size = fault_bytes();
  size.add<ChildExtents>(plan.child_extents);
  plan.scratch_bytes = add_sort(size, shape, search, plan.level).bytes();
  return plan;
}

ClosestSorted closest_plan(const KdTreeShape& shape, const NeighborSearch& search) {
  ClosestSorted plan;
  plan.level = sorting_level(shape, search);
  plan.splits = size_of(shape.trees * (shape.nodes() / 2));
  plan.leaf_begins = size_of(shape.trees * (shape.nodes() / 2 + 2));
  ScratchSize size = fault_bytes().add<SplitNode>(plan.splits).add<std::uint32_t>(plan.leaf_begins);
  plan.scratch_bytes = add_sort(size, shape, search, plan.level).bytes();
  return plan;
}

}  // namespace

BuildPlan choose_build(std::size_t element_bytes, const KdTreeShape& shape, const KdTreeOptions& options,
                       const DeviceNumbers& device) {
  if (const auto exact = build_in_blocks(element_bytes, shape, options, device)) {
    const auto sampled = build_from_samples(element_bytes, shape, options, *exact, device);
    if (sampled.has_value()) return *sampled;
    return *exact;
  }
  BuildByLevels plan;
  plan.splits = splits_of(element_bytes, shape, options, shape.levels - 1);
  plan.scratch_bytes = build_bytes(element_bytes, shape, plan.splits);
  return plan;
}

NearestPlan choose_nearest(std::size_t element_bytes, const KdTreeShape& shape, const NeighborSearch& search,
                           int neighbors, const DeviceNumbers& device) {
  if (sorts_queries(shape, search)) {
    const bool has_splits = shape.dimensions <= kMaxSplitDimensions && !is_periodic(search);
    if (neighbors == 1 && has_splits) return closest_plan(shape, search);
    const NearestSorted sorted = sorted_plan(element_bytes, shape, search, neighbors);
    if (sorted.shared_bytes <= device.block_shared_bytes) return sorted;
  }
  const int capacity = neighbors <= kSmallListCapacity    ? kSmallListCapacity
                       : neighbors <= kMediumListCapacity ? kMediumListCapacity
                                                          : kMaxNeighbors;
  return NearestPerThread{capacity, fault_bytes().bytes()};
}

std::size_t summed_list_bytes(std::size_t element_bytes, const KdTreeShape& shape,
                              const NeighborSearch& search, int neighbors) {
  const std::size_t room = size_of(shape.trees * search.queries * neighbors);
  return ScratchSize().add<std::int64_t>(room).add<std::byte>(room * element_bytes).bytes();
}

CountPlan choose_count() { return {fault_bytes().bytes()}; }

ListPlan choose_list(const KdTreeShape& shape, const NeighborSearch& search) {
  const std::int64_t queries = shape.trees * search.queries;
  const std::int64_t tiles = divide_up(queries, kAccumulationTile);
  return {tiles, fault_bytes().add<std::int64_t>(size_of(tiles)).bytes()};
}

LeftBalancedPlan choose_left_balanced(std::size_t element_bytes, const KdTreeShape& shape) {
  const std::size_t points = size_of(shape.all_points());
  LeftBalancedPlan plan;
  plan.levels = left_balanced_levels(shape.points);
  plan.part_bits = static_cast<int>(std::bit_width(points));
  // Counts of digits, 1 KB for each tile of a pass, which has more than 1024 points.
  plan.sort_bytes = points + (std::size_t{1} << 20);
  plan.scratch_bytes = ScratchSize()
                           .add<std::byte>(points * element_bytes)
                           .add<std::byte>(points * element_bytes)
                           .add<std::uint32_t>(points)
                           .add<std::uint32_t>(points)
                           .add<std::uint32_t>(points)
                           .add<std::byte>(plan.sort_bytes)
                           .add<std::uint64_t>(1)
                           .add<KdTreeReport>(1)
                           .bytes();
  return plan;
}

CpuBuildPlan choose_cpu_build(std::size_t element_bytes, const KdTreeShape& shape, int threads) {
  const std::size_t points = size_of(shape.all_points());
  CpuBuildPlan plan;
  // A second copy of the points, and two of their order.
  plan.scratch_bytes = ScratchSize()
                           .add<std::byte>(size_of(shape.coordinates()) * element_bytes)
                           .add<std::uint32_t>(points)
                           .add<std::uint32_t>(points)
                           .bytes();
  if (shape.dimensions > kMaxSubtreeDimensions) return plan;
  plan.subtree_points = threads == 1
                            ? kMaxSubtreePoints
                            : std::clamp(size_of(shape.all_points() / (kSubtreesPerThread * threads)),
                                         kMinSubtreePoints, kMaxSubtreePoints);
  return plan;
}

CpuQueryPlan choose_cpu_query(const KdTreeShape& shape, const NeighborSearch& search) {
  if (shape.points < kMinOrderedPoints || search.queries < kMinOrderedQueries) return {false, 0};
  return {true, ScratchSize().add<OrderedQuery>(size_of(shape.trees * search.queries)).bytes()};
}

std::size_t cpu_left_balanced_scratch_bytes(std::size_t element_bytes, const KdTreeShape& shape) {
  const std::size_t candidate_bytes =
      element_bytes == 4 ? sizeof(Candidate<float>) : sizeof(Candidate<double>);
  return ScratchSize().add<std::byte>(size_of(shape.all_points()) * candidate_bytes).bytes();
}

}  // namespace cumulus::kd_tree
