#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/bracket_match/records.h"
#include "kernels/core/views.h"

namespace cumulus::bracket_match {

/// The tiles of a text on the host. Tile t covers elements t * kCpuTile and on.
struct HostTiles {
  static constexpr std::int64_t kWords = kCpuTile / 64;

  HostSpan<std::uint64_t> surviving_opens;  // a bit for each element: an open that no close of its tile pops
  HostSpan<std::uint64_t> reaching_closes;  // a close that pops no open of its tile
  HostSpan<StackChange<std::int32_t>> change;
  HostSpan<std::int64_t> depth;   // the stack's size before the tile
  HostSpan<std::int64_t> bottom;  // what of it the tile leaves in place
  HostSpan<std::int64_t>
      below;  // the last tile before with a lower bottom: the stack goes on there; -1: none

  std::uint64_t* open_words(std::int64_t tile) const { return surviving_opens.data() + tile * kWords; }
  std::uint64_t* close_words(std::int64_t tile) const { return reaching_closes.data() + tile * kWords; }
};

/// The stack as it is before a tile, from its top downwards. What of it an earlier tile has pushed are
/// that tile's surviving opens at levels bottom + 1 and up; below them the stack goes on in tile `below`.
class StackCursor {
 public:
  StackCursor(const HostTiles& tiles, std::int64_t tile)
      : StackCursor(tiles, tile, tiles.depth[index(tile)]) {}
  /// `depth` is the stack's size before `tile`, which may be one past the last.
  StackCursor(const HostTiles& tiles, std::int64_t tile, std::int64_t depth) : tiles_(tiles), level_(depth) {
    if (level_ > 0) enter(tile - 1);
  }

  bool empty() const { return level_ == 0; }
  /// The open at the top.
  std::int64_t top() const { return empty() ? -1 : (tile_ * HostTiles::kWords + word_) * 64 + highest_bit(); }
  void clear() { level_ = 0; }
  void pop() {
    if (--level_ == 0) return;
    bits_ ^= std::uint64_t{1} << highest_bit();
    if (level_ == tiles_.bottom[index(tile_)]) {
      enter(tiles_.below[index(tile_)]);
    } else {
      skip_empty_words();
    }
  }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  int highest_bit() const { return 63 - std::countl_zero(bits_); }

  /// Finds the open at level_, which no tile after `tile` has pushed.
  void enter(std::int64_t tile) {
    while (tiles_.bottom[index(tile)] >= level_) tile = tiles_.below[index(tile)];
    tile_ = tile;
    const auto opens = tiles_.change[index(tile)].opens;
    std::int64_t popped = tiles_.bottom[index(tile)] + opens - level_;
    word_ = HostTiles::kWords - 1;
    bits_ = word();
    for (int count = std::popcount(bits_); count <= popped; count = std::popcount(bits_)) {
      popped -= count;
      --word_;
      bits_ = word();
    }
    for (; popped > 0; --popped) bits_ ^= std::uint64_t{1} << highest_bit();
  }
  void skip_empty_words() {
    while (bits_ == 0) {
      --word_;
      bits_ = word();
    }
  }
  std::uint64_t word() const { return tiles_.open_words(tile_)[word_]; }

  const HostTiles& tiles_;
  std::int64_t level_;
  std::int64_t tile_ = -1;
  std::int64_t word_ = 0;
  std::uint64_t bits_ = 0;  // of the word, without what has been popped
};

/// Numbers of elements in a tile of the CPU, an open each.
using LocalStack = std::array<std::uint16_t, kCpuTile + 1>;

/// The stack within a tile, upon what is there before the tile.
class WalkedStack {
 public:
  WalkedStack(const HostTiles& tiles, std::int64_t tile)
      : first_(tile * kCpuTile),
        before_(tiles, tile),
        depth_before_(tiles.depth[static_cast<std::size_t>(tile)]) {}

  std::int64_t size() const { return depth_before_ + static_cast<std::int64_t>(size_); }
  std::int64_t top() const { return size_ > 0 ? first_ + local_[size_ - 1] : before_.top(); }
  void push(std::int64_t element) { local_[size_++] = static_cast<std::uint16_t>(element - first_); }
  /// Does nothing where there is nothing.
  void pop() {
    if (size_ > 0) {
      --size_;
    } else if (depth_before_ > 0) {
      --depth_before_;
      before_.pop();
    }
  }
  void clear() {
    size_ = 0;
    depth_before_ = 0;
    before_.clear();
  }

 private:
  const std::int64_t first_;
  StackCursor before_;
  std::int64_t depth_before_;
  LocalStack local_;
  std::size_t size_ = 0;
};

}  // namespace cumulus::bracket_match
