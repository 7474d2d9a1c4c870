#include <oneapi/tbb/parallel_pipeline.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/core/parallel.h"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/run_length_check.h"
#include "kernels/run_length/run_length_element.h"
#include "kernels/run_length/run_length_tuning.h"

namespace cumulus {
namespace {

using namespace run_length;

template <class T>
bool differ(const T& a, const T& b) {
  if constexpr (kIsWord<T>) {
    return a != b;
  } else {
    return std::memcmp(&a, &b, sizeof(T)) != 0;
  }
}

/// Elements that are looked through at once for a head.
constexpr std::int64_t kStretch = 512;

/// Where the array's runs begin: at the first element, at cuts, and wherever neighbours differ.
template <class T>
class Heads {
 public:
  Heads(const T* elements, std::int64_t cut) : elements_(elements), cut_(cut) {}

  /// Calls body(index) for each head in [first, end), in order.
  template <class Body>
  void for_each(std::int64_t first, std::int64_t end, const Body& body) const {
    std::int64_t next_cut = first == 0 ? 0 : cut_ > 0 ? divide_up(first, cut_) * cut_ : end;
    for (std::int64_t begin = first; begin < end; begin += kStretch) {
      const std::int64_t stretch_end = std::min(begin + kStretch, end);
      if (next_cut >= stretch_end) {
        differences(begin, stretch_end, body);
        continue;
      }
      for (std::int64_t i = begin; i < stretch_end; ++i) {
        if (i == next_cut) {
          body(i);
          next_cut = cut_ > 0 ? i + cut_ : end;
        } else if (differ(elements_[i], elements_[i - 1])) {
          body(i);
        }
      }
    }
  }

 private:
  /// As for_each where no cut lies within; the stretch does not begin at the array's first element.
  template <class Body>
  void differences(std::int64_t first, std::int64_t end, const Body& body) const {
    std::array<std::uint16_t, kStretch + 1> found;
    std::size_t count = 0;
    if constexpr (kIsWord<T>) {
      T any = 0;
      for (std::int64_t i = first; i < end; ++i)
        any = static_cast<T>(any | (elements_[i] ^ elements_[i - 1]));
      if (any == 0) return;
    }
    for (std::int64_t i = first; i < end; ++i) {  // without branches: heads may be anywhere
      found[count] = static_cast<std::uint16_t>(i - first);
      count += differ(elements_[i], elements_[i - 1]) ? 1 : 0;
    }
    for (std::size_t k = 0; k < count; ++k) body(first + found[k]);
  }

  const T* elements_;
  std::int64_t cut_;
};

/// A piece of the array on its way through the pipeline.
struct Piece {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t heads = 0;
  std::int64_t last_head = -1;
  // Of the pieces before it.
  std::int64_t runs_before = 0;
  std::int64_t open_head = -1;  // where the run begins that is open at `first`
};

/// Stores runs as soon as it is known where they end.
template <class T, class Length>
class RunWriter {
 public:
  RunWriter(const EncodeRunLengthsParams& params, const T* elements, T* symbols, Length* lengths,
            std::atomic<std::int64_t>& unfitting_run)
      : params_(params),
        elements_(elements),
        symbols_(symbols),
        lengths_(lengths),
        unfitting_run_(unfitting_run) {}

  void write(std::int64_t run, std::int64_t head, std::int64_t end) const {
    const std::int64_t length = params_.format.form == RunLengthForm::kCounts ? end - head : end;
    if (sizeof(Length) < sizeof(length) && length > std::int64_t{std::numeric_limits<std::uint32_t>::max()}) {
      report_unfitting(run);
    }
    if (run >= params_.max_runs) return;
    symbols_[run] = elements_[head];
    lengths_[run] = static_cast<Length>(length);
  }

 private:
  void report_unfitting(std::int64_t run) const {
    std::int64_t known = unfitting_run_.load();
    while ((known < 0 || run < known) && !unfitting_run_.compare_exchange_weak(known, run)) {
    }
  }

  const EncodeRunLengthsParams& params_;
  const T* elements_;
  T* symbols_;
  Length* lengths_;
  std::atomic<std::int64_t>& unfitting_run_;
};

/// Notes the first run of each piece between cuts. Heads come in order, from `first` on.
class FirstRuns {
 public:
  FirstRuns(HostSpan<std::int64_t> first_runs, const EncodeRunLengthsParams& params, std::int64_t first)
      : first_runs_(first_runs), cut_(params.cut_elements > 0 ? params.cut_elements : params.elements) {
    next_ = first_runs.empty() ? std::numeric_limits<std::int64_t>::max() : divide_up(first, cut_) * cut_;
  }

  void head(std::int64_t head, std::int64_t run) {
    if (head != next_) return;
    first_runs_[static_cast<std::size_t>(head / cut_)] = run;
    next_ += cut_;
  }

