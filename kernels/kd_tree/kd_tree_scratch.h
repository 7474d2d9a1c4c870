#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/scratch_arena.h"
#include "kernels/kd_tree/kd_tree.h"

namespace cumulus {

/// Scratch bytes of build_kd_tree: exact.
template <class T, Space S>
std::size_t build_kd_tree_scratch_bytes(const KdTreeShape& shape, std::int64_t leaf_size) {
  const auto points = static_cast<std::size_t>(shape.all_points());
  if constexpr (S == Space::kHost) {
    // A second copy of the points, and two of their order.
    (void)leaf_size;
    return ScratchSize()
        .add<T>(static_cast<std::size_t>(shape.coordinates()))
        .template add<std::uint32_t>(points)
        .template add<std::uint32_t>(points)
        .bytes();
  }
}

}  // namespace cumulus
