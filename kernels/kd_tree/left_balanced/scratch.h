#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/scratch_arena.h"
#include "kernels/kd_tree/cpu/candidate.h"
#include "kernels/kd_tree/left_balanced.h"

namespace cumulus {

namespace kd_tree {

/// Room for what sorting so many points on a GPU needs besides their keys: counts of digits, 1 KB for each
/// tile of a pass, which has more than 1024 points.
constexpr std::size_t left_balanced_sort_bytes(std::int64_t points) {
  return static_cast<std::size_t>(points) + (std::size_t{1} << 20);
}

}  // namespace kd_tree

/// Scratch bytes of arrange_left_balanced: exact.
template <class T, Space S>
std::size_t arrange_left_balanced_scratch_bytes(const KdTreeShape& shape) {
  const auto points = static_cast<std::size_t>(shape.all_points());
  if constexpr (S == Space::kHost) {
    return ScratchSize().add<kd_tree::Candidate<T>>(points).bytes();
  } else {
    using Key = kd_tree::KeyOf<T>;
    return ScratchSize()
        .add<Key>(points)
        .template add<Key>(points)
        .template add<std::uint32_t>(points)
        .template add<std::uint32_t>(points)
        .template add<std::uint32_t>(points)
        .template add<std::byte>(kd_tree::left_balanced_sort_bytes(shape.all_points()))
        .template add<std::uint64_t>(1)
        .template add<KdTreeReport>(1)
        .bytes();
  }
}

}  // namespace cumulus
