#pragma once

#include "kernels/sampling_table/rows/register_blocked/guide.cuh"
#include "kernels/sampling_table/rows/register_blocked/trees.cuh"

// One distribution by one block whose threads have 16 neighbouring cells each, in registers: for rows of a
// multiple of 16 cells, up to 16384, and guides of a multiple of 32. The bytes are those of
// rows/block/; what differs is how often a cell is touched. Scans cost a sixteenth of their
// steps; a cell is converted and bounded once; a guide cell's entry follows from its first cell and the next
// one's. Only where a guide cell has more than few cells, each of its nodes is searched for.

namespace cumulus::sampling_table {

/// integer_weight by one conversion: the products are exact wherever they are 1 or more.
struct WeightScale {
  float before;  ///< For rows so dim that the scale would be infinite.
  float scale;

  __device__ explicit WeightScale(std::uint32_t exponent) {
    const bool dim = exponent < kMinExponent;
    before = dim ? 0x1p64F : 1.0F;
    scale = __uint_as_float((127 + 174 - exponent - (dim ? 64 : 0)) << 23);
  }
  __device__ bool is_dim() const { return before > 1.0F; }
  /// Of a weight already multiplied by `before`; with kPositive it is known not to be 0.
  template <bool kPositive>
  __device__ std::uint64_t integer(std::uint32_t bits) const {
    const float scaled = __uint_as_float(bits) * scale;
    return __float2ull_rz(kPositive || bits > 0 ? fmaxf(scaled, 1.0F) : scaled);
  }

 private:
  static constexpr std::uint32_t kMinExponent = 47;
};

/// BoundScale. That the product exceeds the share takes more than its rounding, since the share has 32 bits.
struct FastBoundScale {
  std::uint32_t positive;
  double factor;

  __device__ explicit FastBoundScale(const Tally& all)
      : positive(all.positive),
        factor(all.sum > 0 ? static_cast<double>(sampling::kEmptyTail - all.positive) /
                                 static_cast<double>(static_cast<std::int64_t>(all.sum))
                           : 0.0) {}
  /// Of a cell that one with mass follows, or that has mass.
  __device__ std::uint32_t before_mass(std::uint64_t sum, std::uint32_t positive_before) const {
    const double exact = static_cast<double>(static_cast<std::int64_t>(sum)) * factor;
    // Rounded down to units, which are the lower half of a double of this size.
    return positive_before + static_cast<std::uint32_t>(__double2loint(__dadd_rd(exact, 0x1p52)));
  }
  __device__ std::uint32_t operator()(std::uint64_t sum, std::uint32_t positive_before) const {
    return positive_before == positive ? sampling::kEmptyTail : before_mass(sum, positive_before);
  }
};

/// The range of a block's weights, before it sums them.
struct WeightsRange {
  std::uint32_t exponent;  ///< Of the largest.
  bool all_positive;
};

/// Of the block's largest and smallest weights, to every thread. Of a thread without cells `smallest` is ~0.
template <int kThreads>
__device__ WeightsRange range_of_block(std::uint32_t largest, std::uint32_t smallest) {
  constexpr unsigned kWarps = kThreads / 32;
  __shared__ std::uint32_t largest_of[kWarps];
  __shared__ std::uint32_t smallest_of[kWarps];
  const unsigned lane = threadIdx.x % 32;
  largest = largest_of_warp(largest);
  smallest = ~largest_of_warp(~smallest);
  if (lane == 0) {
    largest_of[threadIdx.x / 32] = largest;
    smallest_of[threadIdx.x / 32] = smallest;
  }
  __syncthreads();
  return {weight_exponent(largest_of_warp(lane < kWarps ? largest_of[lane] : 0)),
          ~largest_of_warp(lane < kWarps ? ~smallest_of[lane] : 0) > 0};
}

/// The tallies before a thread's cells, and of all. Where all are positive only sums are added up. The block
/// meets here.
template <int kThreads>
__device__ WarpTallies scan_tallies(const Tally& own, bool all_positive, std::uint32_t count) {
  constexpr unsigned kWarps = kThreads / 32;
  __shared__ std::uint64_t sums[kWarps];
  __shared__ std::uint32_t numbers[kWarps];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const std::uint64_t sum = warp_inclusive_sum(own.sum);
  std::uint32_t number = 0;
  if (!all_positive) number = warp_inclusive_sum(own.positive);
  if (lane == 31) {
    sums[warp] = sum;
    numbers[warp] = number;
  }
  __syncthreads();
  const std::uint64_t through = warp_inclusive_sum<kWarps>(lane < kWarps ? sums[lane] : std::uint64_t{0});
  const std::uint64_t warps_sum = __shfl_sync(kFullWarp, through, (warp + 31) % 32);
  WarpTallies tallies{{(warp > 0 ? warps_sum : 0) + sum - own.sum, threadIdx.x * kThreadCells},
                      {__shfl_sync(kFullWarp, through, kWarps - 1), count}};
  if (!all_positive) {
    const std::uint32_t numbered =
        warp_inclusive_sum<kWarps>(lane < kWarps ? numbers[lane] : std::uint32_t{0});
    const std::uint32_t warps_number = __shfl_sync(kFullWarp, numbered, (warp + 31) % 32);
    tallies.before.positive = (warp > 0 ? warps_number : 0) + number - own.positive;
    tallies.all.positive = __shfl_sync(kFullWarp, numbered, kWarps - 1);
  }
  return tallies;
}

/// A thread's cells. Where it is known that all have mass, it takes a third less to weigh them and to find
/// their bounds.
struct ThreadCells {
  std::uint64_t weights[kThreadCells];
  Tally tally;

