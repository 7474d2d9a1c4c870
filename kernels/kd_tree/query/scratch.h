#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/scratch_arena.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/query/plan.h"

namespace cumulus {

namespace kd_tree {
/// Where a CPU puts its queries into an order of its own.
inline std::size_t order_bytes(const KdTreeShape& shape, const NeighborSearch& search) {
  if (!orders_queries(shape, search)) return 0;
  return ScratchSize().add<OrderedQuery>(static_cast<std::size_t>(shape.trees * search.queries)).bytes();
}
}  // namespace kd_tree

/// Scratch bytes of count_within: exact. On the CPU 16 for each query that is sorted.
template <Space S>
std::size_t count_within_scratch_bytes(const KdTreeShape& shape, const NeighborSearch& search) {
  if (S == Space::kHost) return kd_tree::order_bytes(shape, search);
  return ScratchSize().add<std::uint64_t>(1).add<NeighborReport>(1).bytes();
}

/// Scratch bytes of list_within: exact.
template <Space S>
std::size_t list_within_scratch_bytes(const KdTreeShape& shape, const NeighborSearch& search) {
  const std::size_t bytes = count_within_scratch_bytes<S>(shape, search);
  if (S == Space::kHost) return bytes;
  const std::int64_t tiles = kd_tree::accumulation_tiles(shape.trees * search.queries);
  return bytes + ScratchSize().add<std::int64_t>(static_cast<std::size_t>(tiles)).bytes();
}

/// Scratch bytes of find_nearest: exact. On the CPU 16 for each query that is sorted; on the GPU 12,
/// 4 for each node of the level that they are sorted by, and the boxes once more.
template <class T, Space S>
std::size_t find_nearest_scratch_bytes(const KdTreeShape& shape, const NeighborSearch& search) {
  const std::size_t bytes = count_within_scratch_bytes<S>(shape, search);
  if (S == Space::kHost || !kd_tree::sorts_queries(sizeof(T), shape, search)) return bytes;
  const auto queries = static_cast<std::size_t>(shape.trees * search.queries);
  return bytes + ScratchSize()
                     .add<kd_tree::ChildExtents>(kd_tree::child_extents(shape))
                     .add<std::uint32_t>(queries)
                     .add<std::uint32_t>(queries)
                     .add<std::uint32_t>(queries)
                     .add<std::uint32_t>(
                         static_cast<std::size_t>(shape.trees << kd_tree::sorting_level(shape, search)))
                     .add<std::uint32_t>(static_cast<std::size_t>(shape.trees))
                     .bytes();
}

}  // namespace cumulus
