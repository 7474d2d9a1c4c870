#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bracket_match/tuning.h"
#include "kernels/core/div.h"

// What tiles and kernels leave in scratch memory.

namespace cumulus::bracket_match {

/// What consecutive elements do to the stack: pop `closes`, then push `opens`.
template <class Count>
struct StackChange {
  Count closes = 0;
  Count opens = 0;
};

/// A fault's rank in the order in which a reader meets them is 2 * position + one of these: a document that
/// ends unclosed does so before the element at which the next begins.
inline constexpr std::int64_t kUnclosedFault = 0;
inline constexpr std::int64_t kCloseFault = 1;

/// What the CUDA kernels add up, in device memory.
struct Findings {
  unsigned long long first_fault;  // the complement of the least rank; 0: none
  unsigned long long unmatched;    // modulo 2^64, as the sum of what tiles add and take away
  long long maximum_depth;
  long long final_depth;
  unsigned long long wrong_segment;  // the complement of the first's number; 0: none
};
inline constexpr unsigned long long kNoFault = ~0ull;
inline constexpr std::size_t kReportBytes = 64;

/// The minima of 32 tiles each, of 32 of those each, ... down to one group of at most 32.
struct TileTree {
  static constexpr int kMaxLevels = 8;  // 32^8 tiles are more than addresses
  int levels = 1;                       // the tiles themselves are level 0
  std::int64_t first[kMaxLevels] = {};  // where each level begins
  std::int64_t total = 0;

  static constexpr TileTree of(std::int64_t tiles) {
    TileTree tree;
    tree.total = tiles;
    for (std::int64_t count = tiles; count > 32; ++tree.levels) {
      count = divide_up(count, 32);
      tree.first[tree.levels] = tree.total;
      tree.total += count;
    }
    return tree;
  }
};

/// What the rounds of clips find, for the kernels and the host.
struct ClipProgress {
  unsigned long long wrong_element;
  unsigned int unfinished[kMaxClipRounds];  // not 0: the round has left links to follow
};

}  // namespace cumulus::bracket_match
