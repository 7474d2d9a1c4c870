#pragma once

#include <cstdint>

#include "kernels/bracket_match/bracket_match.h"
#include "kernels/bracket_match/match/stack_lookup.cuh"
#include "kernels/bracket_match/match/tile_memory.cuh"

// The last step of matching: the report.

namespace cumulus::bracket_match {

/// The top of the stack before the element at `position`, at least 1, in the document of the element before
/// it; or -1. Walks back through the tile. By one warp.
template <class Symbol, class Index>
__device__ std::int64_t top_before(const Arguments<Symbol, Index>& a,
                                   const typename Rules<Symbol>::Shared& rules, std::int64_t position) {
  constexpr int kAtOnce = 8;  // elements of a lane, loaded together
  const auto lane = static_cast<int>(threadIdx.x);
  const std::int64_t tile = (position - 1) / kTileItems;
  const std::int64_t begin = tile * kTileItems;
  int closes = 0;  // whose opens are further back
  for (std::int64_t end = position; end > begin; end -= 32 * kAtOnce) {
    int rises[kAtOnce];
    bool begins[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const std::int64_t element = end - 1 - 32 * k - lane;
      const std::uint32_t role = element >= begin ? rules.role_of(a.text[element]) : 0;
      rises[k] = role == kRoleOpen ? 1 : role == kRoleClose ? -1 : 0;
      begins[k] = element >= begin && a.begins_at(element);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int opens = __popc(__ballot_sync(kFullWarp, rises[k] > 0));
      const int pops = __popc(__ballot_sync(kFullWarp, rises[k] < 0));
      const std::uint32_t beginnings = __ballot_sync(kFullWarp, begins[k]);
      if (opens > closes || beginnings != 0) {
        const std::uint32_t tops = __ballot_sync(kFullWarp, warp_inclusive_sum(rises[k]) > closes);
        if (tops != 0 && (beginnings == 0 || lowest_bit(tops) <= lowest_bit(beginnings))) {
          return end - 1 - 32 * k - lowest_bit(tops);
        }
        if (beginnings != 0) return -1;
      }
      closes += pops - opens;
    }
  }
  const std::int64_t level = a.tiles.depth[tile] - closes;
  return level <= 0 ? -1 : open_at(a.tiles, tile, level);
}

/// The number of the document that has `element`.
__device__ inline std::int64_t segment_of(const std::int64_t* segments, std::int64_t count,
                                          std::int64_t element) {
  std::int64_t first = 0;
  while (count > 1) {
    const std::int64_t half = count / 2;
    if (segments[first + half] <= element) first += half;
    count -= half;
  }
  return first;
}

/// Where documents begin, as the caller gave it.
struct Segments {
  const std::int64_t* begins;
  std::int64_t count;
};

/// Step 5.
/// owns: one warp.
/// reads: the findings, and around the fault the text, the bits of beginnings and the tiles' surviving opens.
/// writes: the report and its copies.
/// waits for: nothing of other blocks, so that it cannot deadlock; the kernels before have ended.
/// source: this project.
template <class Symbol, class Index>
__global__ void __launch_bounds__(32)
    write_report(const __grid_constant__ Arguments<Symbol, Index> a, const Segments segments, bool with_depth,
                 BracketReport* report, std::int64_t* maximum_depth, std::int64_t* unmatched) {
  using Fault = BracketReport::Fault;
  __shared__ typename Rules<Symbol>::Shared rules;
  a.rules.prepare(rules);
  __syncwarp();
  const Findings findings = *a.findings;
  BracketReport result;
  result.unmatched = static_cast<std::int64_t>(findings.unmatched);
  if (with_depth) result.maximum_depth = findings.maximum_depth;
  if (findings.wrong_segment != 0) {
    result.fault = Fault::kWrongSegment;
    result.position = result.segment = static_cast<std::int64_t>(~findings.wrong_segment);
  } else if (findings.first_fault != 0) {
    const auto fault = static_cast<std::int64_t>(~findings.first_fault);
    result.position = fault / 2;
    const bool unclosed = fault % 2 == kUnclosedFault;
    if (result.position > 0 && (unclosed || !a.begins_at(result.position))) {
      result.open_position = top_before(a, rules, result.position);
    }
    result.fault = unclosed                    ? Fault::kUnclosed
                   : result.open_position >= 0 ? Fault::kWrongClose
                                               : Fault::kUnexpectedClose;
    if (!unclosed) result.found = a.text[result.position];
  } else if (findings.final_depth > 0) {
    result.position = a.count;
    result.open_position = top_before(a, rules, a.count);
    result.fault = Fault::kUnclosed;
  }
  if (result.open_position >= 0) result.expected = rules.close_of(a.text[result.open_position]);
  if (result.fault != Fault::kNone && result.fault != Fault::kWrongSegment) {
    const std::int64_t element = result.fault == Fault::kUnclosed ? result.open_position : result.position;
    result.segment = segment_of(segments.begins, segments.count, element);
  }
  if (threadIdx.x != 0) return;
  *report = result;
  if (maximum_depth != nullptr) *maximum_depth = result.maximum_depth;
  if (unmatched != nullptr) *unmatched = result.unmatched;
}

}  // namespace cumulus::bracket_match
