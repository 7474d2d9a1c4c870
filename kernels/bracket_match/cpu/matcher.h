#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/bracket_match/bracket_match.h"
#include "kernels/bracket_match/check.h"
#include "kernels/bracket_match/cpu/stack_cursor.h"
#include "kernels/bracket_match/cpu/symbols.h"
#include "kernels/bracket_match/cpu/tally.h"
#include "kernels/bracket_match/cpu/tiles.h"

// Bracket matching on the CPU.

namespace cumulus::bracket_match {

/// A tile's change where a document begins in it: it pops all that there is.
inline constexpr std::int32_t kEverything = std::numeric_limits<std::int32_t>::max();

constexpr std::uint64_t bit_of(std::int64_t i) { return std::uint64_t{1} << (i % 64); }

template <class Symbols, class Index>
class Matcher {
  using Symbol = typename Symbols::Symbol;

 public:
  Matcher(CpuExecutor& executor, const Symbols& symbols, HostSpan<const Symbol> text,
          HostSpan<const std::int64_t> segments, const BracketOutputs<Index, Space::kHost>& outputs)
      : executor_(executor),
        symbols_(symbols),
        text_(text),
        segments_(segments),
        count_(static_cast<std::int64_t>(text.size())),
        tile_count_(host_tiles(count_)),
        outputs_(outputs) {
    const auto tiles = static_cast<std::size_t>(tile_count_);
    const std::size_t words = tiles * static_cast<std::size_t>(HostTiles::kWords);
    tiles_.surviving_opens = executor.scratch<std::uint64_t>(words);
    tiles_.reaching_closes = executor.scratch<std::uint64_t>(words);
    tiles_.change = executor.scratch<StackChange<std::int32_t>>(tiles);
    tiles_.depth = executor.scratch<std::int64_t>(tiles);
    tiles_.bottom = executor.scratch<std::int64_t>(tiles);
    tiles_.below = executor.scratch<std::int64_t>(tiles);
  }

  void run(BracketReport* report) {
    *report = {};
    if (const std::int64_t wrong = first_wrong_segment(); wrong >= 0) {
      report->fault = BracketReport::Fault::kWrongSegment;
      report->position = report->segment = wrong;
      return;
    }
    const bool write_partner = !outputs_.partner.empty();
    for_each_tile(executor_, tile_count_, [&](std::int64_t tile) {
      write_partner ? match_tile<true>(tile) : match_tile<false>(tile);
    });
    const std::int64_t final_depth = link_tiles();
    for_each_tile(executor_, tile_count_, [&](std::int64_t tile) { pair_across(tile); });
    if (wants_tree(outputs_))
      for_each_tile(executor_, tile_count_, [&](std::int64_t tile) { walk_tile(tile); });
    *report = make_report(final_depth);
    if (!outputs_.unmatched.empty()) outputs_.unmatched[0] = report->unmatched;
    if (!outputs_.maximum_depth.empty()) outputs_.maximum_depth[0] = report->maximum_depth;
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  std::int64_t end_of(std::int64_t tile) const { return std::min((tile + 1) * kCpuTile, count_); }

  std::int64_t first_wrong_segment() const {
    std::int64_t before = 0;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const std::int64_t begin = segments_[i];
      if (begin < before || begin > count_ || (i == 0 && begin != 0)) return static_cast<std::int64_t>(i);
      before = begin;
    }
    return -1;
  }

  /// Calls body(first, end, begins) for the tile's spans of one document each, in their order; `begins`
  /// where the document begins there.
  template <class Body>
  void for_documents(std::int64_t tile, const Body& body) const {
    const std::int64_t tile_end = end_of(tile);
    std::int64_t first = tile * kCpuTile;
    const std::int64_t* next = std::lower_bound(segments_.begin(), segments_.end(), first);
    while (first < tile_end) {
      const std::int64_t* const here = next;
      while (next != segments_.end() && *next == first) ++next;  // all but the last are empty
      const std::int64_t end = next != segments_.end() ? std::min(*next, tile_end) : tile_end;
      body(first, end, next != here);
      first = end;
    }
  }

  /// A tile's own stack while its text goes by.
  struct LocalMatch {
    LocalStack stack;  // numbers of elements in the tile, from 1 on
    std::uint32_t size = 0;
    std::int32_t reaching = 0;  // closes that pop what earlier tiles have pushed
    bool begun = false;         // a document has begun in the tile: closes reach no further
    Tally::Part found;
  };

  /// Matches what the tile matches alone.
  template <bool kWritePartner>
  void match_tile(std::int64_t tile) {
    std::memset(tiles_.close_words(tile), 0, sizeof(std::uint64_t) * HostTiles::kWords);
    LocalMatch local;
    for_documents(tile, [&](std::int64_t first, std::int64_t end, bool begins) {
      if (begins) {
        if (local.size > 0) {
          local.found.record(2 * first + kUnclosedFault, tile * kCpuTile + local.stack[local.size]);
        }
        local.size = 0;
        local.begun = true;
      }
      match_span<kWritePartner>(tile, first, end, local);
    });
    store_survivors(tile, local.stack, local.size);
    tiles_.change[at(tile)] = {local.begun ? kEverything : local.reaching,
                               static_cast<std::int32_t>(local.size)};
    tally_.add(local.found);
  }

