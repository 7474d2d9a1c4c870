#pragma once

namespace cumulus {

/// For shuffles and votes that every lane of a warp takes part in.
inline constexpr unsigned int kFullWarp = ~0u;

/// In blocks of one dimension.
__device__ inline int lane_index() { return static_cast<int>(threadIdx.x % 32); }
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x / 32); }

}  // namespace cumulus
