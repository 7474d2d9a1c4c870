#pragma once

#include <cstdint>

#include "kernels/bracket_match/stack_lookup.cuh"

namespace cumulus::bracket_match {

/// Levels of the stack for which a tile keeps masks; tiles that spread over more search a tree.
inline constexpr int kMaskedLevels = 256;

/// Which threads push at which level, so that each close finds its open by itself.
struct LevelMasks {
  uint4 threads[kMaskedLevels];
  static_assert(kTileWarps == 4, "a word for each warp");

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kMaskedLevels / kTileThreads; ++i)
      threads[i * kTileThreads + threadIdx.x] = {0, 0, 0, 0};
  }
  /// The thread pushes at the `count` levels above `bottom`.
  __device__ void add(std::int32_t bottom, int count) {
    const std::uint32_t lane = 1u << (threadIdx.x % 32);
#pragma unroll 1
    for (std::int32_t level = bottom + 1; level <= bottom + count; ++level)
      atomicOr(words(level) + threadIdx.x / 32, lane);
  }
  /// The last thread before `thread` that has pushed at `level`; there must be one.
  __device__ int last_at(std::int32_t level, int thread) {
    const std::uint32_t* masks = words(level);
    int warp = thread / 32;
    std::uint32_t mask = masks[warp] & ((1u << (thread % 32)) - 1);
    while (mask == 0) mask = masks[--warp];
    return warp * 32 + highest_bit(mask);
  }

 private:
  __device__ std::uint32_t* words(std::int32_t level) {
    return &threads[static_cast<unsigned int>(level) % kMaskedLevels].x;
  }
};

}  // namespace cumulus::bracket_match
