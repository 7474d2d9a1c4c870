#pragma once

#include <cstdint>

#include "kernels/primitives/await_all.cuh"
#include "kernels/primitives/status_word.cuh"

// A scan over the blocks of a kernel: every block publishes its aggregates, scanners read those of all
// blocks and publish each block's exclusive prefixes, its carries, for which the block waits. A carry is two
// hops through the L2 cache away, however many blocks there are. A scanner is a warp or a whole block, whose
// threads have some neighbouring blocks each. Two lines are scanned together: their sums share an access.
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

/// Of one thread of a scanner: the aggregates of kCount neighbouring blocks. `exists(k)`: whether there is
/// its block number k; `at(k)`: where that block's words are.
template <class Sum, int kCount>
class BlocksOfThread {
 public:
  /// Waits for the aggregates. By whole warps.
  template <class Exists, class At>
  __device__ BlocksOfThread(std::uint32_t tag, const Exists& exists, const At& at) {
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

  /// Of line 0 or 1, over the thread's blocks.
  __device__ Sum sum(int line) const {
    Sum sum = 0;
#pragma unroll
    for (const LinePair<Sum>& aggregate : aggregates_) sum += aggregate.v[line];
    return sum;
  }

  /// `carry`: the sums over the blocks of all threads before.
  template <class Exists, class At>
  __device__ void publish_carries(std::uint32_t tag, LinePair<Sum> carry, const Exists& exists,
                                  const At& at) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if (exists(k)) TaggedValue<LinePair<Sum>>(tag, carry).store(at(k));
#pragma unroll
      for (int line = 0; line < 2; ++line) carry.v[line] += aggregates_[k].v[line];
    }
  }

 private:
  LinePair<Sum> aggregates_[kCount];
};

}  // namespace cumulus
