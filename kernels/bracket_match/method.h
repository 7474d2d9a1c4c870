#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bracket_match/records.h"
#include "kernels/core/views.h"

// How a job runs on a GPU: the same on every GPU, by tiles of kTileItems elements. Plans are of the size
// alone, and are the only place that says how many tiles, blocks and bytes a job takes.

namespace cumulus::bracket_match {

/// Of match_brackets.
struct MatchPlan {
  std::int64_t tiles;
  std::int64_t scan_groups;  // of tiles, a block each; where there are several, a kernel sums each before,
                             // and one finishes the tree of minima
  TileTree tree;
  bool segmented;  // there is a bit for each element: a document begins there

  std::int64_t link_blocks() const;
  std::size_t scratch_bytes() const;
};

MatchPlan choose_match(std::int64_t count, bool segmented);

/// Of intersect_clips, on top of the tops of the stack that match_brackets finds.
struct ClipsPlan {
  MatchPlan match;
  std::int64_t count;
  bool wide;            // numbers of elements take 64 bits
  std::int64_t blocks;  // whose threads go on to further elements
  int rounds;           // of pointer jumping: each doubles how far links reach

  std::size_t scratch_bytes() const;
};

ClipsPlan choose_clips(std::int64_t count);

/// Tiles that the CPU matches a task each, and the scratch memory of both jobs there.
std::int64_t host_tiles(std::int64_t count);
std::size_t host_match_bytes(std::int64_t count);
std::size_t host_clips_bytes(std::int64_t count);

bool needs_wide_indices(std::int64_t count);

}  // namespace cumulus::bracket_match

namespace cumulus {

/// Scratch memory that match_brackets takes in space `S` for `count` elements, `segmented` where they are
/// several documents: exact. About 1/16 of an array of that many 32-bit numbers, and on a GPU 1/32 more
/// for segments.
template <Space S>
std::size_t match_brackets_scratch_bytes(std::int64_t count, bool segmented) {
  return S == Space::kHost ? bracket_match::host_match_bytes(count)
                           : bracket_match::choose_match(count, segmented).scratch_bytes();
}

/// Scratch memory that intersect_clips takes for `count` elements: exact. 4 bytes for each on the host, 8 on
/// a GPU (twice that from 2^31 elements on), and match_brackets' own.
template <Space S>
std::size_t intersect_clips_scratch_bytes(std::int64_t count) {
  return S == Space::kHost ? bracket_match::host_clips_bytes(count)
                           : bracket_match::choose_clips(count).scratch_bytes();
}

}  // namespace cumulus
