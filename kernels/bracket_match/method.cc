#include "kernels/bracket_match/method.h"

#include <algorithm>
#include <limits>

#include "kernels/core/div.h"
#include "kernels/core/scratch_arena.h"

namespace cumulus::bracket_match {
namespace {

void add_indices(ScratchSize& size, std::size_t count, bool wide) {
  wide ? size.add<std::int64_t>(count) : size.add<std::int32_t>(count);
}

}  // namespace

std::int64_t host_tiles(std::int64_t count) { return divide_up(count, kCpuTile); }

bool needs_wide_indices(std::int64_t count) { return count > std::numeric_limits<std::int32_t>::max(); }

std::size_t host_match_bytes(std::int64_t count) {
  const auto tiles = static_cast<std::size_t>(host_tiles(count));
  ScratchSize size;
  size.add<std::uint64_t>(tiles * (kCpuTile / 64));  // opens that outlive their tile
  size.add<std::uint64_t>(tiles * (kCpuTile / 64));  // closes that reach out of it
  size.add<StackChange<std::int32_t>>(tiles);
  size.add<std::int64_t>(tiles);  // depth before each tile
  size.add<std::int64_t>(tiles);  // its bottom
  size.add<std::int64_t>(tiles);  // the tile below
  return size.bytes();
}

std::size_t host_clips_bytes(std::int64_t count) {
  const auto tiles = static_cast<std::size_t>(host_tiles(count));
  ScratchSize size;
  add_indices(size, static_cast<std::size_t>(count), needs_wide_indices(count));
  size.add<float>(tiles * 4);  // a box
  size.add<std::int64_t>(tiles);
  return size.bytes() + host_match_bytes(count);
}

std::int64_t MatchPlan::link_blocks() const { return divide_up(tiles, kLinkedTiles); }

std::size_t MatchPlan::scratch_bytes() const {
  const auto count = static_cast<std::size_t>(tiles);
  ScratchSize size;
  size.add<std::uint32_t>(count * kTileThreads);  // opens that outlive their tile
  size.add<std::uint32_t>(count * kTileThreads);  // closes that reach out of it
  size.add<std::uint16_t>(count * kTileWarps);    // how many of them lie before each warp's chunk
  size.add<StackChange<std::int32_t>>(count);
  size.add<std::int64_t>(count);  // depth before each tile
  size.add<std::int64_t>(static_cast<std::size_t>(tree.total));
  size.add<StackChange<std::int64_t>>(static_cast<std::size_t>(scan_groups));
  size.add<Findings>(1);
  size.add<std::byte>(kReportBytes);
  if (segmented) size.add<std::uint32_t>(count * kTileThreads);  // where documents begin
  return size.bytes();
}

MatchPlan choose_match(std::int64_t count, bool segmented) {
  const std::int64_t tiles = divide_up(count, kTileItems);
  return {tiles, divide_up(tiles, std::int64_t{kScanThreads} * kScanTilesPerThread), TileTree::of(tiles),
          segmented};
}

std::size_t ClipsPlan::scratch_bytes() const {
  const auto elements = static_cast<std::size_t>(count);
  ScratchSize size;
  add_indices(size, elements, wide);  // tops
  add_indices(size, elements, wide);  // links
  size.add<ClipProgress>(1);
  return size.bytes() + match.scratch_bytes();
}

ClipsPlan choose_clips(std::int64_t count) {
  int rounds = 0;
  for (std::int64_t known = 1; known < count; known *= 2) ++rounds;
  return {choose_match(count, false), count, needs_wide_indices(count),
          std::min(divide_up(count, kClipThreads), kMaxClipBlocks), rounds};
}

}  // namespace cumulus::bracket_match
