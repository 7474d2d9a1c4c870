#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/scratch_arena.h"
#include "kernels/kd_tree/kd_tree_query.h"

namespace cumulus {

/// Scratch bytes of find_nearest and of count_within: exact. list_within takes none.
template <Space S>
std::size_t find_neighbors_scratch_bytes(const KdTreeShape& /*shape*/, const NeighborSearch& /*search*/) {
  if constexpr (S == Space::kHost) {
    return 0;
  } else {
    return ScratchSize().add<std::uint64_t>(1).add<NeighborReport>(1).bytes();
  }
}

}  // namespace cumulus
