#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "kernels/bracket_match/bracket_match.h"
#include "kernels/bracket_match/bracket_match_check.h"
#include "kernels/bracket_match/bracket_symbols.h"
#include "kernels/bracket_match/stack_cursor.h"
#include "kernels/core/parallel.h"

namespace cumulus {
namespace {

using namespace bracket_match;

/// Positions within a tile.
using LocalStack = std::array<std::uint16_t, kCpuTile + 1>;

constexpr std::uint64_t bit_of(std::int64_t i) { return std::uint64_t{1} << (i % 64); }

/// What the tiles find, each for itself; add() may be called by several at a time.
class Tally {
 public:
  struct Part {
    std::int64_t brackets = 0;
    std::int64_t pairs = 0;
    std::int64_t maximum_depth = 0;
    std::int64_t fault_position = -1;  // of the first close that pairs with nothing
    std::int64_t fault_open = -1;      // what it pops, or -1

    void fault(std::int64_t position, std::int64_t open) {
      if (fault_position >= 0) return;
      fault_position = position;
      fault_open = open;
    }
  };

  void add(const Part& part) {
    const std::lock_guard lock(mutex_);
    sum_.brackets += part.brackets;
    sum_.pairs += part.pairs;
    sum_.maximum_depth = std::max(sum_.maximum_depth, part.maximum_depth);
    if (part.fault_position < 0) return;
    if (sum_.fault_position >= 0 && sum_.fault_position < part.fault_position) return;
    sum_.fault_position = part.fault_position;
    sum_.fault_open = part.fault_open;
  }
  const Part& sum() const { return sum_; }

 private:
  std::mutex mutex_;
  Part sum_;
};

template <class Symbols, class Index>
class Matcher {
  using Symbol = typename Symbols::Symbol;

 public:
  Matcher(CpuExecutor& executor, const Symbols& symbols, HostSpan<const Symbol> text,
          const BracketOutputs<Index, Space::kHost>& outputs)
      : executor_(executor),
        symbols_(symbols),
        text_(text),
        count_(static_cast<std::int64_t>(text.size())),
        tile_count_(tiles_of(count_, Space::kHost)),
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
    const bool write_partner = !outputs_.partner.empty();
    for_tiles([&](std::int64_t tile) { write_partner ? match_tile<true>(tile) : match_tile<false>(tile); });
    const std::int64_t final_depth = link_tiles();
    for_tiles([&](std::int64_t tile) { pair_across(tile); });
    if (wants_tree(outputs_)) for_tiles([&](std::int64_t tile) { walk_tile(tile); });
    *report = make_report(final_depth);
    if (!outputs_.unmatched.empty()) outputs_.unmatched[0] = report->unmatched;
    if (!outputs_.maximum_depth.empty()) outputs_.maximum_depth[0] = report->maximum_depth;
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  template <class Body>
  void for_tiles(const Body& body) {
    executor_.check_interrupt();
    parallel_ranges(executor_, tile_count_, 1, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t tile = first; tile < end; ++tile) body(tile);
    });
  }

  std::int64_t end_of(std::int64_t tile) const { return std::min((tile + 1) * kCpuTile, count_); }

