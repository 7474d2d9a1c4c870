#include <oneapi/tbb/parallel_pipeline.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <memory>
#include <utility>

#include "kernels/core/parallel.h"
#include "kernels/run_length/cpu/coders.h"
#include "kernels/run_length/cpu/heads.h"
#include "kernels/run_length/element.h"
#include "kernels/run_length/tuning.h"

namespace cumulus::run_length {
namespace {

/// A piece of the array on its way through the pipeline. The array's first element is no head: its run is
/// open before the first piece comes.
struct Piece {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::unique_ptr<std::uint64_t[]> heads;  // a bit for each element
  std::int64_t head_count = 0;
  std::int64_t last_head = 0;  // where there is one
  // Of the pieces before it.
  std::int64_t runs_before = 0;
  std::int64_t open_head = 0;  // where the run begins that is open at `first`

  std::int64_t words() const { return divide_up(end - first, kWordElements); }
};

/// Calls body(run, begin, end) for the runs before `runs_end` that end at heads of the piece.
template <class Body>
void for_each_run(const Piece& piece, std::int64_t runs_end, const Body& body) {
  std::int64_t run = piece.runs_before - 1;
  runs_end = std::min(runs_end, run + piece.head_count);
  std::int64_t begin = piece.open_head;
  const std::uint64_t* word = piece.heads.get();
  for (std::int64_t base = piece.first; run < runs_end; base += kWordElements) {
    for (std::uint64_t bits = *word++; bits != 0 && run < runs_end; bits &= bits - 1) {
      const std::int64_t head = base + std::countr_zero(bits);
      body(run++, begin, head);
      begin = head;
    }
  }
}

template <class T, class Length>
class Encoder {
 public:
  /// Of at least one element.
  Encoder(const EncodeRunLengthsParams& params, const T* elements, const EncodedRuns<Space::kHost>& runs)
      : params_(params),
        cut_(effective_cut(params)),
        begin_mask_(params.format.form == RunLengthForm::kCounts ? -1 : 0),
        elements_(elements),
        symbols_(reinterpret_cast<T*>(runs.symbols.data())),
        lengths_(reinterpret_cast<Length*>(runs.lengths.data())),
        first_runs_(runs.first_runs) {}

  /// The next one, in order; nothing behind the last.
  Piece next_piece() {
    Piece piece;
    piece.first = next_;
    next_ = piece.end = std::min(next_ + piece_elements(sizeof(T)), params_.elements);
    return piece;
  }

  void find_heads(Piece& piece) const {
    const std::int64_t words = piece.words();
    piece.heads = std::make_unique_for_overwrite<std::uint64_t[]>(static_cast<std::size_t>(words));
    std::uint64_t* heads = piece.heads.get();
    for (std::int64_t word = 0; word < words; ++word) {
      const std::int64_t base = piece.first + word * kWordElements;
      heads[word] = differences_from(base);
    }
    for (std::int64_t cut = first_cut(piece); cut < piece.end; cut += cut_) {
      const std::int64_t place = cut - piece.first;
      heads[place / kWordElements] |= std::uint64_t{1} << place % kWordElements;
    }
    for (std::int64_t word = 0; word < words; ++word) {
      if (heads[word] == 0) continue;
      piece.head_count += count_bits(heads[word]);
      piece.last_head = piece.first + (word + 1) * kWordElements - 1 - std::countl_zero(heads[word]);
    }
  }

  /// Piece after piece, in order.
  void join(Piece& piece) {
    piece.runs_before = runs_;
    piece.open_head = open_head_;
    runs_ += piece.head_count;
    if (piece.head_count > 0) open_head_ = piece.last_head;
  }

  void write(const Piece& piece) {
    note_first_runs(piece);
    find_unfitting(piece);
    for_each_run(piece, params_.max_runs,
                 [symbols = symbols_, lengths = lengths_, elements = elements_, begin_mask = begin_mask_](
                     std::int64_t run, std::int64_t begin, std::int64_t end) {
                   symbols[run] = elements[begin];
                   lengths[run] = static_cast<Length>(end - (begin & begin_mask));
                 });
  }

  /// After the last piece: the run that the array's end ends.
  EncodeRunLengthsReport finish() {
    const std::int64_t length = length_of(open_head_, params_.elements);
    if (length > kMaxLength) report_unfitting(runs_ - 1);
    if (runs_ <= params_.max_runs) {
      symbols_[runs_ - 1] = elements_[open_head_];
      lengths_[runs_ - 1] = static_cast<Length>(length);
    }
    if (!first_runs_.empty()) {
      first_runs_[0] = 0;
      first_runs_[first_runs_.size() - 1] = runs_;
    }
    return {runs_, unfitting_run_.load()};
  }

 private:
  /// What a length can be, as far as an array's size can be that.
  static constexpr std::int64_t kMaxLength = sizeof(Length) < 8
                                                 ? std::int64_t{std::numeric_limits<std::uint32_t>::max()}
                                                 : std::numeric_limits<std::int64_t>::max();

