#pragma once

#include <cstdint>

#include "kernels/primitives/cross_block_scan.cuh"
#include "kernels/primitives/mbarrier.cuh"
#include "kernels/primitives/status_word.cuh"
#include "kernels/summed_area_table/look_back/traits.cuh"
#include "kernels/summed_area_table/strips/strips.h"
#include "kernels/summed_area_table/tuning.h"

// What the kernel of strips (strips/build.cuh) knows at compile time, its arguments, and its shared memory.

namespace cumulus::summed_area_table {

/// A block goes down a strip of the image, kColumns wide, band by band of kRows rows; or two blocks, a
/// cluster, take the strip's bands alternately.
template <class InputType, class SumType, StripShape kShape>
struct StripTraits {
  using Input = InputType;
  using Sum = SumType;
  using Total = Sum;  // of a row
  static constexpr Layout kLayout = Layout::kOne;
  static constexpr int kChannels = 1;
  static constexpr bool kBytes = sizeof(Input) == 1;
  static_assert(has_strips(kElementPair<Input, Sum>));

  static constexpr int kRowLanes = kShape.row_lanes;
  static constexpr int kColumns = kShape.columns();
  static constexpr int kWarps = kShape.warps;  // that sum
  static constexpr int kCarryLoaders = kShape.carry_loaders;
  static constexpr std::uint32_t kPollDelay = kShape.poll_delay;
  static constexpr int kThreads = 32 * (kWarps + 1 + kCarryLoaders);
  /// Lanes are in groups of kRowLanes, which go through kGroupRows rows together.
  static constexpr int kGroupRows = kShape.group_rows;
  static constexpr int kRows = kShape.rows();
  static constexpr int kBlocksPerStrip = kShape.blocks_per_strip;
  static constexpr int kPrefetchDistance = kShape.prefetch_distance;
  static constexpr int kCarryLatency = kShape.carry_latency;
  static constexpr int kStages = kPrefetchDistance + kCarryLatency;  // bands that shared memory holds
  static constexpr int kRing = strip_ring(kShape);
  static constexpr std::uint32_t kMaxWarpSkew = kShape.max_warp_skew;
  static constexpr bool kSumsFirst = kShape.sums_first;
  static constexpr int kOtherRing = strip_other_ring(kShape);
  static constexpr int kLaneStrips = max_lane_strips(kBlocksPerStrip);
  static_assert(kGroupRows % 2 == 0 && kGroupRows <= 2 * kRowLanes && kRows % 64 == 0 && kColumns % 32 == 0);
  static_assert(kPrefetchDistance >= 1 && kCarryLatency > kShape.poll_delay && kBlocksPerStrip <= 2 &&
                kOtherRing <= kThreads);
};

/// The words in which row totals and carries are published, each with the tag of its band. kBands bands have
/// places: those of band n are written again for band n + kBands, which no block publishes before it has used
/// all carries of band n.
template <class P>
struct StripWords {
  using Total = typename P::Total;
  using Pair = LinePair<Total>;
  static constexpr int kBands = P::kRing * P::kBlocksPerStrip;

  std::uint64_t* words;
  std::uint32_t first_tag;
  std::uint32_t strips;
  std::uint32_t lane_strips;  // neighbouring strips that a scanner's lane has

  __device__ std::uint32_t tag(std::uint32_t band) const { return first_tag + band; }
  /// Strips have places in the order in which scanners read them: the first of each lane, the second of each,
  /// and so on.
  __device__ std::uint32_t places() const { return lane_strips * kStripsAtOnce; }
  __device__ std::uint32_t place(std::uint32_t strip) const {
    return strip % lane_strips * kStripsAtOnce + strip / lane_strips;
  }
  /// Totals of strips' rows: those of kScannerRows neighbouring rows are neighbours, place after place.
  __device__ std::uint64_t* totals(std::uint32_t band, std::uint32_t place, int row) const {
    const std::uint32_t rows = band % kBands * (P::kRows / kScannerRows) + row / kScannerRows;
    return words + (std::int64_t{rows} * places() + place) * kScannerRows + row % kScannerRows;
  }
  /// The carry of a strip in each row: its exclusive prefix along x.
  __device__ std::uint64_t* left(std::uint32_t band, std::uint32_t strip, int row) const {
    return words + (std::int64_t{kBands + band % kBands} * places() + strip) * P::kRows + row;
  }
  __device__ void publish(std::uint64_t* at, std::uint32_t band, Total first, Total second) const {
    TaggedValue<Pair>(tag(band), Pair{{first, second}}).store(at);
  }
};

template <class P>
struct StripArguments {
  Planes<const typename P::Input, P::kLayout> image;
  Planes<typename P::Sum, P::kLayout> table;
  std::int64_t height;
  std::int64_t width;
  std::uint32_t bands;
  StripWords<P> words;

  __device__ std::uint32_t strip() const { return blockIdx.x / P::kBlocksPerStrip; }
  __device__ std::uint32_t turn() const { return blockIdx.x % P::kBlocksPerStrip; }
  /// Bands that the block takes, and the number of each in the image.
  __device__ std::uint32_t steps() const {
    return (bands + P::kBlocksPerStrip - 1 - turn()) / P::kBlocksPerStrip;
  }
  __device__ std::uint32_t band(std::uint32_t step) const { return step * P::kBlocksPerStrip + turn(); }
  /// The other block takes the band before that of a step, and the one after.
  __device__ bool other_is_before(std::uint32_t step) const {
    return P::kBlocksPerStrip > 1 && band(step) > 0;
  }
  __device__ bool other_is_after(std::uint32_t step) const {
    return P::kBlocksPerStrip > 1 && band(step) + 1 < bands;
  }
  /// The other block's step for the band before.
  __device__ std::uint32_t others_step(std::uint32_t step) const { return step - 1 + turn(); }
};

/// A block's shared memory.
template <class P>
struct StripMemory {
  using Sum = typename P::Sum;
  /// Floats are summed in place: from the strip's left edge and the first of the warp's rows. For bytes
  /// `through` has the sums along the row.
  alignas(16) typename P::Input pixels[P::kStages][P::kRows][P::kColumns];
  std::uint16_t through[P::kBytes ? P::kCarryLatency + 1 : 1][P::kBytes ? P::kRows : 1][P::kRowLanes];
  /// The sums by column of each warp's rows of a band; then those of the band's rows above each warp's, and
  /// last of all its rows.
  alignas(16) Sum columns[P::kRing][P::kWarps + 1][P::kColumns];
  Sum left[P::kRing][P::kRows];  // carries of the strip's rows, summed over the band's rows up to each
  /// From the other block: the sums by column of its bands, and the carries summed over their rows.
  alignas(16) Sum other_columns[P::kOtherRing][P::kColumns];
  Sum other_left[P::kOtherRing];
  Mbarrier from_other[P::kOtherRing];
  Mbarrier totals_published[P::kRing];
  Mbarrier left_ready[P::kRing];

  /// Until all warps have published the totals of the block's band number `step`.
  __device__ void wait_for_totals(std::uint32_t step) {
    totals_published[step % P::kRing].wait(step / P::kRing);
  }
};

}  // namespace cumulus::summed_area_table