  template <bool kWritePartner>
  void match_span(std::int64_t tile, std::int64_t begin, std::int64_t end, LocalMatch& local) {
    const std::int64_t first = tile * kCpuTile;
    if constexpr (kWritePartner) {
      std::fill(outputs_.partner.begin() + begin, outputs_.partner.begin() + end, Index{-1});
    }
    for (std::int64_t word = begin - (begin - first) % 64; word < end; word += 64) {
      match_word<kWritePartner>(tile, static_cast<std::uint32_t>(word - first),
                                roles_of(word, std::max(begin, word), std::min(end, word + 64)), local);
    }
  }

  struct RoleWord {
    std::uint64_t opens = 0;
    std::uint64_t closes = 0;
  };
  /// Of elements `begin` and on, whose bits are counted from `word`.
  RoleWord roles_of(std::int64_t word, std::int64_t begin, std::int64_t end) const {
    const Symbol* text = text_.data() + word;
    RoleWord roles;
    const auto add = [&](std::int64_t i) {
      roles.opens |= std::uint64_t{symbols_.is_open(text[i])} << i;
      roles.closes |= std::uint64_t{symbols_.is_close(text[i])} << i;
    };
    if (end - begin == 64) {
      for (std::int64_t i = 0; i < 64; ++i) add(i);
    } else {
      for (std::int64_t i = begin - word; i < end - word; ++i) add(i);
    }
    return roles;
  }

  /// Close by close: its open is the highest set bit below it, or else on the tile's stack. Both are looked
  /// up and one is chosen, because which it is no processor foresees.
  template <bool kWritePartner>
  void match_word(std::int64_t tile, std::uint32_t word, RoleWord roles, LocalMatch& local) {
    const std::int64_t first = tile * kCpuTile;
    const Symbol* text = text_.data() + first;
    Index* partner = kWritePartner ? outputs_.partner.data() + first : nullptr;
    std::uint16_t* stack = local.stack.data();
    std::uint32_t size = local.size;
    std::uint64_t opens = roles.opens;
    local.found.brackets += std::popcount(roles.opens) + std::popcount(roles.closes);
    for (std::uint64_t rest = roles.closes; rest != 0; rest &= rest - 1) {
      const std::uint32_t close = word + static_cast<std::uint32_t>(std::countr_zero(rest));
      const std::uint64_t below = opens & ((rest & (0 - rest)) - 1);
      const bool outer = below == 0;
      if (outer && size == 0) [[unlikely]] {
        leave_close(tile, close, local);
        continue;
      }
      const auto highest = static_cast<std::uint32_t>(std::bit_width(below));
      const std::uint32_t popped = outer ? stack[size] : word + highest - 1;
      size -= outer;
      opens ^= outer ? 0 : std::uint64_t{1} << (highest - 1);
      if (!symbols_.fit(text[popped], text[close])) [[unlikely]] {
        local.found.record(2 * (first + close) + kCloseFault, first + popped);
        continue;
      }
      ++local.found.pairs;
      if constexpr (kWritePartner) {
        partner[popped] = static_cast<Index>(first + close);
        partner[close] = static_cast<Index>(first + popped);
      }
    }
    for (; opens != 0; opens &= opens - 1)
      stack[++size] = static_cast<std::uint16_t>(word + static_cast<std::uint32_t>(std::countr_zero(opens)));
    local.size = size;
  }

  /// A close that finds the tile's own stack empty.
  void leave_close(std::int64_t tile, std::uint32_t i, LocalMatch& local) {
    if (local.begun) {
      local.found.record(2 * (tile * kCpuTile + i) + kCloseFault, -1);
      return;
    }
    tiles_.close_words(tile)[i / 64] |= bit_of(i);
    ++local.reaching;
  }

  void store_survivors(std::int64_t tile, const LocalStack& stack, std::uint32_t size) {
    std::uint64_t* opens = tiles_.open_words(tile);
    std::memset(opens, 0, sizeof(std::uint64_t) * HostTiles::kWords);
    for (std::uint32_t i = 1; i <= size; ++i) opens[stack[i] / 64] |= bit_of(stack[i]);
  }

  /// Tile after tile; returns the stack's final size.
  std::int64_t link_tiles() {
    std::int64_t depth = 0;
    for (std::int64_t tile = 0; tile < tile_count_; ++tile) {
      const StackChange<std::int32_t>& change = tiles_.change[at(tile)];
      const std::int64_t bottom =
          change.closes == kEverything ? 0 : std::max<std::int64_t>(0, depth - change.closes);
      std::int64_t below = tile - 1;
      while (below >= 0 && tiles_.bottom[at(below)] >= bottom) below = tiles_.below[at(below)];
      tiles_.depth[at(tile)] = depth;
      tiles_.bottom[at(tile)] = bottom;
      tiles_.below[at(tile)] = below;
      depth = bottom + change.opens;
    }
    return depth;
  }