 private:
  HostSpan<std::int64_t> first_runs_;
  std::int64_t cut_;
  std::int64_t next_;
};

template <class T, class Length>
EncodeRunLengthsReport encode(CpuExecutor& executor, const EncodeRunLengthsParams& params, const T* elements,
                              T* symbols, Length* lengths, HostSpan<std::int64_t> first_runs) {
  std::atomic<std::int64_t> unfitting_run{-1};
  const Heads<T> heads(elements, effective_cut(params));
  const RunWriter<T, Length> writer(params, elements, symbols, lengths, unfitting_run);
  constexpr std::int64_t kPiece = kPieceBytes / static_cast<std::int64_t>(sizeof(T));

  std::int64_t next = 0;
  std::int64_t runs = 0;
  std::int64_t open_head = -1;
  const auto next_piece = [&](oneapi::tbb::flow_control& control) {
    Piece piece;
    piece.first = next;
    next = piece.end = std::min(next + kPiece, params.elements);
    if (piece.first == piece.end) control.stop();
    return piece;
  };
  const auto count = [&](Piece piece) {
    heads.for_each(piece.first, piece.end, [&](std::int64_t head) {
      ++piece.heads;
      piece.last_head = head;
    });
    return piece;
  };
  const auto join = [&](Piece piece) {
    piece.runs_before = runs;
    piece.open_head = open_head;
    runs += piece.heads;
    if (piece.heads > 0) open_head = piece.last_head;
    return piece;
  };
  const auto write = [&](const Piece& piece) {
    std::int64_t run = piece.runs_before - 1;
    std::int64_t begin = piece.open_head;
    FirstRuns firsts(first_runs, params, piece.first);
    heads.for_each(piece.first, piece.end, [&](std::int64_t head) {
      if (run >= 0) writer.write(run, begin, head);
      ++run;
      begin = head;
      firsts.head(head, run);
    });
  };

  using oneapi::tbb::filter_mode;
  using oneapi::tbb::make_filter;
  executor.run([&] {
    oneapi::tbb::parallel_pipeline(2 * static_cast<std::size_t>(executor.threads()),
                                   make_filter<void, Piece>(filter_mode::serial_in_order, next_piece) &
                                       make_filter<Piece, Piece>(filter_mode::parallel, count) &
                                       make_filter<Piece, Piece>(filter_mode::serial_in_order, join) &
                                       make_filter<Piece, void>(filter_mode::parallel, write));
  });
  if (runs > 0) writer.write(runs - 1, open_head, params.elements);
  if (!first_runs.empty()) first_runs[first_runs.size() - 1] = runs;
  return {runs, unfitting_run.load()};
}

/// What runs may add up to before nobody counts any further.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 62;

/// Both at most kMostElements.
std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) { return std::min(a + b, kMostElements); }

/// Lengths of runs as counts, whichever way they are stored.
template <class Length>
class Counts {
 public:
  Counts(const Length* lengths, RunLengthForm form)
      : lengths_(lengths), ends_(form == RunLengthForm::kEnds) {}

  /// Ends that descend give 0.
  std::uint64_t operator[](std::int64_t run) const {
    const std::uint64_t length = lengths_[run];
    if (!ends_) return std::min(length, kMostElements);
    return descends(run) ? 0 : std::min(length - begin(run), kMostElements);
  }
  bool descends(std::int64_t run) const { return ends_ && lengths_[run] < begin(run); }

 private:
  std::uint64_t begin(std::int64_t run) const { return run == 0 ? 0 : lengths_[run - 1]; }

