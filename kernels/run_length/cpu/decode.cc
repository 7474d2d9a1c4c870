#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "kernels/core/parallel.h"
#include "kernels/core/vector_width.h"
#include "kernels/primitives/streaming_stores.h"
#include "kernels/run_length/cpu/coders.h"
#include "kernels/run_length/element.h"
#include "kernels/run_length/tuning.h"

namespace cumulus::run_length {
namespace {

/// Sums saturate here.
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 62;

/// Both at most kMaxElements.
std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) { return std::min(a + b, kMaxElements); }

/// Lengths of runs, whichever way they are stored.
template <class Length>
class Lengths {
 public:
  Lengths(const Length* lengths, RunLengthForm form)
      : lengths_(lengths), ends_(form == RunLengthForm::kEnds) {}

  /// What runs [first, end) of a granule add up to; nothing certain where ends descend.
  std::uint64_t sum(std::int64_t first, std::int64_t end) const {
    if (ends_) return std::min<std::uint64_t>(lengths_[end - 1] - end_before(first), kMaxElements);
    std::uint64_t sum = 0;
    if constexpr (sizeof(Length) == 4) {
      for (std::int64_t run = first; run < end; ++run) sum += lengths_[run];
    } else {
      for (std::int64_t run = first; run < end; ++run)
        sum = saturating_sum(sum, std::min<std::uint64_t>(lengths_[run], kMaxElements));
    }
    return sum;
  }

  /// The first of runs [first, end) that ends before the one before it does; -1: none.
  std::int64_t descending(std::int64_t first, std::int64_t end) const {
    if (!ends_) return -1;
    bool any = false;
    for (std::int64_t run = std::max<std::int64_t>(first, 1); run < end; ++run)
      any |= lengths_[run] < lengths_[run - 1];
    if (!any) return -1;
    while (lengths_[first] >= end_before(first)) ++first;
    return first;
  }

  /// Whether each of kGroupRuns runs, the first of them not the first of all, is one element.
  bool all_ones(std::int64_t first) const {
    const Length* from = lengths_ + first;
    bool all = true;
    if (ends_) {
      for (std::int64_t i = 0; i < kGroupRuns; ++i) all &= from[i] - from[i - 1] == 1;
    } else {
      for (std::int64_t i = 0; i < kGroupRuns; ++i) all &= from[i] == 1;
    }
    return all;
  }

  /// The elements of up to kGroupRuns runs, the first of them not the first of all; of runs whose ends do not
  /// descend.
  std::array<Length, kGroupRuns> group(std::int64_t first, std::int64_t count) const {
    const Length* from = lengths_ + first;
    std::array<Length, kGroupRuns> counts;
    if (ends_) {
      for (std::int64_t i = 0; i < count; ++i) counts[static_cast<std::size_t>(i)] = from[i] - from[i - 1];
    } else {
      for (std::int64_t i = 0; i < count; ++i) counts[static_cast<std::size_t>(i)] = from[i];
    }
    return counts;
  }

  /// The elements of a run, of runs whose ends do not descend.
  std::int64_t operator[](std::int64_t run) const {
    return static_cast<std::int64_t>(ends_ ? lengths_[run] - end_before(run) : lengths_[run]);
  }

 private:
  Length end_before(std::int64_t run) const { return run == 0 ? 0 : lengths_[run - 1]; }