  /// Pairs the tile's closes that reach out of it. Of what they leave, nothing may be left where the tile's
  /// first document begins.
  void pair_across(std::int64_t tile) {
    if (tiles_.change[at(tile)].closes == 0) return;
    StackCursor stack(tiles_, tile);
    Tally::Part part;
    for (std::int64_t word = 0; word < HostTiles::kWords; ++word) {
      for (std::uint64_t bits = tiles_.close_words(tile)[word]; bits != 0; bits &= bits - 1) {
        const std::int64_t close = tile * kCpuTile + word * 64 + std::countr_zero(bits);
        const std::int64_t open = stack.top();
        if (open < 0 || !symbols_.fit(text_[at(open)], text_[at(close)])) {
          part.record(2 * close + kCloseFault, open);
        } else {
          ++part.pairs;
          if (!outputs_.partner.empty()) {
            outputs_.partner[at(close)] = static_cast<Index>(open);
            outputs_.partner[at(open)] = static_cast<Index>(close);
          }
        }
        if (!stack.empty()) stack.pop();
      }
    }
    if (tiles_.change[at(tile)].closes == kEverything && !stack.empty()) {
      part.record(2 * *std::lower_bound(segments_.begin(), segments_.end(), tile * kCpuTile) + kUnclosedFault,
                  stack.top());
    }
    tally_.add(part);
  }

  /// Runs the stack over the tile for parents, depths and tops.
  void walk_tile(std::int64_t tile) {
    WalkedStack stack(tiles_, tile);
    Tally::Part part;
    for_documents(tile, [&](std::int64_t first, std::int64_t end, bool begins) {
      if (begins) stack.clear();
      walk_span(first, end, stack, part);
    });
    tally_.add(part);
  }

  void walk_span(std::int64_t first, std::int64_t end, WalkedStack& stack, Tally::Part& part) {
    for (std::int64_t i = first; i < end; ++i) {
      const Symbol symbol = text_[at(i)];
      if (symbols_.is_close(symbol)) stack.pop();
      const auto parent = static_cast<Index>(stack.top());
      const std::int64_t depth = stack.size();
      if (!outputs_.parent.empty()) outputs_.parent[at(i)] = parent;
      if (!outputs_.depth.empty()) outputs_.depth[at(i)] = static_cast<Index>(depth);
      const bool open = symbols_.is_open(symbol);
      if (open) {
        stack.push(i);
        part.maximum_depth = std::max(part.maximum_depth, depth + 1);
      }
      if (!outputs_.top.empty()) outputs_.top[at(i)] = open ? static_cast<Index>(i) : parent;
    }
  }

  BracketReport make_report(std::int64_t final_depth) const {
    const Tally::Part& sum = tally_.sum();
    BracketReport report;
    report.unmatched = sum.brackets - 2 * sum.pairs;
    report.maximum_depth = wants_tree(outputs_) ? sum.maximum_depth : -1;
    if (sum.fault != Tally::kNoFault) {
      report.position = sum.fault / 2;
      report.open_position = sum.fault_open;
      report.fault = sum.fault % 2 == kUnclosedFault ? BracketReport::Fault::kUnclosed
                     : sum.fault_open >= 0           ? BracketReport::Fault::kWrongClose
                                                     : BracketReport::Fault::kUnexpectedClose;
      if (sum.fault % 2 != kUnclosedFault) report.found = text_[at(report.position)];
    } else if (final_depth > 0) {
      report.position = count_;
      report.open_position = StackCursor(tiles_, tile_count_, final_depth).top();
      report.fault = BracketReport::Fault::kUnclosed;
    }
    if (report.fault != BracketReport::Fault::kNone) {
      report.segment = segment_of(report.fault == BracketReport::Fault::kUnclosed ? report.open_position
                                                                                  : report.position);
    }
    if (report.open_position >= 0) report.expected = symbols_.close_of(text_[at(report.open_position)]);
    return report;
  }

  std::int64_t segment_of(std::int64_t element) const {
    if (segments_.empty()) return 0;
    return std::upper_bound(segments_.begin(), segments_.end(), element) - segments_.begin() - 1;
  }

  CpuExecutor& executor_;
  const Symbols symbols_;
  const HostSpan<const Symbol> text_;
  const HostSpan<const std::int64_t> segments_;
  const std::int64_t count_;
  const std::int64_t tile_count_;
  const BracketOutputs<Index, Space::kHost> outputs_;
  HostTiles tiles_;
  Tally tally_;
};

}  // namespace cumulus::bracket_match
