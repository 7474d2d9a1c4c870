#pragma once

#include <cstdint>

#include "kernels/summed_area_table/strip_plan.cuh"
#include "kernels/summed_area_table/warp_sums.cuh"

// How the blocks of strip_build.cuh learn what lies to the left of their strips: who sums tells the totals of
// the strip's rows; adders, a warp in each block, each add up kAdderRows rows of a band over all strips, and
// tell each strip what lies left of it; messengers, another warp in each, wait for that. So a block reads
// twice the words that it writes, however many strips there are, and what it learns has been two times under
// way. All this goes through the L2 cache, which is busy with the image and its table: so neighbouring lanes
// tell and read neighbouring words, and ask for them when they are likely there.

namespace cumulus::summed_area_table {

/// Adds up every strips-th group of kAdderRows rows of the image. A lane has two rows of every
/// kStripsAtOnce-th strip.
template <class P>
class Adder {
 public:
  using Total = typename P::Total;
  using Pair = typename StripWords<P>::Pair;

  __device__ Adder(const StripArguments<P>& a, StripMemory<P>& memory)
      : a_(a), memory_(memory), first_strip_(static_cast<std::uint32_t>(lane_index() / kLanes)) {}

  __device__ void run() {
    constexpr int kParts = P::kRows / kAdderRows;
    const std::int64_t parts = std::int64_t{a_.bands} * kParts;
#pragma unroll 1
    for (std::int64_t part = blockIdx.x; part < parts; part += a_.words.strips) {
      const auto band = static_cast<std::uint32_t>(part / kParts);
      const int row = static_cast<int>(part % kParts) * kAdderRows + lane_index() % kLanes * 2;
      // The others are about as far as this block: by then they have told this band's totals, and one reading
      // finds them all.
      const std::uint32_t later = min(band + kAdderPatience, a_.bands - 1);
      memory_.totals_told[later % P::kRing].wait(later / P::kRing);
      Pair totals[kStripsOfLane];
      read(band, row, totals);
      tell(band, row, totals);
    }
  }

 private:
  static constexpr int kLanes = kAdderRows / 2;  // of a strip

  __device__ bool has(int k) const { return first_strip_ + k * kStripsAtOnce < a_.words.strips; }

  __device__ void read(std::uint32_t band, int row, Pair (&totals)[kStripsOfLane]) const {
    const std::uint64_t* from = a_.words.totals(band, first_strip_, row);
    const std::uint32_t tag = a_.words.tag(band);
    TaggedValue<Pair> values[kStripsOfLane];
    std::uint32_t missing = 0;
#pragma unroll
    for (int k = 0; k < kStripsOfLane; ++k) missing |= static_cast<std::uint32_t>(has(k)) << k;
    while (missing != 0) {
#pragma unroll
      for (int k = 0; k < kStripsOfLane; ++k) {
        if ((missing >> k & 1) != 0) values[k].load(from + k * kStripsAtOnce * kAdderRows);
      }
#pragma unroll
      for (int k = 0; k < kStripsOfLane; ++k) {
        if ((missing >> k & 1) != 0 && values[k].has(tag)) missing &= ~(1U << k);
      }
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kStripsOfLane; ++k) totals[k] = has(k) ? values[k].value() : Pair{};
  }

  __device__ void tell(std::uint32_t band, int row, const Pair (&totals)[kStripsOfLane]) const {
    Pair left{};  // of the strips of the k before
#pragma unroll
    for (int k = 0; k < kStripsOfLane; ++k) {
      Pair through = totals[k];
      Pair before{};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int distance = kLanes; distance < 32; distance *= 2) {
          const Total other = __shfl_up_sync(~0u, through.v[i], distance);
          if (lane_index() >= distance) through.v[i] += other;
        }
        const Total other = __shfl_up_sync(~0u, through.v[i], kLanes);
        before.v[i] = left.v[i] + (lane_index() < kLanes ? Total{0} : other);
        left.v[i] += __shfl_sync(~0u, through.v[i], 32 - kLanes + lane_index() % kLanes);
      }
      if (has(k)) {
        a_.words.tell(a_.words.left(band, first_strip_ + k * kStripsAtOnce, row), band, before.v[0],
                      before.v[1]);
      }
    }
  }

  const StripArguments<P>& a_;
  StripMemory<P>& memory_;
  const std::uint32_t first_strip_;
};

/// Waits for what lies left of the strip, band by band, and adds to each row what lies left of the strip in
/// all rows above. A lane has kLaneRows neighbouring rows.
template <class P>
class Messenger {
 public:
  using Sum = typename P::Sum;
  using Pair = typename StripWords<P>::Pair;

  __device__ Messenger(const StripArguments<P>& a, StripMemory<P>& memory) : a_(a), memory_(memory) {}

  __device__ void run() {
    Sum above = 0;
#pragma unroll 1
    for (std::uint32_t band = 0; band < a_.bands; ++band) {
      const std::uint32_t slot = band % P::kRing;
      memory_.totals_told[slot].wait(band / P::kRing);
      Sum sums[kLaneRows];
      read(band, sums);
#pragma unroll
      for (int i = 1; i < kLaneRows; ++i) sums[i] += sums[i - 1];
      const Sum through = warp_inclusive_scan(sums[kLaneRows - 1]);
      const Sum before = above + before_lane(through);
#pragma unroll
      for (int i = 0; i < kLaneRows; ++i) memory_.left[slot][lane_index() * kLaneRows + i] = before + sums[i];
      above += __shfl_sync(~0u, through, 31);
      memory_.left_ready[slot].arrive();
    }
  }

 private:
  static constexpr int kLaneRows = P::kRows / 32;

  __device__ void read(std::uint32_t band, Sum (&sums)[kLaneRows]) const {
    const std::uint64_t* from = a_.words.left(band, blockIdx.x, lane_index() * kLaneRows);
    const std::uint32_t tag = a_.words.tag(band);
    TaggedValue<Pair> values[kLaneRows / 2];
    bool complete = false;
    while (!complete) {
      complete = true;
#pragma unroll
      for (int i = 0; i < kLaneRows / 2; ++i) values[i].load(from + i * 2);
#pragma unroll
      for (int i = 0; i < kLaneRows / 2; ++i) complete = complete && values[i].has(tag);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) sums[i] = values[i / 2].value().v[i % 2];
  }

  const StripArguments<P>& a_;
  StripMemory<P>& memory_;
};

}  // namespace cumulus::summed_area_table
