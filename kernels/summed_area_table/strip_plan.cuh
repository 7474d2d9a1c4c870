#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/primitives/shared_barrier.cuh"
#include "kernels/summed_area_table/summed_area_table_tuning.h"
#include "kernels/summed_area_table/tagged_words.cuh"
#include "kernels/summed_area_table/tile_plan.cuh"

// What the kernel of strips (strip_build.cuh) knows at compile time, what it is told, and what a block keeps
// in shared memory.

namespace cumulus::summed_area_table {

template <class Input, class Sum>
inline constexpr bool kSummedInStrips = sizeof(Sum) == 4 &&
                                        (sizeof(Input) == 1 || std::is_same_v<Input, Sum>);

/// A block goes down a strip of the image, kColumns wide, band by band of kRows rows.
template <class InputType, class SumType, StripShape kShape>
struct StripPlan {
  using Input = InputType;
  using Sum = SumType;
  using Total = Sum;  // of a row
  static constexpr Layout kLayout = Layout::kOne;
  static constexpr int kChannels = 1;
  static constexpr bool kBytes = sizeof(Input) == 1;
  static_assert(kSummedInStrips<Input, Sum>);

  static constexpr int kRowLanes = kShape.row_lanes;
  static constexpr int kColumns = kShape.columns();
  static constexpr int kWarps = kShape.warps;  // that sum
  static constexpr int kSummingThreads = 32 * kWarps;
  static constexpr int kThreads = 32 * (kWarps + 2);
  /// Lanes are in groups of kRowLanes, which go through kGroupRows rows together.
  static constexpr int kGroups = kShape.groups();
  static constexpr int kGroupRows = kShape.group_rows;
  static constexpr int kRows = kShape.rows();
  static constexpr int kAhead = kShape.ahead;
  static constexpr int kLag = kShape.lag;
  static constexpr int kStages = kAhead + kLag;  // bands that shared memory holds
  static constexpr int kRing = strip_ring(kShape);
  static_assert(kGroups <= 32 && kGroupRows % 2 == 0 && kRows % 64 == 0 && kAhead >= 1 && kLag >= 1);
};

/// Where the blocks tell each other about the bands under way, in tagged words of which each band has a tag
/// of its own. kRing bands have their places, in turn: a band's are taken again by the one kRing later, which
/// no block tells of before it has put to use all that there was to learn about a band after this one.
template <class P>
struct StripWords {
  using Total = typename P::Total;
  struct Pair {
    Total v[2];
  };

  std::uint64_t* words;
  std::uint32_t first_tag;
  std::uint32_t strips;

  __device__ std::uint32_t tag(std::uint32_t band) const { return first_tag + band; }
  /// Totals of strips' rows: those of kAdderRows neighbouring rows are neighbours, strip after strip.
  __device__ std::uint64_t* totals(std::uint32_t band, std::uint32_t strip, int row) const {
    const std::uint32_t rows = band % P::kRing * (P::kRows / kAdderRows) + row / kAdderRows;
    return words + (std::int64_t{rows} * strips + strip) * kAdderRows + row % kAdderRows;
  }
  /// What lies left of a strip in each row.
  __device__ std::uint64_t* left(std::uint32_t band, std::uint32_t strip, int row) const {
    return words + (std::int64_t{P::kRing + band % P::kRing} * strips + strip) * P::kRows + row;
  }
  __device__ void tell(std::uint64_t* at, std::uint32_t band, Total first, Total second) const {
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
};

/// A block's shared memory.
template <class P>
struct StripMemory {
  using Sum = typename P::Sum;
  /// Floats are summed in place, from the strip's left edge; for bytes `through` has the sums.
  alignas(16) typename P::Input pixels[P::kStages][P::kRows][P::kColumns];
  std::uint16_t through[P::kBytes ? P::kLag + 1 : 1][P::kBytes ? P::kRows : 1][P::kRowLanes];
  /// The groups' sums by column of a band; then of all above each group. Padded against bank conflicts.
  alignas(16) Sum groups[2][P::kGroups][P::kColumns + 16 / sizeof(Sum)];
  alignas(16) Sum totals[P::kRows];  // of a band's rows
  Sum left[P::kRing][P::kRows];      // what lies left of the strip in a row and all above
  SharedBarrier totals_told[P::kRing];
  SharedBarrier left_ready[P::kRing];
};

}  // namespace cumulus::summed_area_table
