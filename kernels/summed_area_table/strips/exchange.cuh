#pragma once

#include <cstdint>

#include "kernels/primitives/await_all.cuh"
#include "kernels/primitives/cross_block_scan.cuh"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/summed_area_table/strips/traits.cuh"

// Carries between the blocks of strips/build.cuh, one per row of the image and strip. Compute warps publish
// the row totals of their strip (aggregates). Carry scanners, a warp in each block, each scan kScannerRows
// rows of a band over all strips and publish the exclusive prefixes (carries). Carry loaders, other warps of
// each block, wait for these. A carry is two hops through the L2 cache away, however many strips there are,
// and a block reads twice the words that it writes. The L2 cache is busy with the image and its table at the
// same time: so neighbouring lanes write and read neighbouring words, and poll only when the words have
// likely come. The two blocks of one strip send each other their sums by column through distributed shared
// memory.

namespace cumulus::summed_area_table {

/// Scans kScannerRows rows of a band over all strips, then of the next band that is its block's. A lane has
/// two rows of neighbouring strips.
template <class P>
class CarryScanner {
 public:
  using Total = typename P::Total;

  __device__ CarryScanner(const StripArguments<P>& a, StripMemory<P>& memory)
      : a_(a),
        memory_(memory),
        first_strip_(static_cast<std::uint32_t>(lane_index() / kLanes) * a.words.lane_strips) {}

  __device__ void run() {
    constexpr int kParts = P::kRows / kScannerRows;
    const std::int64_t parts = std::int64_t{a_.bands} * kParts;
#pragma unroll 1
    for (std::int64_t part = blockIdx.x; part < parts; part += gridDim.x) {
      const auto band = static_cast<std::uint32_t>(part / kParts);
      const int row = static_cast<int>(part % kParts) * kScannerRows + lane_index() % kLanes * 2;
      // The other blocks are about as far as this one: kScannerPollDelay bands later they have published this
      // band's totals, and one poll finds them all.
      if (a_.steps() > 0)
        memory_.wait_for_totals(min(band / P::kBlocksPerStrip + kScannerPollDelay, a_.steps() - 1));
      scan(band, row);
    }
  }

 private:
  static constexpr int kLanes = kScannerRows / 2;  // of a strip
  using Totals = BlocksOfLane<Total, P::kLaneStrips, kLanes>;

  __device__ bool has(int k) const {
    const auto strip = static_cast<std::uint32_t>(k);
    return strip < a_.words.lane_strips && first_strip_ + strip < a_.words.strips;
  }

  __device__ void scan(std::uint32_t band, int row) const {
    const std::uint64_t* from = a_.words.totals(band, static_cast<std::uint32_t>(lane_index() / kLanes), row);
    const auto exists = [&](int k) { return has(k); };
    const Totals totals(a_.words.tag(band), exists,
                        [&](int k) { return from + k * kStripsAtOnce * kScannerRows; });
    totals.publish_carries(a_.words.tag(band), exists, [&](int k) {
      return a_.words.left(band, first_strip_ + static_cast<std::uint32_t>(k), row);
    });
  }

  const StripArguments<P>& a_;
  StripMemory<P>& memory_;
  const std::uint32_t first_strip_;
};

/// Takes every kCarryLoaders-th of the block's bands: scans the warps' sums by column, waits for the carries
/// of the strip's rows, and scans these over the band's rows, of which a lane has kLaneRows neighbours. Sends
/// the other block of the strip its part.
template <class P>
class CarryLoader {
 public:
  using Sum = typename P::Sum;
  using Pair = typename StripWords<P>::Pair;

  __device__ CarryLoader(const StripArguments<P>& a, StripMemory<P>& memory) : a_(a), memory_(memory) {}

  __device__ void run(std::uint32_t first_step) {
#pragma unroll 1
    for (std::uint32_t step = first_step; step < a_.steps(); step += P::kCarryLoaders) {
      if (a_.other_is_before(step) && lane_index() == 0) {
        constexpr int kBytes = (P::kColumns + 1) * static_cast<int>(sizeof(Sum));
        memory_.from_other[a_.others_step(step) % P::kOtherRing].arrive_expect_bytes(kBytes);
      }
      memory_.wait_for_totals(step);
      add_columns(step);
      memory_.wait_for_totals(min(step + P::kPollDelay, a_.steps() - 1));
      Sum left[kLaneRows];
      read(a_.band(step), left);
      add_rows(step, left);
      memory_.left_ready[step % P::kRing].arrive();
    }
  }

 private:
  static constexpr int kLaneRows = P::kRows / 32;
  static constexpr int kLaneColumns = P::kColumns / 32;

  __device__ void add_columns(std::uint32_t step) const {
    auto& columns = memory_.columns[step % P::kRing];
#pragma unroll
    for (int i = 0; i < kLaneColumns; ++i) {
      const int column = i * 32 + lane_index();
      Sum of_warps[P::kWarps];
#pragma unroll
      for (int warp = 0; warp < P::kWarps; ++warp) of_warps[warp] = columns[warp][column];
      Sum above = 0;
#pragma unroll
      for (int warp = 0; warp < P::kWarps; ++warp) {
        columns[warp][column] = above;
        above += of_warps[warp];
      }
      columns[P::kWarps][column] = above;
      send(step, memory_.other_columns[step % P::kOtherRing][column], above);
    }
  }

  __device__ void read(std::uint32_t band, Sum (&left)[kLaneRows]) const {
    const std::uint64_t* from = a_.words.left(band, a_.strip(), lane_index() * kLaneRows);
    const std::uint32_t tag = a_.words.tag(band);
    TaggedValue<Pair> values[kLaneRows / 2];
    await_all<kLaneRows / 2>([&](int i) { values[i].load(from + i * 2); },
                             [&](int i) { return values[i].has(tag); });
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) left[i] = values[i / 2].value().v[i % 2];
  }

  __device__ void add_rows(std::uint32_t step, Sum (&left)[kLaneRows]) const {
#pragma unroll
    for (int i = 1; i < kLaneRows; ++i) left[i] += left[i - 1];
    const Sum through = warp_inclusive_sum(left[kLaneRows - 1]);
    if (lane_index() == 31) send(step, memory_.other_left[step % P::kOtherRing], through);
    const Sum before = before_lane(through);
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      memory_.left[step % P::kRing][lane_index() * kLaneRows + i] = before + left[i];
    }
  }

  /// Puts a sum of the step's band where the other block's memory has what this one's has at `place`, if that
  /// takes the band after.
  __device__ void send(std::uint32_t step, const Sum& place, Sum sum) const {
    if constexpr (P::kBlocksPerStrip > 1) {
      if (!a_.other_is_after(step)) return;
      const std::uint32_t other = 1 - a_.turn();
      memory_.from_other[step % P::kOtherRing].send(other, place, sum);
    }
  }

  const StripArguments<P>& a_;
  StripMemory<P>& memory_;
};

}  // namespace cumulus::summed_area_table
