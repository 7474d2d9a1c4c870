#pragma once

#include <cstdint>

#include "kernels/summed_area_table/strip_plan.cuh"
#include "kernels/summed_area_table/warp_sums.cuh"

// How the blocks of strip_build.cuh learn what lies to the left of their strips: who sums tells the totals of
// the strip's rows; adders, a warp in each block, each add up kAdderRows rows of a band over all strips, and
// tell each strip what lies left of it. So a block reads and writes two words for each row, however many
// strips there are, and what it learns has been two times under way.

namespace cumulus::summed_area_table {

/// Adds up every strips-th group of kAdderRows rows of the image. Lanes work in pairs: two rows each of
/// kStripsOfPair neighbouring strips.
template <class P>
class Adder {
 public:
  using Total = typename P::Total;
  using Pair = typename StripWords<P>::Pair;

  __device__ explicit Adder(const StripArguments<P>& a)
      : a_(a),
        first_strip_(static_cast<std::uint32_t>(lane_index() / 2 * kStripsOfPair)),
        count_(a.words.strips <= first_strip_ ? 0 : static_cast<int>(a.words.strips - first_strip_)) {}

  __device__ void run() {
    constexpr int kParts = P::kRows / kAdderRows;
    const std::int64_t parts = std::int64_t{a_.bands} * kParts;
#pragma unroll 1
    for (std::int64_t part = blockIdx.x; part < parts; part += a_.words.strips) {
      const auto band = static_cast<std::uint32_t>(part / kParts);
      const int row = static_cast<int>(part % kParts) * kAdderRows + lane_index() % 2 * 2;
      await_own(band, row);
      Pair totals[kStripsOfPair];
      read(band, row, totals);
      tell(band, row, totals);
    }
  }

 private:
  /// The other strips are about as far as this one: until then to ask for theirs would be in vain.
  __device__ void await_own(std::uint32_t band, int row) const {
    TaggedValue<Pair> own;
    do {
      own.load(a_.words.totals(band, blockIdx.x, row));
    } while (!own.has(a_.words.tag(band)));
    __syncwarp();
  }

  __device__ void read(std::uint32_t band, int row, Pair (&totals)[kStripsOfPair]) const {
    const std::uint64_t* from = a_.words.totals(band, first_strip_, row);
    const std::uint32_t tag = a_.words.tag(band);
    TaggedValue<Pair> values[kStripsOfPair];
    std::uint32_t missing = 0;
#pragma unroll
    for (int k = 0; k < kStripsOfPair; ++k) missing |= static_cast<std::uint32_t>(k < count_) << k;
    while (missing != 0) {
#pragma unroll
      for (int k = 0; k < kStripsOfPair; ++k) {
        if ((missing >> k & 1) != 0) values[k].load(from + k * kAdderRows);
      }
#pragma unroll
      for (int k = 0; k < kStripsOfPair; ++k) {
        if ((missing >> k & 1) != 0 && values[k].has(tag)) missing &= ~(1U << k);
      }
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kStripsOfPair; ++k) totals[k] = k < count_ ? values[k].value() : Pair{};
  }

  /// Tells each strip the sum of those before it.
  __device__ void tell(std::uint32_t band, int row, Pair (&totals)[kStripsOfPair]) const {
    Pair sum{};
#pragma unroll
    for (Pair& total : totals) {
      const Pair before = sum;
      sum.v[0] += total.v[0];
      sum.v[1] += total.v[1];
      total = before;
    }
#pragma unroll
    for (int distance = 2; distance < 32; distance *= 2) {
#pragma unroll
      for (Total& value : sum.v) {
        const Total before = __shfl_up_sync(~0u, value, distance);
        if (lane_index() >= distance) value += before;
      }
    }
#pragma unroll
    for (Total& value : sum.v) {
      const Total before = __shfl_up_sync(~0u, value, 2);
      value = lane_index() < 2 ? Total{0} : before;
    }
#pragma unroll
    for (int k = 0; k < kStripsOfPair; ++k) {
      if (k < count_) {
        a_.words.tell(a_.words.left(band, first_strip_ + static_cast<std::uint32_t>(k), row), band,
                      sum.v[0] + totals[k].v[0], sum.v[1] + totals[k].v[1]);
      }
    }
  }

  const StripArguments<P>& a_;
  const std::uint32_t first_strip_;
  const int count_;  // strips from there on
};

/// What lies left of the strip in a warp's rows, one row a lane, of a band after the other.
template <class P>
class LeftOfStrip {
 public:
  using Total = typename P::Total;

  __device__ explicit LeftOfStrip(const StripArguments<P>& a) : a_(a) {}

  /// Asks for a band's, which may not have been told yet.
  __device__ void ask(std::uint32_t band) {
    if (band < a_.bands && has_row()) value_.load(at(band));
  }
  /// Waits for what was asked for last. Other lanes than the first kWarpRows get 0.
  __device__ Total get(std::uint32_t band) {
    if (has_row()) {
      while (!value_.has(a_.words.tag(band))) value_.load(at(band));
    }
    __syncwarp();
    return has_row() ? value_.value() : Total{0};
  }

 private:
  static __device__ bool has_row() { return lane_index() < P::kWarpRows; }
  __device__ const std::uint64_t* at(std::uint32_t band) const {
    return a_.words.left(band, blockIdx.x, warp_index() * P::kWarpRows + lane_index());
  }

  const StripArguments<P>& a_;
  TaggedValue<Total> value_;
};

}  // namespace cumulus::summed_area_table
