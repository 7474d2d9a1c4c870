#pragma once

#include <climits>
#include <cstdint>

#include "kernels/bracket_match/match/stack_lookup.cuh"
#include "kernels/bracket_match/match/tile_memory.cuh"
#include "kernels/primitives/warp_scan.cuh"

namespace cumulus::bracket_match {

/// The levels of a tile's stack, which is at level 0 before the tile; levels below are those of the stack
/// that the tile finds. A thread pops from its height down to its bottom, and pushes from there.
class TileLevels {
 public:
  struct alignas(16) Warp {
    std::int32_t change;   // of the height
    std::int32_t least;    // bottom, from the warp's height
    std::int32_t highest;  // open left by a thread, from the warp's height
    std::int32_t unused;
  };
  using Memory = Warp[kTileWarps];

  /// By the whole block, which it synchronizes; each thread with what it pops and pushes.
  __device__ TileLevels(Memory& memory, std::int32_t closes, std::int32_t opens) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const std::int32_t change = opens - closes;
    const std::int32_t through = warp_inclusive_sum(change);
    height_ = through - change;
    bottom_ = height_ - closes;
    const std::int32_t least = warp_inclusive_min(bottom_);
    const std::int32_t highest = warp_max(opens > 0 ? bottom_ + opens : kLowest);
    std::int32_t before = __shfl_up_sync(kFullWarp, least, 1);
    if (lane == 0) before = kHighest;
    later_ = __shfl_down_sync(kFullWarp, warp_suffix_min(bottom_), 1);
    if (lane == 31) {
      later_ = kHighest;
      memory[warp] = {through, least, highest, 0};
    }
    __syncthreads();
    std::int32_t offset = 0;
    std::int32_t warps_before = 0;
    std::int32_t warps_later = kHighest;
    std::int32_t own = 0;
#pragma unroll
    for (int other = 0; other < kTileWarps; ++other) {
      const Warp it = memory[other];
      if (other < warp) warps_before = min(warps_before, offset + it.least);
      if (other > warp) warps_later = min(warps_later, offset + it.least);
      if (other == warp) own = offset;
      least_ = min(least_, offset + it.least);
      highest_ = max(highest_, offset + it.highest);
      if (other == warp) from_warp_ = offset + it.least;
      offset += it.change;
    }
    from_warp_ = min(from_warp_, warps_later);
    final_ = offset;
    height_ += own;
    bottom_ += own;
    before_ = min(warps_before, own + before);
    later_ = min(warps_later, own + later_);
  }

  __device__ std::int32_t height() const { return height_; }
  __device__ std::int32_t bottom() const { return bottom_; }
  /// The least bottom of the threads behind.
  __device__ std::int32_t later() const { return later_; }
  /// The tile's least bottom or 0, and the highest level at which a thread leaves an open.
  __device__ std::int32_t least() const { return least_; }
  __device__ std::int32_t highest() const { return highest_; }
  /// What the threads before do to the stack, and what all do.
  __device__ StackChange<std::int32_t> before() const { return {-before_, height_ - before_}; }
  __device__ StackChange<std::int32_t> total() const { return {-least_, final_ - least_}; }
  /// Of the opens that the tile leaves, those of the warps before.
  __device__ std::int32_t opens_before_warp() const { return from_warp_ - least_; }

 private:
  static constexpr std::int32_t kLowest = INT_MIN / 4;  // and no overflow below or above
  static constexpr std::int32_t kHighest = INT_MAX / 4;

  std::int32_t height_;
  std::int32_t bottom_;
  std::int32_t before_;
  std::int32_t later_;
  std::int32_t least_ = 0;
  std::int32_t highest_ = kLowest;
  std::int32_t from_warp_ = 0;
  std::int32_t final_;
};

}  // namespace cumulus::bracket_match
