#pragma once

#include <cstdint>

#include "kernels/summed_area_table/summed_area_table_tuning.h"
#include "kernels/summed_area_table/table_methods.h"
#include "kernels/summed_area_table/tagged_words.cuh"
#include "kernels/summed_area_table/tile_plan.cuh"
#include "kernels/summed_area_table/warp_sums.cuh"

// What the kernel of slabs (slab_build.cuh) knows at compile time, what it is told, and what a block keeps in
// shared memory.

namespace cumulus::summed_area_table {

template <class InputType, class SumType, SlabShape kShape>
struct SlabPlan {
  using Input = InputType;
  using Sum = SumType;
  static constexpr Layout kLayout = Layout::kOne;
  static constexpr int kChannels = 1;
  static constexpr bool kBytes = sizeof(Input) == 1;

  static constexpr int kWarps = kSlabWarps;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kSegments = kShape.segments;  // of a warp
  static constexpr int kAllSegments = kWarps * kSegments;
  static constexpr int kColumns = kShape.columns();
  static constexpr int kHeld = kShape.held;
  static constexpr int kShared = kShape.shared;
  static constexpr int kRows = kShape.rows();
  /// Columns that a block adds up over all slabs at once, two to a thread; 32 threads share a pair of them.
  static constexpr int kPart = kThreads / 16;
  static constexpr int kMostSlabs = 32 * kSlabsOfThread;
  static_assert(kInStripsAndSlabs<Input, Sum>);
  static_assert(kRows <= 32 && kAllSegments <= 32, "lanes look after rows and segments");
  static_assert(kSegmentColumns * 255 < 1 << 16, "bytes' sums over a segment take 16 bits");
};

/// What the blocks tell each other: the sums of each slab's columns, and in the same places, a tag later,
/// those of all that lies above it.
template <class P>
struct SlabWords {
  struct Pair {
    typename P::Sum v[2];
  };

  std::uint64_t* words;
  std::uint32_t tag;
  std::int64_t width;

  __device__ std::uint64_t* at(std::int64_t slab, std::int64_t column) const {
    return words + slab * width + column;
  }
};

template <class P>
struct SlabArguments {
  Planes<const typename P::Input, P::kLayout> image;
  Planes<typename P::Sum, P::kLayout> table;
  std::int64_t height;
  std::int64_t width;
  std::int32_t slab_rows;  // the last slab may have fewer
  SlabWords<P> words;
};

/// A block's shared memory. Padded against bank conflicts.
template <class P>
struct SlabMemory {
  using Sum = typename P::Sum;
  /// Rows of floats; sums over lanes of bytes, of two rows in a word.
  alignas(16) Sum rows[P::kBytes ? P::kRows / 2 : P::kShared][P::kBytes ? P::kColumns / 4 : P::kColumns];
  Sum totals[P::kRows][P::kAllSegments + 1];  // of a row's segments
  Sum groups[32][P::kPart + 1];               // of a part's columns, over kSlabsOfThread slabs each
  Sum above[P::kAllSegments];                 // of the segments of the row above the slab
};

/// A thread's place in its slab: four neighbouring columns of each of its warp's segments.
template <class P>
struct SlabPlace {
  const typename P::Input* from;  // the first segment's of the slab's first row
  std::int64_t stride;
  std::int64_t width;
  int rows;  // that the slab has

  static __device__ int segment(int s) { return warp_index() * P::kSegments + s; }
  static __device__ int column(int s) { return segment(s) * kSegmentColumns + lane_index() * 4; }
  __device__ bool has(int row, int s) const { return row < rows && column(s) < width; }
  __device__ const typename P::Input* at(int row, int s) const {
    return from + row * stride + s * kSegmentColumns;
  }
};

/// A thread's part of a row.
template <class P>
using SlabRow = Quad<typename P::Sum>[P::kSegments];

}  // namespace cumulus::summed_area_table
