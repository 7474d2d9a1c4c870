#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/core/memory.h"
#include "kernels/core/views.h"

namespace cumulus {

/// Adds up what a sequence of ScratchArena::take calls needs.
class ScratchSize {
 public:
  template <class T>
  ScratchSize& add(std::size_t count) {
    bytes_ += align_block(count * sizeof(T));
    return *this;
  }
  constexpr std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// Hands out pieces of one block: the whole scratch memory of one call, sized before it runs by the
/// operation's *_scratch_bytes and counted by admission. Pieces live until the next `begin` or
/// `rewind`.
template <Space S>
class ScratchArena {
 public:
  /// Forgets all pieces and takes over `block`, of which `bytes` may be handed out.
  void begin(Memory<S> block, std::size_t bytes) {
    block_ = std::move(block);
    limit_ = bytes;
    used_ = 0;
  }

  /// Forgets all pieces and keeps the block.
  void rewind() { used_ = 0; }

  /// `count` elements, uninitialised, at a multiple of kBlockAlignment. Throws std::logic_error
  /// where the operation takes more than it said it would.
  template <class T>
  Span<T, S> take(std::size_t count) {
    const std::size_t bytes = align_block(count * sizeof(T));
    if (bytes > limit_ - used_) {
      throw std::logic_error("scratch memory: the call takes " + std::to_string(used_ + bytes) +
                             " bytes, its footprint said " + std::to_string(limit_));
    }
    Span<T, S> piece(reinterpret_cast<T*>(block_.data() + used_), count);
    used_ += bytes;
    high_water_ = std::max(high_water_, used_);
    return piece;
  }

  std::size_t used_bytes() const { return used_; }
  /// The most that any call so far has taken.
  std::size_t high_water_bytes() const { return high_water_; }

 private:
  Memory<S> block_;
  std::size_t limit_ = 0;
  std::size_t used_ = 0;
  std::size_t high_water_ = 0;
};

}  // namespace cumulus