  std::int64_t length_of(std::int64_t begin, std::int64_t end) const { return end - (begin & begin_mask_); }

  std::uint64_t differences_from(std::int64_t base) const {
    const std::int64_t end = std::min(base + kWordElements, params_.elements);
    if (base > 0 && end - base == kWordElements) return differences(elements_ + base);
    return differences(elements_, base, std::max<std::int64_t>(base, 1), end);
  }

  /// The piece's first cut that is not the array's begin.
  std::int64_t first_cut(const Piece& piece) const {
    return cut_ > 0 ? std::max(divide_up(piece.first, cut_), std::int64_t{1}) * cut_ : piece.end;
  }

  /// Notes the first run of each piece between cuts.
  void note_first_runs(const Piece& piece) {
    if (first_runs_.empty()) return;
    const std::uint64_t* heads = piece.heads.get();
    std::int64_t runs = piece.runs_before;
    std::int64_t word = 0;
    for (std::int64_t cut = first_cut(piece); cut < piece.end; cut += cut_) {
      const std::int64_t place = cut - piece.first;
      for (; word < place / kWordElements; ++word) runs += count_bits(heads[word]);
      const std::uint64_t before = (std::uint64_t{1} << place % kWordElements) - 1;
      first_runs_[static_cast<std::size_t>(cut / cut_)] = runs + count_bits(heads[word] & before);
    }
  }

  void find_unfitting(const Piece& piece) {
    if (length_of(piece.open_head, piece.end) <= kMaxLength) return;  // that is longer than any
    for_each_run(piece, params_.elements, [&](std::int64_t run, std::int64_t begin, std::int64_t end) {
      if (length_of(begin, end) > kMaxLength) report_unfitting(run);
    });
  }
  void report_unfitting(std::int64_t run) {
    std::int64_t known = unfitting_run_.load();
    while ((known < 0 || run < known) && !unfitting_run_.compare_exchange_weak(known, run)) {
    }
  }

  const EncodeRunLengthsParams& params_;
  const std::int64_t cut_;
  const std::int64_t begin_mask_;  // all bits where lengths are counts; none where they are ends
  const T* const elements_;
  T* const symbols_;
  Length* const lengths_;
  const HostSpan<std::int64_t> first_runs_;
  std::atomic<std::int64_t> unfitting_run_{-1};
  // Of the pieces so far.
  std::int64_t next_ = 0;
  std::int64_t runs_ = 1;
  std::int64_t open_head_ = 0;
};

template <class T, class Length>
EncodeRunLengthsReport encode_elements(CpuExecutor& executor, const EncodeRunLengthsParams& params,
                                       const T* elements, const EncodedRuns<Space::kHost>& runs) {
  Encoder<T, Length> encoder(params, elements, runs);
  Piece first = encoder.next_piece();
  if (first.end == params.elements) {  // not worth a second thread
    encoder.find_heads(first);
    encoder.join(first);
    encoder.write(first);
    return encoder.finish();
  }
  bool ended = false;
  const auto next_piece = [&](oneapi::tbb::flow_control& control, const Slice& slice) {
    executor.check_interrupt();
    if (slice.over()) {
      control.stop();
      return Piece();
    }
    Piece piece = first.end > 0 ? std::exchange(first, {}) : encoder.next_piece();
    ended = piece.first == piece.end;
    if (ended) control.stop();
    return piece;
  };
  const auto find_heads = [&](Piece piece) {
    encoder.find_heads(piece);
    return piece;
  };
  const auto join = [&](Piece piece) {
    encoder.join(piece);
    return piece;
  };
  using oneapi::tbb::filter_mode;
  using oneapi::tbb::make_filter;
  const auto run_slice = [&](const Slice& slice) {
    const auto next = [&](oneapi::tbb::flow_control& control) { return next_piece(control, slice); };
    oneapi::tbb::parallel_pipeline(
        2 * static_cast<std::size_t>(executor.threads()),
        make_filter<void, Piece>(filter_mode::serial_in_order, next) &
            make_filter<Piece, Piece>(filter_mode::parallel, find_heads) &
            make_filter<Piece, Piece>(filter_mode::serial_in_order, join) &
            make_filter<Piece, void>(filter_mode::parallel,
                                     [&](const Piece& piece) { encoder.write(piece); }));
  };
  while (!ended) {
    const Slice slice(executor);
    executor.run([&] { run_slice(slice); });
  }
  return encoder.finish();
}

}  // namespace

void encode(CpuExecutor& executor, const EncodeRunLengthsParams& params, HostSpan<const std::byte> elements,
            const EncodedRuns<Space::kHost>& runs, EncodeRunLengthsReport* report) {
  with_element(params.format.element_bytes, [&]<class T>(T) {
    const auto* from = reinterpret_cast<const T*>(elements.data());
    *report = params.format.length_bytes == 4
                  ? encode_elements<T, std::uint32_t>(executor, params, from, runs)
                  : encode_elements<T, std::uint64_t>(executor, params, from, runs);
  });
}

}  // namespace cumulus::run_length