  /// Matches what the tile matches alone. Every element but the neutral takes the same way, because
  /// whether a bracket opens or closes is what no processor foresees.
  template <bool kWritePartner>
  void match_tile(std::int64_t tile) {
    const std::int64_t first = tile * kCpuTile;
    const auto count = static_cast<std::uint32_t>(end_of(tile) - first);
    const Symbol* text = text_.data() + first;
    Index* partner = kWritePartner ? outputs_.partner.data() + first : nullptr;
    std::uint64_t* closes = tiles_.close_words(tile);
    std::memset(closes, 0, sizeof(std::uint64_t) * HostTiles::kWords);
    LocalStack stack;
    std::uint32_t size = 0;
    std::int32_t reaching = 0;
    Tally::Part part;
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool close = symbols_.is_close(text[i]);
      const bool open = symbols_.is_open(text[i]);
      part.brackets += close | open;
      if (size < close) [[unlikely]] {
        closes[i / 64] |= bit_of(i);
        ++reaching;
        if constexpr (kWritePartner) partner[i] = -1;
        continue;
      }
      stack[size] = static_cast<std::uint16_t>(i);
      const std::uint32_t popped = stack[size - close];  // itself, unless it is a close
      size += open;
      size -= close;
      const bool fits = !close | symbols_.fit(text[popped], text[i]);
      if (!fits) [[unlikely]]
        part.fault(first + i, first + popped);
      const bool pair = close & fits;
      part.pairs += pair;
      if constexpr (kWritePartner) {
        partner[popped] = pair ? static_cast<Index>(first + i) : Index{-1};
        partner[i] = pair ? static_cast<Index>(first + popped) : Index{-1};
      }
    }
    store_survivors(tile, stack, size);
    tiles_.change[at(tile)] = {reaching, static_cast<std::int32_t>(size)};
    tally_.add(part);
  }

  void store_survivors(std::int64_t tile, const LocalStack& stack, std::uint32_t size) {
    std::uint64_t* opens = tiles_.open_words(tile);
    std::memset(opens, 0, sizeof(std::uint64_t) * HostTiles::kWords);
    for (std::uint32_t i = 0; i < size; ++i) opens[stack[i] / 64] |= bit_of(stack[i]);
  }

  /// Tile after tile; returns the stack's final size.
  std::int64_t link_tiles() {
    std::int64_t depth = 0;
    for (std::int64_t tile = 0; tile < tile_count_; ++tile) {
      const StackChange<std::int32_t>& change = tiles_.change[at(tile)];
      const std::int64_t bottom = std::max<std::int64_t>(0, depth - change.closes);
      std::int64_t below = tile - 1;
      while (below >= 0 && tiles_.bottom[at(below)] >= bottom) below = tiles_.below[at(below)];
      tiles_.depth[at(tile)] = depth;
      tiles_.bottom[at(tile)] = bottom;
      tiles_.below[at(tile)] = below;
      depth = bottom + change.opens;
    }
    return depth;
  }

  /// Pairs the tile's closes that reach out of it.
  void pair_across(std::int64_t tile) {
    if (tiles_.change[at(tile)].closes == 0) return;
    StackCursor stack(tiles_, tile);
    Tally::Part part;
    for (std::int64_t word = 0; word < HostTiles::kWords; ++word) {
      for (std::uint64_t bits = tiles_.close_words(tile)[word]; bits != 0; bits &= bits - 1) {
        const std::int64_t close = tile * kCpuTile + word * 64 + std::countr_zero(bits);
        const std::int64_t open = stack.top();
        if (open < 0 || !symbols_.fit(text_[at(open)], text_[at(close)])) {
          part.fault(close, open);
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
    tally_.add(part);
  }

  /// Runs the stack over the tile for parents, depths and tops.
  void walk_tile(std::int64_t tile) {
    const std::int64_t first = tile * kCpuTile;
    StackCursor before(tiles_, tile);
    std::int64_t depth_before = tiles_.depth[at(tile)];
    LocalStack stack;
    std::size_t size = 0;
    Tally::Part part;
    const auto top = [&] { return size > 0 ? first + stack[size - 1] : before.top(); };
    for (std::int64_t i = first; i < end_of(tile); ++i) {
      const Symbol symbol = text_[at(i)];
      if (symbols_.is_close(symbol)) {
        if (size > 0) {
          --size;
        } else if (depth_before > 0) {
          --depth_before;
          before.pop();
        }
      }
      const auto parent = static_cast<Index>(top());
      const std::int64_t depth = depth_before + static_cast<std::int64_t>(size);
      if (!outputs_.parent.empty()) outputs_.parent[at(i)] = parent;
      if (!outputs_.depth.empty()) outputs_.depth[at(i)] = static_cast<Index>(depth);
      const bool open = symbols_.is_open(symbol);
      if (open) {
        stack[size++] = static_cast<std::uint16_t>(i - first);
        part.maximum_depth = std::max(part.maximum_depth, depth + 1);
      }
      if (!outputs_.top.empty()) outputs_.top[at(i)] = open ? static_cast<Index>(i) : parent;
    }
    tally_.add(part);
  }

  BracketReport make_report(std::int64_t final_depth) const {
    const Tally::Part& sum = tally_.sum();
    BracketReport report;
    report.unmatched = sum.brackets - 2 * sum.pairs;
    report.maximum_depth = wants_tree(outputs_) ? sum.maximum_depth : -1;
    if (sum.fault_position >= 0) {
      report.position = sum.fault_position;
      report.open_position = sum.fault_open;
      report.fault =
          sum.fault_open >= 0 ? BracketReport::Fault::kWrongClose : BracketReport::Fault::kUnexpectedClose;
      report.found = text_[at(report.position)];
    } else if (final_depth > 0) {
      report.position = count_;
      report.open_position = StackCursor(tiles_, tile_count_, final_depth).top();
      report.fault = BracketReport::Fault::kUnclosed;
    }
    if (report.open_position >= 0) report.expected = symbols_.close_of(text_[at(report.open_position)]);
    return report;
  }

  CpuExecutor& executor_;
  const Symbols symbols_;
  const HostSpan<const Symbol> text_;
  const std::int64_t count_;
  const std::int64_t tile_count_;
  const BracketOutputs<Index, Space::kHost> outputs_;
  HostTiles tiles_;
  Tally tally_;
};

}  // namespace

template <class Index>
void match_brackets(CpuExecutor& executor, HostSpan<const std::uint8_t> text, const BracketTable& table,
                    const BracketOutputs<Index, Space::kHost>& outputs, BracketReport* report) {
  check_outputs(text.size(), outputs);
  Matcher<ByteSymbols, Index>(executor, ByteSymbols{table}, text, outputs).run(report);
}

template <class Index>
void match_brackets(CpuExecutor& executor, HostSpan<const std::int32_t> tokens,
                    const BracketOutputs<Index, Space::kHost>& outputs, BracketReport* report) {
  check_outputs(tokens.size(), outputs);
  Matcher<TokenSymbols, Index>(executor, TokenSymbols{}, tokens, outputs).run(report);
}

#if !CUMULUS_WITH_CUDA
// A build without CUDA has no device to make an executor of: these satisfy the linker.
template <class Index>
void match_brackets(CudaExecutor& /*executor*/, DeviceSpan<const std::uint8_t> /*text*/,
                    const BracketTable& /*table*/, const BracketOutputs<Index, Space::kDevice>& /*outputs*/,
                    BracketReport* /*report*/) {
  throw CudaError(0, "match_brackets", __FILE__, __LINE__);
}
template <class Index>
void match_brackets(CudaExecutor& /*executor*/, DeviceSpan<const std::int32_t> /*tokens*/,
                    const BracketOutputs<Index, Space::kDevice>& /*outputs*/, BracketReport* /*report*/) {
  throw CudaError(0, "match_brackets", __FILE__, __LINE__);
}
template void match_brackets(CudaExecutor&, DeviceSpan<const std::uint8_t>, const BracketTable&,
                             const BracketOutputs<std::int32_t, CudaExecutor::kSpace>&, BracketReport*);
template void match_brackets(CudaExecutor&, DeviceSpan<const std::int32_t>,
                             const BracketOutputs<std::int32_t, CudaExecutor::kSpace>&, BracketReport*);
template void match_brackets(CudaExecutor&, DeviceSpan<const std::uint8_t>, const BracketTable&,
                             const BracketOutputs<std::int64_t, CudaExecutor::kSpace>&, BracketReport*);
template void match_brackets(CudaExecutor&, DeviceSpan<const std::int32_t>,
                             const BracketOutputs<std::int64_t, CudaExecutor::kSpace>&, BracketReport*);
#endif

template void match_brackets(CpuExecutor&, HostSpan<const std::uint8_t>, const BracketTable&,
                             const BracketOutputs<std::int32_t, CpuExecutor::kSpace>&, BracketReport*);
template void match_brackets(CpuExecutor&, HostSpan<const std::int32_t>,
                             const BracketOutputs<std::int32_t, CpuExecutor::kSpace>&, BracketReport*);
template void match_brackets(CpuExecutor&, HostSpan<const std::uint8_t>, const BracketTable&,
                             const BracketOutputs<std::int64_t, CpuExecutor::kSpace>&, BracketReport*);
template void match_brackets(CpuExecutor&, HostSpan<const std::int32_t>,
                             const BracketOutputs<std::int64_t, CpuExecutor::kSpace>&, BracketReport*);

}  // namespace cumulus
