#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "kernels/core/vector_width.h"
#include "kernels/core/views.h"
#include "kernels/primitives/streaming_stores.h"
#include "kernels/summed_area_table/cpu/chunks.h"
#include "kernels/summed_area_table/cpu/vectors.h"
#include "kernels/summed_area_table/summand.h"
#include "kernels/summed_area_table/tuning.h"

// A band of a table's rows on the CPU: its last row, summed, and the others, filled below the band before.

namespace cumulus::summed_area_table {

/// One image and its table: `sums` has the inclusive sums; its rows may be those of a wider table.
template <class Input, class Sum>
struct Plane {
  HostImage<const Input> image;
  HostImage<Sum> sums;
  bool exclusive = false;  // a pixel of zeros stands before each row of `sums`
  std::array<Sum, 4> offsets{};

  /// Row y of `sums`, about to be written: first what stands before it.
  Sum* begin_row(std::int64_t y) const {
    Sum* row = sums.row(y);
    if (exclusive) std::fill_n(row - sums.channels, sums.channels, Sum{0});
    return row;
  }
  /// Whether each row of `sums` begins with a line of the caches.
  bool has_whole_lines() const {
    const auto begins_line = [](auto address) { return address % 64 == 0; };
    return begins_line(reinterpret_cast<std::uintptr_t>(sums.data)) &&
           begins_line(sums.row_stride * static_cast<std::int64_t>(sizeof(Sum)));
  }
  /// Whether the table is too large to stay in the caches.
  bool is_streamed() const {
    return sums.elements() * static_cast<std::int64_t>(sizeof(Sum)) >= kStreamedBytes;
  }
};

/// Of C channels those whose elements are not summed alike: what makes summands is compiled for each number
/// of these.
template <Term kTerm, int C>
inline constexpr int kKinds = kTerm == Term::kOffset ? C : 1;

/// Adds R rows of the image, from y on, to sums of its columns from element x on.
template <Term kTerm, int kOffsets, int R, class Input, class Sum>
void add_to_columns(const Plane<Input, Sum>& plane, std::int64_t y, std::int64_t x, HostSpan<Sum> columns) {
  std::array<const Input*, R> rows;
  for (std::size_t r = 0; r < R; ++r) rows[r] = plane.image.row(y + static_cast<std::int64_t>(r)) + x;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Sum sum = columns.data()[i];
    for (std::size_t r = 0; r < R; ++r) sum += summand<kTerm>(rows[r][i], plane.offsets[i % kOffsets]);
    columns.data()[i] = sum;
  }
}

/// The sums of the image's columns from element x on, over rows first..end.
template <class Vectors, Term kTerm, int kOffsets, class Input, class Sum>
void sum_columns(const Plane<Input, Sum>& plane, std::int64_t first, std::int64_t end, std::int64_t x,
                 HostSpan<Sum> columns) {
  std::fill_n(columns.data(), columns.size(), Sum{0});
  Vectors::call([&] {
    std::int64_t y = first;
    for (; y + kRowsAtOnce <= end; y += kRowsAtOnce)
      add_to_columns<kTerm, kOffsets, kRowsAtOnce>(plane, y, x, columns);
    for (; y < end; ++y) add_to_columns<kTerm, kOffsets, 1>(plane, y, x, columns);
  });
}

/// Writes the last row of the table of rows first..end alone to that row's place.
template <class Vectors, Term kTerm, int C, class Input, class Sum>
void sum_band(const Plane<Input, Sum>& plane, std::int64_t first, std::int64_t end) {
  // Whole pixels of any kind, whose sums stay in the nearest cache; so many that rows are read in long runs.
  constexpr std::int64_t kBlock = (std::int64_t{16} << 10) / static_cast<std::int64_t>(sizeof(Sum)) / 12 * 12;
  const std::int64_t elements = plane.image.width * C;
  Sum* last_row = plane.begin_row(end - 1);
  std::array<Sum, C> running{};
  for (std::int64_t x = 0; x < elements; x += kBlock) {
    const std::int64_t count = std::min(kBlock, elements - x);
    alignas(64) std::array<Sum, kBlock> columns;
    sum_columns<Vectors, kTerm, kKinds<kTerm, C>>(
        plane, first, end, x, HostSpan<Sum>(columns.data(), static_cast<std::size_t>(count)));
    for (std::int64_t i = 0; i < count; i += C) {
      for (std::size_t channel = 0; channel < C; ++channel) {
        const std::int64_t element = i + static_cast<std::int64_t>(channel);
        running[channel] += columns[static_cast<std::size_t>(element)];
        last_row[x + element] = running[channel];
      }
    }
  }
}

