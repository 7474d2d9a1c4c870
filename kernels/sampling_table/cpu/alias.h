#pragma once

// The alias table of one distribution, on the CPU: the sweep of search/alias.h, one cell after
// another.

#include <algorithm>
#include <cstdint>

#include "cumulus/sampling.h"
#include "kernels/core/slice.h"
#include "kernels/sampling_table/format/target.h"
#include "kernels/sampling_table/search/alias.h"

namespace cumulus::sampling_table {

/// Columns of an alias table of at least two cells from left to right, as  column_begin has
/// them.
class ColumnWalk {
 public:
  explicit ColumnWalk(std::uint32_t count)
      : count_(count),
        shortest_(static_cast<std::uint32_t>((std::uint64_t{1} << 32) / count)),
        rest_(static_cast<std::uint32_t>((std::uint64_t{1} << 32) % count)) {}

  std::uint32_t begin() const { return begin_; }
  std::uint32_t capacity() const { return shortest_ + (above_ < rest_ ? 1 : 0); }
  void advance() {
    begin_ += capacity();
    above_ = above_ - rest_ + (above_ < rest_ ? count_ : 0);
  }

 private:
  std::uint32_t count_;
  std::uint32_t shortest_;
  std::uint32_t rest_;
  std::uint32_t begin_ = 0;
  std::uint32_t above_ = 0;  // of `begin`, over the column's number times 2^32 / count, in units of 1 / count
};

/// A cell that is light or heavy.
struct UnevenCell {
  std::uint32_t index;
  std::uint32_t amount;  ///< Its deficit, or its surplus.
  std::uint32_t end;     ///< Where in its column a light cell ends, or where a heavy cell's column ends.
};

/// The light cells of a distribution, or the heavy ones, in order, as many at a time as a block of cells has.
template <bool kHeavy>
class AliasSide {
 public:
  /// `visible` cells, the last of which has mass, are followed by cells without.
  AliasSide(const Target& target, std::uint32_t visible)
      : lower_(target.lower), count_(target.count), visible_(visible), column_(target.count) {}

  const UnevenCell* next() const { return cells_ + first_; }
  std::uint32_t ready() const { return last_ - first_; }
  void advance_to(const UnevenCell* cell) { first_ = static_cast<std::uint32_t>(cell - cells_); }

  /// Makes two cells ready, if there are as many; the last is followed by one of index `count`. Sees each
  /// cell once: `on_even(i, begin)` those that are neither light nor heavy.
  template <class OnEven>
  void fetch(const OnEven& on_even) {
    if (ready() >= 2 || at_end_) return;
    std::copy(cells_ + first_, cells_ + last_, cells_);
    last_ = ready();
    first_ = 0;
    while (last_ < 2 && position_ < count_) scan(on_even);
    if (position_ == count_) {
      cells_[last_++] = {count_, 0, 0};
      at_end_ = true;
    }
  }

 private:
  static constexpr std::uint32_t kBlock = 512;

  template <class OnEven>
  void scan(const OnEven& on_even) {
    std::uint32_t ready = last_;
    ColumnWalk column = column_;
    const auto add = [&](std::uint32_t i, std::uint32_t mass) {
      const std::uint32_t capacity = column.capacity();
      cells_[ready] = {i, kHeavy ? mass - capacity : capacity - mass,
                       column.begin() + (kHeavy ? capacity : mass)};
      ready += (kHeavy ? mass > capacity : mass < capacity) ? 1 : 0;
      if (mass == capacity) on_even(i, column.begin());
      column.advance();
    };
    const std::uint32_t end = position_ + std::min(kBlock, count_ - position_);
    std::uint32_t i = position_;
    for (const std::uint32_t inner = std::min(end, visible_ - 1); i < inner; ++i)
      add(i, lower_[i + 1] - lower_[i]);
    // The last cell with mass ends at 2^32; where it has all of it, 2^32 - 1 is heavy, too.
    if (i < end && i == visible_ - 1) {
      const bool has_all = lower_[i] == 0;
      add(i, has_all ? sampling::kEmptyTail : 0 - lower_[i]);
      if (kHeavy && has_all) ++cells_[ready - 1].amount;
      ++i;
    }
    for (; i < end; ++i) add(i, 0);
    column_ = column;
    last_ = ready;
    position_ = end;
  }

  const std::uint32_t* lower_;
  std::uint32_t count_;
  std::uint32_t visible_;
  ColumnWalk column_;
  std::uint32_t position_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;
  bool at_end_ = false;
  UnevenCell cells_[kBlock + 2];
};

/// The sweep that AliasColumns describes, one cell after another: each step writes the next light cell, or,
/// where what it has to give is used up, the heavy cell at hand. Which of the two follows no pattern: no
/// branch depends on it.
class AliasWriter {
 public:
  explicit AliasWriter(const Target& target)
      : target_(target),
        entries_(reinterpret_cast<Entry*>(target.nodes)),
        lights_(target, visible_cells(target)),
        heavies_(target, visible_cells(target)) {}

  bool run(const Slice* slice) {
    if (target_.count == 1) {
      entries_[0] = {0, 0};
      return true;
    }
    if (!begun_) begin();
    while (heavies_.ready() > 1) {
      write_ready();
      fetch();
      if (slice != nullptr && slice->over()) return false;
    }
    return true;
  }

 private:
  using Entry = sampling::detail::AliasEntry;

  /// Up to the last cell with mass.
  static std::uint32_t visible_cells(const Target& target) {
    std::uint32_t visible = target.count;
    while (target.lower[visible - 1] == sampling::kEmptyTail) --visible;
    return visible;
  }

  void begin() {
    fetch();
    surplus_ = heavies_.next()->amount;
    begun_ = true;
  }
  void fetch() {
    lights_.fetch([this](std::uint32_t i, std::uint32_t begin) { entries_[i] = {begin, i}; });
    heavies_.fetch([](std::uint32_t, std::uint32_t) {});
  }

  void write_ready() {
    const UnevenCell* light = lights_.next();
    const UnevenCell* heavy = heavies_.next();
    Entry* const entries = entries_;
    std::uint64_t deficit = deficit_;
    std::uint64_t surplus = surplus_;
    for (std::uint32_t steps = std::min(lights_.ready(), heavies_.ready() - 1); steps > 0; --steps) {
      const std::uint32_t used_up = deficit >= surplus ? 1 : 0;
      const std::uint32_t if_used_up = 0 - used_up;
      const std::uint32_t index = light->index ^ ((light->index ^ heavy->index) & if_used_up);
      const std::uint32_t end = light->end ^ ((light->end ^ heavy->end) & if_used_up);
      const std::uint32_t given = static_cast<std::uint32_t>(deficit - surplus) & if_used_up;
      entries[index] = {end - given, heavy[used_up].index};
      if (deficit == surplus) {
        entries[index] = {static_cast<std::uint32_t>(column_begin(index, target_.count)), index};
      }
      deficit += light->amount & ~if_used_up;
      surplus += heavy[1].amount & if_used_up;
      heavy += used_up;
      light += 1 - used_up;
    }
    deficit_ = deficit;
    surplus_ = surplus;
    lights_.advance_to(light);
    heavies_.advance_to(heavy);
  }

  Target target_;
  Entry* entries_;
  AliasSide<false> lights_;
  AliasSide<true> heavies_;
  bool begun_ = false;
  std::uint64_t deficit_ = 0;  // of the light cells that have been written
  std::uint64_t surplus_ = 0;  // of the heavy ones up to that at hand
};

}  // namespace cumulus::sampling_table
