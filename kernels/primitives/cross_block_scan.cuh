#pragma once

#include <cstdint>

#include "kernels/primitives/await_all.cuh"
#include "kernels/primitives/status_word.cuh"
#include "kernels/primitives/warp_scan.cuh"

// A scan over the blocks of a kernel: every block publishes its aggregates, scanners read those of all
// blocks and publish each block's exclusive prefixes, its carries, for which the block waits. A carry is two
// hops through the L2 cache away, however many blocks there are. A scanner is a warp, whose lanes have two
// lines of some neighbouring blocks each: their sums share an access.
//
// Why it makes progress: all blocks are resident (a cooperative launch), a block publishes its aggregates
// before it waits for its carries, and scanners wait for aggregates alone.
// Why nothing is overwritten while it is read: an aggregate has one reader, a thread of a scanner, and a
// carry one, its block. A carry may take its aggregate's place, with another tag, as the thread that stores
// it has read the aggregate. Who uses places for several rounds says why they have been read by then.

namespace cumulus {

/// Sums of two neighbouring lines of a block.
template <class Sum>
struct LinePair {
  Sum v[2];
};

/// Of one lane of a scanner: the aggregates of two lines of kCount neighbouring blocks. The first kLanes
/// lanes have the first blocks' lines, the next kLanes those of the blocks after them, and so on.
/// `exists(k)`: whether there is the lane's block number k; `at(k)`: where that block's words are.
template <class Sum, int kCount, int kLanes>
class BlocksOfLane {
 public:
  /// Waits for the aggregates. By whole warps.
  template <class Exists, class At>
  __device__ BlocksOfLane(std::uint32_t tag, const Exists& exists, const At& at) {
    TaggedValue<LinePair<Sum>> words[kCount];
    std::uint32_t missing = 0;
#pragma unroll
    for (int k = 0; k < kCount; ++k) missing |= static_cast<std::uint32_t>(exists(k)) << k;
    await_missing<kCount>(
        missing, [&](int k) { words[k].load(at(k)); }, [&](int k) { return words[k].has(tag); });
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kCount; ++k) aggregates_[k] = exists(k) ? words[k].value() : LinePair<Sum>{};
  }

  /// By whole warps.
  template <class Exists, class At>
  __device__ void publish_carries(std::uint32_t tag, const Exists& exists, const At& at) const {
    LinePair<Sum> carry = before_lane();
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if (exists(k)) TaggedValue<LinePair<Sum>>(tag, carry).store(at(k));
#pragma unroll
      for (int line = 0; line < 2; ++line) carry.v[line] += aggregates_[k].v[line];
    }
  }

 private:
  /// Of line 0 or 1, over the lane's blocks.
  __device__ Sum sum(int line) const {
    Sum sum = 0;
#pragma unroll
    for (const LinePair<Sum>& aggregate : aggregates_) sum += aggregate.v[line];
    return sum;
  }

  /// The sums over the blocks of all lanes before that have the same lines.
  __device__ LinePair<Sum> before_lane() const {
    LinePair<Sum> before{};
#pragma unroll
    for (int line = 0; line < 2; ++line) {
      Sum through = sum(line);
#pragma unroll
      for (int distance = kLanes; distance < 32; distance *= 2) {
        const Sum other = __shfl_up_sync(kFullWarp, through, distance);
        if (lane_index() >= distance) through += other;
      }
      const Sum left = __shfl_up_sync(kFullWarp, through, kLanes);
      if (lane_index() >= kLanes) before.v[line] = left;
    }
    return before;
  }

  LinePair<Sum> aggregates_[kCount];
};

}  // namespace cumulus
