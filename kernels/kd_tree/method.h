#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "kernels/core/device_numbers.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/left_balanced.h"

// The one place that chooses how a job is done. Each choice follows from its arguments alone, is there for
// every job that the checks let pass, and states the scratch bytes that it takes, exactly.
// `element_bytes` is 4 for float, 8 for double.
namespace cumulus::kd_tree {

/// What choices depend on, of the smallest GPU that the kernels are compiled for (compute capability 7.5):
/// what fits there fits everywhere, so that the choices of every supported GPU are these.
/// Admission, which counts bytes before a GPU is chosen, takes them.
inline constexpr DeviceNumbers kMinSupportedGpu{.architecture = 75, .block_shared_bytes = 64 * 1024};

/// The part of a build in which the segments of a level are split together, each into two; `levels` may be 0.
/// Sizes of its scratch memory are in elements.
struct LevelSplits {
  int levels = 0;
  std::size_t segments = 0;    // of the last level that is split
  std::size_t tiles = 0;       // of the level with most of them
  std::size_t histograms = 0;  // counters of all passes of one level
  std::size_t bound_keys = 0;  // of the level after the last split
  std::size_t split_keys = 0;  // of the last level that is split
};

/// Then a block of threads takes each segment down to its leaves in shared memory.
struct BuildInBlocks {
  LevelSplits splits;
  int threads = 0;
  int items = 0;     // points a thread
  int capacity = 0;  // points a block
  std::size_t shared_bytes = 0;
  std::size_t scratch_bytes = 0;
};

/// Then segments are leaves, too large for a block.
struct BuildByLevels {
  LevelSplits splits;
  std::size_t scratch_bytes = 0;
};

/// Points go down planes that samples were split at, in two steps, into buckets with room for more than they
/// are expected to have; a block takes each bucket to its leaves. Where one has no room, the tree is built by
/// `exact` in the same scratch memory.
struct BuildFromSamples {
  int first_levels = 0;
  int second_levels = 0;
  int bucket_levels = 0;
  int first_samples = 0;
  int sample_shift = 0;  // of the second step: one of 2^sample_shift points
  // In points:
  unsigned sample_capacity = 0;
  unsigned part_capacity = 0;
  unsigned bucket_capacity = 0;
  unsigned small_capacity = 0;   // of most buckets' blocks
  bool wide_blocks = false;      // kWideBuckets, else kNarrowBuckets
  std::size_t shared_bytes = 0;  // of the block with the most
  std::size_t scratch_bytes = 0;
  BuildInBlocks exact;

  int upper_levels() const { return first_levels + second_levels; }  // above the buckets
};

using BuildPlan = std::variant<BuildInBlocks, BuildByLevels, BuildFromSamples>;
BuildPlan choose_build(std::size_t element_bytes, const KdTreeShape& shape, const KdTreeOptions& options,
                       const DeviceNumbers& device);

/// Nearest neighbours: a thread has a query, in the queries' own order, and its list in local memory.
struct NearestPerThread {
  int list_capacity = 0;  // kSmallListCapacity, kMediumListCapacity or kMaxNeighbors
  std::size_t scratch_bytes = 0;
};

/// Queries are sorted by the tree, so that a warp's see much the same nodes.
struct NearestSorted {
  int level = 0;                    // queries are sorted by the node of this level that they come down to
  bool lists_in_registers = false;  // else a heap in shared memory
  int threads = 0;
  std::size_t child_extents = 0;  // one for each axis of each inner node
  std::size_t shared_bytes = 0;   // of a block
  std::size_t scratch_bytes = 0;
};

/// The nearest neighbour alone, of queries that are sorted likewise: warps share the leaves that their lanes
/// come to.
struct ClosestSorted {
  int level = 0;                // as above
  std::size_t splits = 0;       // one for each inner node
  std::size_t leaf_begins = 0;  // one for each leaf and each tree
  std::size_t scratch_bytes = 0;
};

using NearestPlan = std::variant<NearestPerThread, NearestSorted, ClosestSorted>;
NearestPlan choose_nearest(std::size_t element_bytes, const KdTreeShape& shape, const NeighborSearch& search,
                           int neighbors, const DeviceNumbers& device);

/// The lists of neighbours of which a GPU makes sums.
std::size_t summed_list_bytes(std::size_t element_bytes, const KdTreeShape& shape,
                              const NeighborSearch& search, int neighbors);

/// Counts and lists have one method: a thread has a query, in the queries' own order.
struct CountPlan {
  std::size_t scratch_bytes = 0;
};
CountPlan choose_count();

struct ListPlan {
  std::int64_t tiles = 0;  // in which offsets are summed
  std::size_t scratch_bytes = 0;
};
ListPlan choose_list(const KdTreeShape& shape, const NeighborSearch& search);

/// Level after level, all points are sorted by coordinate, then by part of the tree.
struct LeftBalancedPlan {
  int levels = 0;
  int part_bits = 0;           // of a part's name
  std::size_t sort_bytes = 0;  // what a sort needs besides its keys
  std::size_t scratch_bytes = 0;
};
LeftBalancedPlan choose_left_balanced(std::size_t element_bytes, const KdTreeShape& shape);

/// On the CPU. The scratch bytes do not depend on the number of threads.
struct CpuBuildPlan {
  std::size_t subtree_points = 0;  // subtrees of at most so many are built at once, by one thread
  std::size_t scratch_bytes = 0;
};
CpuBuildPlan choose_cpu_build(std::size_t element_bytes, const KdTreeShape& shape, int threads);

struct CpuQueryPlan {
  bool in_morton_order = false;  // else in the queries' own
  std::size_t scratch_bytes = 0;
};
CpuQueryPlan choose_cpu_query(const KdTreeShape& shape, const NeighborSearch& search);

std::size_t cpu_left_balanced_scratch_bytes(std::size_t element_bytes, const KdTreeShape& shape);

inline std::size_t scratch_bytes_of(const BuildPlan& plan) {
  return std::visit([](const auto& method) { return method.scratch_bytes; }, plan);
}
inline std::size_t scratch_bytes_of(const NearestPlan& plan) {
  return std::visit([](const auto& method) { return method.scratch_bytes; }, plan);
}

}  // namespace cumulus::kd_tree
