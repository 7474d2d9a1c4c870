#pragma once

#include <cstdint>

#include "kernels/bracket_match/match/stack_lookup.cuh"

namespace cumulus::bracket_match {

/// Levels of the stack for which a tile keeps masks; tiles that spread over more search a tree.
inline constexpr int kMaskedLevels = 256;

/// Which threads push at which level, so that each close finds its open by itself.
struct LevelMasks {
  alignas(16) std::uint32_t threads[kTileWarps][kMaskedLevels];  // a bit for each

  __device__ void clear() {
    auto* fours = reinterpret_cast<uint4*>(threads);
#pragma unroll
    for (int i = 0; i < kTileWarps * kMaskedLevels / 4 / kTileThreads; ++i)
      fours[i * kTileThreads + threadIdx.x] = {0, 0, 0, 0};
  }
  /// The thread pushes at the `count` levels above `bottom`.
  __device__ void add(std::int32_t bottom, int count) {
    const std::uint32_t lane = 1u << (threadIdx.x % 32);
#pragma unroll 1
    for (std::int32_t level = bottom + 1; level <= bottom + count; ++level)
      atomicOr(&threads[threadIdx.x / 32][place_of(level)], lane);
  }
  /// The last thread before `thread` that has pushed at `level`; there must be one.
  __device__ unsigned int last_at(std::int32_t level, unsigned int thread) {
    const unsigned int place = place_of(level);
    unsigned int warp = thread / 32;
    std::uint32_t mask = threads[warp][place] & ((1u << (thread % 32)) - 1);
    while (mask == 0) mask = threads[--warp][place];
    return warp * 32 + static_cast<unsigned int>(highest_bit(mask));
  }

 private:
  __device__ static unsigned int place_of(std::int32_t level) {
    return static_cast<unsigned int>(level) % kMaskedLevels;
  }
};

}  // namespace cumulus::bracket_match