/// Whether a vector is a line, so that each of a row that does not begin with one would lie in two.
template <class Vectors>
inline constexpr bool kLines = Vectors::kBytes == 64;

/// How rows are written.
enum class Stores {
  kAnywhere,
  kWholeLines,  // vectors of a whole line: a store to two lines would cost two, and rows begin anywhere
  kPastCaches,  // all rows but the last, which the next rows need at once
};

/// What is to be summed of the rows' elements from x on.
template <class Vectors, Term kTerm, int kOffsets, class Input, class Sum>
void convert(const std::array<const Input*, kRowsAtOnce>& rows, std::int64_t x, std::int64_t count,
             const std::array<Sum, 4>& offsets,
             std::array<std::array<Sum, kChunk<Sum>>, kRowsAtOnce>& converted) {
  Vectors::call([&] {
    const std::int64_t elements = count;  // which no sum that is written may be
    for (std::size_t r = 0; r < kRowsAtOnce; ++r) {
      const Input* from = rows[r] + x;
      Sum* to = converted[r].data();
      for (std::int64_t i = 0; i < elements; ++i) {
        to[i] = summand<kTerm>(from[i], offsets[static_cast<std::size_t>(i % kOffsets)]);
      }
    }
  });
}

/// Rows first..first+R of the table, below the row before them.
template <Term kTerm, int C, int R, class Input, class Sum>
class RowFill {
 public:
  RowFill(const Plane<Input, Sum>& plane, std::int64_t first)
      : above_(first > 0 ? plane.sums.row(first - 1) : nullptr), plane_(plane) {
    for (std::size_t r = 0; r < R; ++r) {
      in_[r] = plane.image.row(first + static_cast<std::int64_t>(r));
      out_[r] = plane.begin_row(first + static_cast<std::int64_t>(r));
    }
  }

  void fill() { fill_from(0); }

  /// One loop for all `stores`: what they differ in is little beside a chunk.
  template <class Vectors>
  void fill_by_vectors(Stores stores) {
    using Sums = ChunkSums<Vectors, Sum, C>;
    const std::int64_t whole = plane_.image.width * C / Sums::kWhole * Sums::kWhole;
    if (whole == 0) return fill();
    const bool in_chunks = kConverts || stores == Stores::kPastCaches;
    const std::int64_t chunk = in_chunks ? kChunk<Sum> / Sums::kWhole * Sums::kWhole : whole;
    Sums sums;
    std::array<StreamedRow<Sum>, R - 1> streamed;
    if (stores == Stores::kPastCaches) {
      for (std::size_t r = 0; r + 1 < R; ++r) streamed[r].begin(out_[r]);
    }
    if constexpr (kLines<Vectors>) {
      if (stores == Stores::kWholeLines) sums.begin_lines(out_);
    }
    for (std::int64_t x = 0; x < whole; x += chunk) {
      const std::int64_t count = std::min(chunk, whole - x);
      alignas(64) std::array<std::array<Sum, kConverts ? kChunk<Sum> : 1>, R> converted;
      std::array<const Sum*, R> summands;
      for (std::size_t r = 0; r < R; ++r) {
        if constexpr (kConverts) {
          summands[r] = converted[r].data();
        } else {
          summands[r] = in_[r] + x;  // the pixels themselves
        }
      }
      if constexpr (kConverts) {
        convert<Vectors, kTerm, kKinds<kTerm, C>>(in_, x, count, plane_.offsets, converted);
      }
      std::array<Sum*, R> to = out_at(x);
      if constexpr (kLines<Vectors>) {
        if (stores == Stores::kWholeLines) {
          sums.fill_lines(summands, above(x), count, to);
          continue;
        }
      }
      if (stores == Stores::kPastCaches) {
        for (std::size_t r = 0; r + 1 < R; ++r) to[r] = streamed[r].next();
      }
      sums.fill(summands, above(x), count, to);
      if (stores == Stores::kPastCaches) {
        for (auto& row : streamed) row.advance(count);
      }
    }
    if (stores == Stores::kPastCaches) {
      for (auto& row : streamed) row.finish();
    }
    if constexpr (kLines<Vectors>) {
      if (stores == Stores::kWholeLines) sums.end_lines(out_at(whole - Sums::Vector::kCount));
    }
    fill_rest(sums, whole);
  }

