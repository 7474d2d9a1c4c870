#pragma once

#include <cstdint>

#include "kernels/summed_area_table/strip_plan.cuh"
#include "kernels/summed_area_table/warp_sums.cuh"

// How the blocks of strip_build.cuh learn what lies to the left of their strips: who sums tells the totals of
// the strip's rows; adders, a warp in each block, each add up kAdderRows rows of a band over all strips, and
// tell each strip what lies left of it; messengers wait for that. So a block reads twice the words that it
// writes, however many strips there are, and what it learns has been two times under way.

namespace cumulus::summed_area_table {

/// Adds up every strips-th group of kAdderRows rows of the image. A pair of lanes has two rows each of every
/// kPairs-th strip: the warp reads neighbouring words, since what it reads again and again while it waits
/// goes the same way as the table.
template <class P>
class Adder {
 public:
  using Total = typename P::Total;
  using Pair = typename StripWords<P>::Pair;

  __device__ Adder(const StripArguments<P>& a, StripMemory<P>& memory)
      : a_(a), memory_(memory), first_strip_(static_cast<std::uint32_t>(lane_index() / 2)) {}

  __device__ void run() {
    constexpr int kParts = P::kRows / kAdderRows;
    const std::int64_t parts = std::int64_t{a_.bands} * kParts;
#pragma unroll 1
    for (std::int64_t part = blockIdx.x; part < parts; part += a_.words.strips) {
      const auto band = static_cast<std::uint32_t>(part / kParts);
      const int row = static_cast<int>(part % kParts) * kAdderRows + lane_index() % 2 * 2;
      // The others are about as far as this block: by then they have told this band's totals, and one reading
      // finds them all.
      const std::uint32_t later = min(band + kAdderPatience, a_.bands - 1);
      memory_.totals_told[later % P::kRing].wait(later / P::kRing);
      Pair totals[kStripsOfPair];
      read(band, row, totals);
      tell(band, row, totals);
    }
  }

 private:
  static constexpr std::uint32_t kPairs = 16;

  __device__ bool has(int k) const { return first_strip_ + k * kPairs < a_.words.strips; }

  __device__ void read(std::uint32_t band, int row, Pair (&totals)[kStripsOfPair]) const {
    const std::uint64_t* from = a_.words.totals(band, first_strip_, row);
    const std::uint32_t tag = a_.words.tag(band);
    TaggedValue<Pair> values[kStripsOfPair];
    std::uint32_t missing = 0;
#pragma unroll
    for (int k = 0; k < kStripsOfPair; ++k) missing |= static_cast<std::uint32_t>(has(k)) << k;
    while (missing != 0) {
#pragma unroll
      for (int k = 0; k < kStripsOfPair; ++k) {
        if ((missing >> k & 1) != 0) values[k].load(from + k * kPairs * kAdderRows);
      }
#pragma unroll
      for (int k = 0; k < kStripsOfPair; ++k) {
        if ((missing >> k & 1) != 0 && values[k].has(tag)) missing &= ~(1U << k);
      }
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kStripsOfPair; ++k) totals[k] = has(k) ? values[k].value() : Pair{};
  }

  __device__ void tell(std::uint32_t band, int row, const Pair (&totals)[kStripsOfPair]) const {
    Pair left{};  // of the strips of the k before
#pragma unroll
    for (int k = 0; k < kStripsOfPair; ++k) {
      Pair through = totals[k];
      Pair before{};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int distance = 2; distance < 32; distance *= 2) {
          const Total other = __shfl_up_sync(~0u, through.v[i], distance);
          if (lane_index() >= distance) through.v[i] += other;
        }
        const Total other = __shfl_up_sync(~0u, through.v[i], 2);
        before.v[i] = left.v[i] + (lane_index() < 2 ? Total{0} : other);
        left.v[i] += __shfl_sync(~0u, through.v[i], 30 + lane_index() % 2);
      }
      if (has(k)) {
        a_.words.tell(a_.words.left(band, first_strip_ + k * kPairs, row), band, before.v[0], before.v[1]);
      }
    }
  }

  const StripArguments<P>& a_;
  StripMemory<P>& memory_;
  const std::uint32_t first_strip_;
};

/// Waits for what lies left of the strip, every kMessengers-th band, and adds to each row what lies left of
/// the strip in all rows above.
template <class P>
class Messenger {
 public:
  using Sum = typename P::Sum;
  using Pair = typename StripWords<P>::Pair;

  __device__ Messenger(const StripArguments<P>& a, StripMemory<P>& memory) : a_(a), memory_(memory) {}

  __device__ void run(std::uint32_t first) {
#pragma unroll 1
    for (std::uint32_t band = first; band < a_.bands; band += P::kMessengers) {
      const std::uint32_t slot = band % P::kRing;
      memory_.totals_told[slot].wait(band / P::kRing);
      Sum sums[P::kLaneRows];
      read(band, sums);
#pragma unroll
      for (int i = 1; i < P::kLaneRows; ++i) sums[i] += sums[i - 1];
      const Sum through = warp_inclusive_scan(sums[P::kLaneRows - 1]);
      Sum above = 0;
      if (band > 0) {
        memory_.above_ready[(band - 1) % P::kRing].wait((band - 1) / P::kRing);
        above = memory_.above[(band - 1) % P::kRing];
      }
      const Sum before = above + before_lane(through);
#pragma unroll
      for (int i = 0; i < P::kLaneRows; ++i)
        if (has_rows()) memory_.left[slot][lane_index() * P::kLaneRows + i] = before + sums[i];
      if (lane_index() == 31) memory_.above[slot] = above + through;
      memory_.above_ready[slot].arrive();
      memory_.left_ready[slot].arrive();
    }
  }

 private:
  static __device__ bool has_rows() { return lane_index() < P::kRowsLanes; }

  __device__ void read(std::uint32_t band, Sum (&sums)[P::kLaneRows]) const {
    const std::uint64_t* from = a_.words.left(band, blockIdx.x, lane_index() * P::kLaneRows);
    const std::uint32_t tag = a_.words.tag(band);
    TaggedValue<Pair> values[P::kLaneRows / 2] = {};
    bool complete = !has_rows();
    while (!complete) {
      complete = true;
#pragma unroll
      for (int i = 0; i < P::kLaneRows / 2; ++i) values[i].load(from + i * 2);
#pragma unroll
      for (int i = 0; i < P::kLaneRows / 2; ++i) complete = complete && values[i].has(tag);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < P::kLaneRows; ++i) sums[i] = values[i / 2].value().v[i % 2];  // 0 of no rows
  }

  const StripArguments<P>& a_;
  StripMemory<P>& memory_;
};

}  // namespace cumulus::summed_area_table