  const Length* lengths_;
  bool ends_;
};

/// Adds up the granules' runs; turns `offsets` into where each granule begins. Finds all that is wrong.
template <class Length>
DecodeRunLengthsReport check_runs(CpuExecutor& executor, const DecodeRunLengthsParams& params,
                                  const Lengths<Length>& lengths, HostSpan<std::uint64_t> offsets) {
  std::atomic<std::int64_t> descending{-1};
  const auto check = [&](std::int64_t granule) {
    const std::int64_t runs_begin = granule * kCpuGranuleRuns;
    const std::int64_t runs_end = std::min(runs_begin + kCpuGranuleRuns, params.runs);
    offsets[static_cast<std::size_t>(granule)] = lengths.sum(runs_begin, runs_end);
    const std::int64_t run = lengths.descending(runs_begin, runs_end);
    if (run < 0) return;
    std::int64_t known = descending.load();
    while ((known < 0 || run < known) && !descending.compare_exchange_weak(known, run)) {
    }
  };
  parallel_ranges(executor, static_cast<std::int64_t>(offsets.size()), kCheckedGranules,
                  [&](std::int64_t first, std::int64_t end) {
                    for (std::int64_t granule = first; granule < end; ++granule) check(granule);
                  });
  std::uint64_t total = 0;
  for (std::uint64_t& offset : offsets) {
    const std::uint64_t sum = offset;
    offset = total;
    total = saturating_sum(total, sum);
  }
  using Outcome = DecodeRunLengthsReport::Outcome;
  DecodeRunLengthsReport report{Outcome::kDecoded, descending.load(), static_cast<std::int64_t>(total)};
  if (report.elements > params.max_elements) report.outcome = Outcome::kTooLong;
  if (report.run >= 0) report.outcome = Outcome::kDescendingEnds;
  return report;
}

/// Whether elements fill a block without a rest: then it is made in registers.
template <class T>
constexpr bool kFillsBlock = kRunBlockBytes % sizeof(T) == 0;

/// Elements of a block; of those that do not fill one, so many that together they fill registers.
template <class T>
constexpr std::int64_t kBlock = kFillsBlock<T> ? kRunBlockBytes / sizeof(T) : 16;

/// Runs of so many elements are written in blocks. One that is not made in registers takes longer to make
/// than a short run to write; and long runs of bytes are left to memset, which need not read lines before it
/// writes them.
template <class T>
constexpr std::int64_t kMinInBlocks = kFillsBlock<T> ? 0 : 2 * kBlock<T>;
template <class T>
constexpr std::int64_t kMaxInBlocks = kFillsBlock<T> ? (kMaxBlocks* kBlock<T>) : std::int64_t{kMaxElements};

/// Writes `count` elements and returns where the next one goes. May write others before `room_end` too: the
/// runs behind this one are written after it.
template <class T>
T* write_run(T* to, std::int64_t count, const T& symbol, const T* room_end) {
  if (count < kMinInBlocks<T> || count > kMaxInBlocks<T> || room_end - to < count + kBlock<T>)
    return std::fill_n(to, count, symbol);
  // Blocks leave no rest: a short run costs one branch that is hard to foresee.
  std::array<T, kBlock<T>> block;
  block.fill(symbol);
  T* const end = to + count;
  do {
    to = std::copy(block.begin(), block.end(), to);
  } while (to < end);
  return end;
}

/// Writes an array from one of its elements on, a part at a time.
template <class T, class Length>
class RunWriter {
 public:
  RunWriter(const Lengths<Length>& lengths, HostSpan<const std::uint64_t> offsets, const T* symbols,
            std::int64_t runs, std::int64_t first)
      : lengths_(lengths), symbols_(symbols), runs_(runs) {
    const auto after = std::upper_bound(offsets.begin(), offsets.end(), static_cast<std::uint64_t>(first));
    const std::int64_t granule = after - offsets.begin() - 1;
    run_ = granule * kCpuGranuleRuns;
    auto run_end = static_cast<std::int64_t>(offsets[static_cast<std::size_t>(granule)]) + lengths[run_];
    while (run_end <= first) run_end += lengths[++run_];
    rest_ = run_end - first;
  }

  /// Writes the next elements to [to, end). May write others before `room_end` too.
  void write(T* to, T* end, T* room_end) {
    // Bytes that are written might be these members, for all that compilers know.
    const Lengths<Length> lengths = lengths_;
    std::int64_t run = run_;
    std::int64_t rest = rest_;
    const auto write_some = [&](const T& symbol, std::int64_t count) {
      const std::int64_t some = std::min<std::int64_t>(count, end - to);
      rest = count - some;
      to = write_run(to, some, symbol, room_end);
    };
    write_some(symbols_[run], rest);
    while (to < end) {
      const T* symbols = symbols_ + run + 1;
      const std::int64_t group = std::min(runs_ - run - 1, kGroupRuns);
      if (group == kGroupRuns && end - to >= group && lengths.all_ones(run + 1)) {
        to = std::copy_n(symbols, kGroupRuns, to);
        run += group;
        continue;
      }
      const auto counts = lengths.group(run + 1, group);
      std::int64_t i = 0;
      for (; i < group && to < end; ++i)
        write_some(symbols[i], static_cast<std::int64_t>(counts[static_cast<std::size_t>(i)]));
      run += i;
    }
    run_ = run;
    rest_ = rest;
  }

