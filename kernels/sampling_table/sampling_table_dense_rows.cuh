#pragma once

#include "kernels/sampling_table/sampling_table_dense_lookup.cuh"

// One distribution by one block whose threads have 16 neighbouring cells each, in registers: for rows of a
// multiple of 16 cells, up to 16384, and guides of a multiple of 32. The bytes are those of
// sampling_table_rows.cuh; what differs is how often a cell is touched. Scans cost a sixteenth of their
// steps; a cell is converted, bounded and keyed once; nodes that have at most two others of their tree below
// them on each side, which most have, follow from masks of a thread's sixteen edges, and only the others are
// searched for.

namespace cumulus::sampling_rows {

/// integer_weight by one conversion: the products are exact wherever they are 1 or more.
struct WeightScale {
  float before;  ///< For rows so dim that the scale would be infinite.
  float scale;

  __device__ explicit WeightScale(std::uint32_t exponent) {
    const bool dim = exponent < kLeastExponent;
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
  static constexpr std::uint32_t kLeastExponent = 47;
};

/// BoundScale. That the product exceeds the share takes more than its rounding, since the share has 32 bits.
struct DenseBounds {
  std::uint32_t positive;
  double factor;

  __device__ explicit DenseBounds(const Tally& all)
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

/// The tallies before a thread's cells, and of all. The block meets here.
template <int kThreads>
__device__ WarpTallies scan_tallies(const Tally& own) {
  constexpr unsigned kWarps = kThreads / 32;
  __shared__ std::uint64_t sums[kWarps];
  __shared__ std::uint32_t numbers[kWarps];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const std::uint64_t sum = warp_prefix_sum(own.sum);
  const std::uint32_t number = warp_prefix_sum(own.positive);
  if (lane == 31) {
    sums[warp] = sum;
    numbers[warp] = number;
  }
  __syncthreads();
  const std::uint64_t through = warp_prefix_sum<kWarps>(lane < kWarps ? sums[lane] : std::uint64_t{0});
  const std::uint32_t numbered = warp_prefix_sum<kWarps>(lane < kWarps ? numbers[lane] : std::uint32_t{0});
  const std::uint64_t warps_sum = __shfl_sync(kWholeWarp, through, (warp + 31) % 32);
  const std::uint32_t warps_number = __shfl_sync(kWholeWarp, numbered, (warp + 31) % 32);
  return {{(warp > 0 ? warps_sum : 0) + sum - own.sum, (warp > 0 ? warps_number : 0) + number - own.positive},
          {__shfl_sync(kWholeWarp, through, kWarps - 1), __shfl_sync(kWholeWarp, numbered, kWarps - 1)}};
}

/// A thread's cells.
struct OwnCells {
  std::uint64_t weights[kOwn];
  Tally tally;

  __device__ void weigh(WeightScale scale, std::uint32_t (&bits)[kOwn]) {
    std::uint32_t least = ~0u;
#pragma unroll
    for (std::uint32_t& word : bits) {
      if (scale.is_dim()) word = __float_as_uint(__uint_as_float(word) * scale.before);
      least = min(least, word);
    }
    if (least > 0) {
      weigh<true>(scale, bits);
    } else {
      weigh<false>(scale, bits);
    }
  }
  __device__ void add_up() {
#pragma unroll
    for (const std::uint64_t weight : weights) tally.add(weight);
  }

  /// `before` is the tally of the cells before.
  __device__ void find_bounds(const DenseBounds& scale, const Tally& before,
                              std::uint32_t (&bounds)[kOwn]) const {
    if (tally.positive == kOwn) {
      find_bounds<true>(scale, before, bounds);
    } else {
      find_bounds<false>(scale, before, bounds);
    }
  }

 private:
  // Where it is known that all cells have mass, it takes a third less to find their bounds.

  template <bool kPositive>
  __device__ void weigh(const WeightScale& scale, const std::uint32_t (&bits)[kOwn]) {
#pragma unroll
    for (std::uint32_t k = 0; k < kOwn; ++k) {
      weights[k] = scale.integer<kPositive>(bits[k]);
      tally.sum += weights[k];
      if constexpr (!kPositive) tally.positive += weights[k] > 0 ? 1 : 0;
    }
    if constexpr (kPositive) tally.positive = kOwn;
  }

  template <bool kPositive>
  __device__ void find_bounds(const DenseBounds& scale, Tally before, std::uint32_t (&bounds)[kOwn]) const {
#pragma unroll
    for (std::uint32_t k = 0; k < kOwn; ++k) {
      bounds[k] =
          kPositive ? scale.before_mass(before.sum, before.positive) : scale(before.sum, before.positive);
      before.sum += weights[k];
      before.positive += kPositive || weights[k] > 0 ? 1 : 0;
    }
  }
};

/// The block turns its threads' cells into lower bounds, guide and trees. Slots must be clear, and the block
/// have met since. Every thread calls `know_all` with the tally of all as soon as it is known.
template <int kThreads, DenseLookup kLookup, class KnowAll>
__device__ void build_dense(const Target& target, const DenseOnChip<kThreads>& dense, const OwnCells& own,
                            const KnowAll& know_all) {
  const OnChip& chip = dense.chip;
  const WarpTallies tallies = scan_tallies<kThreads>(own.tally);
  know_all(tallies.all);
  const DenseBounds scale(tallies.all);
  std::uint32_t bounds[kOwn];
  own.find_bounds(scale, tallies.before, bounds);
  constexpr bool kTrees = kLookup == DenseLookup::kTrees;
  const std::uint32_t first = threadIdx.x * kOwn;
  if (kLookup == DenseLookup::kCutpoints && first < target.count) {
    const Tally behind = tallies.before + own.tally;
    note_own(chip, target.guide_size, first, bounds, scale(behind.sum, behind.positive));
  }
  store_words(chip.cells, bounds, 0, target.count, target.lower);
  if constexpr (kTrees) {
    const bool store = target.method == Method::kRadixForest;
    __syncthreads();
    write_small_trees<kThreads>(target, dense, bounds, store);
    __syncthreads();
    write_large_trees<kThreads>(target, dense, store);
  }
  if constexpr (kLookup != DenseLookup::kNone) {
    __syncthreads();
    write_dense_guide<kThreads, kTrees>(target, chip);
  }
}

}  // namespace cumulus::sampling_rows
