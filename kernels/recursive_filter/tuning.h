#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/div.h"

namespace cumulus::recursive_filter {

/// The tiled method's tiles have this many rows and columns; a block has a thread for each row and column,
/// which holds that row's or column's pixels in registers.
inline constexpr int kTile = 64;
/// Floats from row to row of a tile in shared memory: rows begin at multiples of 16 bytes, and as many of
/// them as threads read at once in different banks.
inline constexpr int kTilePitch = kTile + 4;

/// Blocks of the two passes over the image that a multiprocessor is to hold at once: as many as leave each
/// thread registers for its pixels and states.
constexpr int gather_blocks(int order) { return order <= 4 ? 12 : 10; }
constexpr int filter_blocks(int order, bool single_precision) {
  return !single_precision ? 1 : order <= 3 ? 12 : 8;
}

/// Threads that share a line of the on-chip method's tiles, and where tiles are few.
inline constexpr int kOnChipParts = 2;
inline constexpr int kManyOnChipParts = 4;
/// Blocks of the on-chip method that a multiprocessor is to hold: they have to be there all at once.
template <class Real>
constexpr int on_chip_blocks(int order, int parts) {
  if (sizeof(Real) > sizeof(float)) return 5;
  if (parts > kOnChipParts) return order <= 3 ? 4 : 2;
  return order <= 3 ? 8 : 7;
}
/// Launches that filter an image on the chip, some of its channels each, before tiles are faster.
constexpr int on_chip_launches(int order, bool single_precision) {
  return single_precision && order > 3 ? 3 : 2;
}
/// Forms of the on-chip method with pixels in registers. The fewer pixels a thread has, the shorter its
/// recursions. Where more tiles do not fit that way, larger ones publish fewer words.
enum class RegisterTiles { kFew, kLarge };
constexpr int register_tile_side(RegisterTiles form) {
  return form == RegisterTiles::kLarge ? 2 * kTile : kTile;
}
/// Their pairs of warps meet at barriers whose numbers are worked out, so that a block takes all 16 and a
/// multiprocessor holds no more than 4, whatever registers it has left.
constexpr int register_tile_blocks(RegisterTiles form) { return form == RegisterTiles::kLarge ? 2 : 4; }
/// Tiles whose states a thread loads at once when it sums those of its window.
inline constexpr int kWindowBatch = 4;
inline constexpr int kRegisterTileBatch = 2;  // where pixels are in registers
/// The widest truncated window, in tiles, unless that is the whole axis.
inline constexpr int kMaxWindow = 16;
/// The widest window of a strip, in tiles, and the order of its filter.
inline constexpr int kMaxStripWindow = 4;
inline constexpr int kMaxStripOrder = 4;
inline constexpr int kMaxStripChannels = 4;
/// Strips of several channels: a block has all channels of its pixels, in tiles of this many rows and
/// columns. Such strips have at most so many tiles in the ring.
inline constexpr int kColourTile = 32;
inline constexpr int kMaxColourSlots = 16;
/// Tiles that a strip's block holds: the shared memory of a multiprocessor.
inline constexpr int kStripSlots = 13;
/// Its shared memory for kMaxStripOrder poles: tiles, carries of rows both ways, mbarriers of the stages.
inline constexpr int kStripStages = 8;
inline constexpr std::size_t kStripSharedBytes = std::size_t{kStripSlots} * kTile * kTilePitch * 4 +
                                                 std::size_t{16} * kMaxStripOrder * kTile +
                                                 std::size_t{kStripStages} * kStripSlots * 8;
/// The carry latency: tiles whose row states a block publishes before it has gathered its neighbours' for the
/// first of them; and tiles of a strip whose words are kept for that, since older ones are not read.
inline constexpr int kStripCarryLatency = 3;
inline constexpr int kStripStateSlots = 2 * kStripCarryLatency + 2;
/// Numbers of a state that a word of gpu/tagged_states.cuh holds; words that a state takes.
inline constexpr int kTaggedNumbers = 3;
constexpr int tagged_words(int order) { return divide_up(order, kTaggedNumbers); }
/// The longest axis, in tiles, that is summed as a whole where the decay length is more.
inline constexpr int kMaxWholeAxis = 40;

/// The carries of `kCarryLines` neighbouring columns (or rows) are completed by one block, in both directions
/// and in at most carry_segments() segments of tiles at once, none of fewer than kMinCarryTiles: segments
/// depend on one another as tiles do.
inline constexpr int kCarryLines = 8;
inline constexpr int kMinCarryTiles = 2;
constexpr int carry_segments(int order) { return order <= 3 ? 24 : 16; }
constexpr int carry_threads(int order) { return 2 * kCarryLines * carry_segments(order); }
/// Tiles whose carries a thread loads at once, into registers.
constexpr int carry_batch(int order) { return order <= 3 ? 6 : 8; }
/// Blocks of such threads that a multiprocessor is to hold.
inline constexpr int kCarryBlocks = 2;

/// Threads of a block that filters the rows' states along y.
inline constexpr int kRowStateThreads = 64;

/// Threads of a block of the line method, each with a row or column of its own.
inline constexpr int kLineThreads = 64;

/// Threads of a block that adds images.
inline constexpr int kAddThreads = 256;

/// The CPU filters this many rows or columns side by side, this many pixels of them at a time.
inline constexpr int kLanes = 16;
inline constexpr int kSteps = 16;
/// Pixels that one CPU task filters, at least.
inline constexpr std::int64_t kGrainPixels = 64 * 1024;

}  // namespace cumulus::recursive_filter
