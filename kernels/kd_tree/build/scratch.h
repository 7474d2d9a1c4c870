#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/scratch_arena.h"
#include "kernels/kd_tree/build/plan.h"
#include "kernels/kd_tree/kd_tree.h"

namespace cumulus {

/// Scratch bytes of build_kd_tree: exact.
template <class T, Space S>
std::size_t build_kd_tree_scratch_bytes(const KdTreeShape& shape, const KdTreeOptions& options) {
  if constexpr (S == Space::kHost) {
    // A second copy of the points, and two of their order.
    const auto points = static_cast<std::size_t>(shape.all_points());
    return ScratchSize()
        .add<T>(static_cast<std::size_t>(shape.coordinates()))
        .template add<std::uint32_t>(points)
        .template add<std::uint32_t>(points)
        .bytes();
  } else {
    // A second copy of the points, and what the levels that are split together keep.
    using Key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const kd_tree::BuildPlan plan(sizeof(T), shape, options);
    const kd_tree::BuildScratch scratch(sizeof(T), shape, options, plan);
    return ScratchSize()
        .add<T>(scratch.coordinates)
        .template add<std::uint32_t>(scratch.points)
        .template add<kd_tree::Segment<Key>>(scratch.segments)
        .template add<Key>(scratch.bound_keys)
        .template add<Key>(scratch.bound_keys)
        .template add<std::uint32_t>(scratch.histograms)
        .template add<std::uint32_t>(scratch.segments)
        .template add<std::uint64_t>(scratch.tiles)
        .template add<std::uint64_t>(1)
        .template add<KdTreeReport>(1)
        .bytes();
  }
}

}  // namespace cumulus