 private:
  const Lengths<Length> lengths_;
  const T* symbols_;
  std::int64_t runs_;
  std::int64_t run_;
  std::int64_t rest_;  // elements of run_ that are not yet written
};

/// The first element from `to` on that begins a line of the caches, `end` if none does. Of 64 elements one
/// does, as arrays begin at multiples of 16.
template <class T>
T* line_begin(T* to, T* end) {
  while (to < end && reinterpret_cast<std::uintptr_t>(to) % kLineBytes != 0) ++to;
  return to;
}

/// Writes [to, end) past the caches, by way of a piece in the nearest one.
template <class T, class Length>
void stream_elements(RunWriter<T, Length>& runs, T* to, T* end) {
  constexpr std::int64_t kLines = kLineBytes;  // so many elements are whole lines, whatever their size
  constexpr std::int64_t kPiece =
      kStreamedPieceBytes / (kLines * static_cast<std::int64_t>(sizeof(T))) * kLines;
  alignas(kLineBytes) std::array<T, kPiece + kBlock<T>> piece;
  T* const first_line = line_begin(to, end);
  runs.write(to, first_line, first_line);
  to = first_line;
  while (end - to >= kLines) {
    const std::int64_t count = std::min((end - to) / kLines * kLines, kPiece);
    T* const piece_end = piece.data() + count;
    runs.write(piece.data(), piece_end, piece_end + kBlock<T>);
    stream_lines(piece.data(), to, static_cast<std::size_t>(count) * sizeof(T));
    to += count;
  }
  finish_streaming();
  runs.write(to, end, end);
}

template <class T, class Length>
DecodeRunLengthsReport decode_runs(CpuExecutor& executor, const DecodeRunLengthsParams& params,
                                   const T* symbols, const Length* lengths_data, T* elements) {
  const Lengths<Length> lengths(lengths_data, params.format.form);
  const auto offsets =
      executor.scratch<std::uint64_t>(static_cast<std::size_t>(divide_up(params.runs, kCpuGranuleRuns)));
  const DecodeRunLengthsReport report = check_runs(executor, params, lengths, offsets);
  if (report.outcome != DecodeRunLengthsReport::Outcome::kDecoded) return report;
  executor.check_interrupt();
  constexpr std::int64_t kGrain = kCpuDecodeBytes / static_cast<std::int64_t>(sizeof(T));
  const bool streamed = report.elements * static_cast<std::int64_t>(sizeof(T)) >= kStreamedBytes;
  parallel_ranges(executor, report.elements, kGrain, [&](std::int64_t first, std::int64_t end) {
    RunWriter<T, Length> runs(lengths, HostSpan<const std::uint64_t>(offsets), symbols, params.runs, first);
    run_vectorised([&] {
      if (streamed) {
        stream_elements(runs, elements + first, elements + end);
      } else {
        runs.write(elements + first, elements + end, elements + end);
      }
    });
  });
  return report;
}

}  // namespace

void decode(CpuExecutor& executor, const DecodeRunLengthsParams& params, HostSpan<const std::byte> symbols,
            HostSpan<const std::byte> lengths, HostSpan<std::byte> elements, DecodeRunLengthsReport* report) {
  with_element(params.format.element_bytes, [&]<class T>(T) {
    const auto* from = reinterpret_cast<const T*>(symbols.data());
    auto* to = reinterpret_cast<T*>(elements.data());
    if (params.format.length_bytes == 4) {
      *report =
          decode_runs(executor, params, from, reinterpret_cast<const std::uint32_t*>(lengths.data()), to);
    } else {
      *report =
          decode_runs(executor, params, from, reinterpret_cast<const std::uint64_t*>(lengths.data()), to);
    }
  });
}

}  // namespace cumulus::run_length