 private:
  static constexpr bool kConverts = !std::is_same_v<Input, Sum> || kTerm != Term::kValue;

  const Sum* above(std::int64_t x) const { return above_ != nullptr ? above_ + x : nullptr; }
  std::array<Sum*, R> out_at(std::int64_t x) const {
    std::array<Sum*, R> at = out_;
    for (auto& row : at) row += x;
    return at;
  }

  template <class Sums>
  void fill_rest(const Sums& sums, std::int64_t first) {
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t c = 0; c < C; ++c) running_[r][c] = sums.running(r, c);
    }
    fill_from(first);
  }
  /// From the pixel on that begins with that element.
  void fill_from(std::int64_t first) {
    for (std::int64_t x = first; x < plane_.image.width * C; x += C) {
      for (std::size_t channel = 0; channel < C; ++channel) {
        const std::int64_t i = x + static_cast<std::int64_t>(channel);
        Sum sum = above_ != nullptr ? above_[i] : Sum{0};
        for (std::size_t r = 0; r < R; ++r) {
          running_[r][channel] += summand<kTerm>(in_[r][i], plane_.offsets[channel]);
          sum += running_[r][channel];
          out_[r][i] = sum;
        }
      }
    }
  }

  const Sum* above_;
  const Plane<Input, Sum>& plane_;
  std::array<const Input*, R> in_;
  std::array<Sum*, R> out_;
  std::array<std::array<Sum, C>, R> running_{};
};

template <class Vectors, Term kTerm, int C, class Input, class Sum>
void fill_rows_at_once(const Plane<Input, Sum>& plane, std::int64_t first) {
  RowFill<kTerm, C, kRowsAtOnce, Input, Sum> rows(plane, first);
  if constexpr (Vectors::kBytes > PlainVectors::kBytes) {
    Stores stores = plane.is_streamed() ? Stores::kPastCaches : Stores::kAnywhere;
    if (kLines<Vectors> && stores == Stores::kAnywhere && !plane.has_whole_lines()) {
      stores = Stores::kWholeLines;
    }
    return rows.template fill_by_vectors<Vectors>(stores);
  }
  rows.fill();
}

/// Compiled once for all vectors.
template <Term kTerm, int C, class Input, class Sum>
[[gnu::noinline]] void fill_row_by_row(const Plane<Input, Sum>& plane, std::int64_t first, std::int64_t end) {
  for (std::int64_t y = first; y < end; ++y) RowFill<kTerm, C, 1, Input, Sum>(plane, y).fill();
}

template <class Vectors, Term kTerm, int C, class Input, class Sum>
void fill_band(const Plane<Input, Sum>& plane, std::int64_t first, std::int64_t end) {
  std::int64_t y = first;
  Vectors::call([&] {
    for (; y + kRowsAtOnce <= end; y += kRowsAtOnce) fill_rows_at_once<Vectors, kTerm, C>(plane, y);
  });
  finish_streaming();
  fill_row_by_row<kTerm, C>(plane, y, end);
}

}  // namespace cumulus::summed_area_table