  __device__ void weigh(WeightScale scale, bool all_positive, std::uint32_t (&bits)[kThreadCells]) {
    if (scale.is_dim()) {
#pragma unroll
      for (std::uint32_t& word : bits) word = __float_as_uint(__uint_as_float(word) * scale.before);
    }
    if (all_positive) {
      weigh<true>(scale, bits);
    } else {
      weigh<false>(scale, bits);
    }
  }
  __device__ void add_up() {
#pragma unroll
    for (const std::uint64_t weight : weights) tally.add(weight);
  }

  /// `before` is the tally of the cells before. Returns the bound after the last.
  __device__ std::uint32_t find_bounds(const FastBoundScale& scale, bool all_positive, const Tally& before,
                                       std::uint32_t (&bounds)[kThreadCells]) const {
    return all_positive ? find_bounds<true>(scale, before, bounds)
                        : find_bounds<false>(scale, before, bounds);
  }

 private:
  template <bool kPositive>
  __device__ void weigh(const WeightScale& scale, const std::uint32_t (&bits)[kThreadCells]) {
#pragma unroll
    for (std::uint32_t k = 0; k < kThreadCells; ++k) {
      weights[k] = scale.integer<kPositive>(bits[k]);
      tally.sum += weights[k];
      if constexpr (!kPositive) tally.positive += weights[k] > 0 ? 1 : 0;
    }
    if constexpr (kPositive) tally.positive = kThreadCells;
  }

  template <bool kPositive>
  __device__ std::uint32_t find_bounds(const FastBoundScale& scale, Tally before,
                                       std::uint32_t (&bounds)[kThreadCells]) const {
#pragma unroll
    for (std::uint32_t k = 0; k < kThreadCells; ++k) {
      bounds[k] =
          kPositive ? scale.before_mass(before.sum, before.positive) : scale(before.sum, before.positive);
      before.sum += weights[k];
      before.positive += kPositive || weights[k] > 0 ? 1 : 0;
    }
    return scale(before.sum, before.positive);
  }
};

/// Nothing but zeros, which most nodes are.
template <int kThreads>
__device__ void clear_nodes(const Target& target) {
  auto* const nodes = reinterpret_cast<uint4*>(target.nodes);
#pragma unroll
  for (std::uint32_t q = 0; q < kThreadCells / kQuad; ++q) {
    const std::uint32_t quad = q * kThreads + threadIdx.x;
    if (quad * kQuad < target.count) __stcs(nodes + quad, make_uint4(0, 0, 0, 0));
  }
}

/// The block turns its threads' cells into lower bounds, guide and trees. The shared memory must be clear,
/// and the block have met since. Every thread calls `on_total` with the tally of all as soon as it is known.
template <int kThreads, RowLookup kLookup, class OnTotal>
__device__ void build_register_blocked(const Target& target,
                                       const RegisterBlockedMemory<kThreads, kLookup>& memory,
                                       const ThreadCells& own, bool all_positive, const OnTotal& on_total) {
  const WarpTallies tallies = scan_tallies<kThreads>(own.tally, all_positive, target.count);
  on_total(tallies.all);
  const std::uint32_t first = threadIdx.x * kThreadCells;
  std::uint32_t bounds[kThreadCells];
  const std::uint32_t after =
      own.find_bounds(FastBoundScale(tallies.all), all_positive, tallies.before, bounds);
  store_words(memory.lower(), bounds, threadIdx.x / 32 * kWarpCells, target.count, target.lower);
  if constexpr (kLookup != RowLookup::kNone) {
    if (first < target.count) note_thread_cells(memory.slots(), target.guide_size, first, bounds, after);
    __syncthreads();
    const bool any_crowded = write_register_blocked_guide<kThreads, kLookup>(
        target, memory, tallies.all.positive > 0 ? target.count - 1 : 0);
    if constexpr (kLookup == RowLookup::kTrees) {
      if (__syncthreads_or(any_crowded ? 1 : 0) != 0) RegisterBlockedTrees<kThreads>(target, memory).write();
    }
  }
}

}  // namespace cumulus::sampling_table