  const Length* lengths_;
  bool ends_;
};

/// Adds up the granules' counts; turns `offsets` into where each granule begins. Finds all that is wrong.
template <class Length>
DecodeRunLengthsReport check_runs(CpuExecutor& executor, const DecodeRunLengthsParams& params,
                                  const Counts<Length>& counts, HostSpan<std::uint64_t> offsets) {
  std::atomic<std::int64_t> descending{-1};
  parallel_ranges(executor, static_cast<std::int64_t>(offsets.size()), 8,
                  [&](std::int64_t first, std::int64_t end) {
                    for (std::int64_t granule = first; granule < end; ++granule) {
                      const std::int64_t runs_end = std::min((granule + 1) * kCpuGranuleRuns, params.runs);
                      std::uint64_t sum = 0;
                      for (std::int64_t run = granule * kCpuGranuleRuns; run < runs_end; ++run) {
                        sum = saturating_sum(sum, counts[run]);
                        if (!counts.descends(run)) continue;
                        std::int64_t known = descending.load();
                        while ((known < 0 || run < known) && !descending.compare_exchange_weak(known, run)) {
                        }
                      }
                      offsets[static_cast<std::size_t>(granule)] = sum;
                    }
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

/// Writes elements [first, end) of the array.
template <class T, class Length>
void write_elements(const Counts<Length>& counts, HostSpan<const std::uint64_t> offsets, const T* symbols,
                    std::int64_t first, std::int64_t end, T* elements) {
  const auto after = std::upper_bound(offsets.begin(), offsets.end(), static_cast<std::uint64_t>(first));
  const std::int64_t granule = after - offsets.begin() - 1;
  auto begin = static_cast<std::int64_t>(offsets[static_cast<std::size_t>(granule)]);
  for (std::int64_t run = granule * kCpuGranuleRuns; begin < end; ++run) {
    const std::int64_t run_end = begin + static_cast<std::int64_t>(counts[run]);
    if (run_end > first)
      std::fill(elements + std::max(begin, first), elements + std::min(run_end, end), symbols[run]);
    begin = run_end;
  }
}

template <class T, class Length>
DecodeRunLengthsReport decode(CpuExecutor& executor, const DecodeRunLengthsParams& params, const T* symbols,
                              const Length* lengths, T* elements) {
  const Counts<Length> counts(lengths, params.format.form);
  const auto offsets =
      executor.scratch<std::uint64_t>(static_cast<std::size_t>(divide_up(params.runs, kCpuGranuleRuns)));
  const DecodeRunLengthsReport report = check_runs(executor, params, counts, offsets);
  if (report.outcome != DecodeRunLengthsReport::Outcome::kDecoded) return report;
  executor.check_interrupt();
  constexpr std::int64_t kGrain = kCpuDecodeBytes / static_cast<std::int64_t>(sizeof(T));
  parallel_ranges(executor, report.elements, kGrain, [&](std::int64_t first, std::int64_t end) {
    write_elements(counts, HostSpan<const std::uint64_t>(offsets), symbols, first, end, elements);
  });
  return report;
}

}  // namespace

void encode_run_lengths(CpuExecutor& executor, const EncodeRunLengthsParams& params,
                        HostSpan<const std::byte> elements, HostSpan<std::byte> symbols,
                        HostSpan<std::byte> lengths, EncodeRunLengthsReport* report,
                        HostSpan<std::int64_t> first_runs) {
  check_encode(params, elements, symbols, lengths, first_runs);
  executor.check_interrupt();
  with_element(params.format.element_bytes, [&]<class T>(T) {
    const auto* from = reinterpret_cast<const T*>(elements.data());
    auto* to = reinterpret_cast<T*>(symbols.data());
    if (params.format.length_bytes == 4) {
      *report =
          encode(executor, params, from, to, reinterpret_cast<std::uint32_t*>(lengths.data()), first_runs);
    } else {
      *report =
          encode(executor, params, from, to, reinterpret_cast<std::uint64_t*>(lengths.data()), first_runs);
    }
  });
}

void decode_run_lengths(CpuExecutor& executor, const DecodeRunLengthsParams& params,
                        HostSpan<const std::byte> symbols, HostSpan<const std::byte> lengths,
                        HostSpan<std::byte> elements, DecodeRunLengthsReport* report) {
  check_decode(params, symbols, lengths, elements);
  executor.check_interrupt();
  *report = {};
  if (params.runs == 0) return;
  with_element(params.format.element_bytes, [&]<class T>(T) {
    const auto* from = reinterpret_cast<const T*>(symbols.data());
    auto* to = reinterpret_cast<T*>(elements.data());
    if (params.format.length_bytes == 4) {
      *report = decode(executor, params, from, reinterpret_cast<const std::uint32_t*>(lengths.data()), to);
    } else {
      *report = decode(executor, params, from, reinterpret_cast<const std::uint64_t*>(lengths.data()), to);
    }
  });
}

#if !CUMULUS_WITH_CUDA
// A build without CUDA has no device to make an executor of: these satisfy the linker.
void encode_run_lengths(CudaExecutor& /*executor*/, const EncodeRunLengthsParams& /*params*/,
                        DeviceSpan<const std::byte> /*elements*/, DeviceSpan<std::byte> /*symbols*/,
                        DeviceSpan<std::byte> /*lengths*/, EncodeRunLengthsReport* /*report*/,
                        DeviceSpan<std::int64_t> /*first_runs*/) {
  throw CudaError(0, "encode_run_lengths", __FILE__, __LINE__);
}
void decode_run_lengths(CudaExecutor& /*executor*/, const DecodeRunLengthsParams& /*params*/,
                        DeviceSpan<const std::byte> /*symbols*/, DeviceSpan<const std::byte> /*lengths*/,
                        DeviceSpan<std::byte> /*elements*/, DecodeRunLengthsReport* /*report*/) {
  throw CudaError(0, "decode_run_lengths", __FILE__, __LINE__);
}
#endif

}  // namespace cumulus
