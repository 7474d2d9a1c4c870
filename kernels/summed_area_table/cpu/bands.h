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

/// Adds R rows of the image, from y on, to sums of its columns from element x on.
template <Term kTerm, int C, int R, class Input, class Sum>
void add_to_columns(const Plane<Input, Sum>& plane, std::int64_t y, std::int64_t x, std::int64_t count,
                    Sum* columns) {
  std::array<const Input*, R> rows;
  for (std::size_t r = 0; r < R; ++r) rows[r] = plane.image.row(y + static_cast<std::int64_t>(r)) + x;
  for (std::int64_t i = 0; i < count; ++i) {
    Sum sum = columns[i];
    for (std::size_t r = 0; r < R; ++r) {
      sum += summand<kTerm>(rows[r][i], plane.offsets[static_cast<std::size_t>(i % C)]);
    }
    columns[i] = sum;
  }
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
    std::fill_n(columns.begin(), count, Sum{0});
    Vectors::call([&] {
      std::int64_t y = first;
      for (; y + kRowsAtOnce <= end; y += kRowsAtOnce)
        add_to_columns<kTerm, C, kRowsAtOnce>(plane, y, x, count, columns.data());
      for (; y < end; ++y) add_to_columns<kTerm, C, 1>(plane, y, x, count, columns.data());
    });
    for (std::int64_t i = 0; i < count; i += C) {
      for (std::size_t channel = 0; channel < C; ++channel) {
        const std::int64_t element = i + static_cast<std::int64_t>(channel);
        running[channel] += columns[static_cast<std::size_t>(element)];
        last_row[x + element] = running[channel];
      }
    }
  }
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

  template <class Vectors>
  void fill_by_vectors() {
    ChunkSums<Vectors, Sum, C> sums;
    const std::int64_t whole = whole_vectors(sums);
    for_each_chunk(whole, kConverts ? chunk(sums) : whole,
                   [&](std::int64_t x, std::int64_t count, const auto& summands) {
                     sums.fill(summands, above(x), count, out_at(x));
                   });
    fill_rest(sums, whole);
  }
  /// Vectors of a whole line: a store to two lines would cost two, and rows begin anywhere.
  template <class Vectors>
  void fill_by_lines() {
    ChunkSums<Vectors, Sum, C> sums;
    const std::int64_t whole = whole_vectors(sums);
    if (whole == 0) return fill();
    sums.begin_lines(out_);
    for_each_chunk(whole, kConverts ? chunk(sums) : whole,
                   [&](std::int64_t x, std::int64_t count, const auto& summands) {
                     sums.fill_lines(summands, above(x), count, out_at(x));
                   });
    sums.end_lines(out_at(whole - ChunkSums<Vectors, Sum, C>::Vector::kCount));
    fill_rest(sums, whole);
  }
  /// All rows but the last, which the next rows need at once, go past the caches.
  template <class Vectors>
  void fill_past_caches() {
    ChunkSums<Vectors, Sum, C> sums;
    const std::int64_t whole = whole_vectors(sums);
    std::array<StreamedRow<Sum>, R - 1> streamed;
    for (std::size_t r = 0; r + 1 < R; ++r) streamed[r].begin(out_[r]);
    for_each_chunk(whole, chunk(sums), [&](std::int64_t x, std::int64_t count, const auto& summands) {
      std::array<Sum*, R> to;
      for (std::size_t r = 0; r + 1 < R; ++r) to[r] = streamed[r].next();
      to[R - 1] = out_[R - 1] + x;
      sums.fill(summands, above(x), count, to);
      for (auto& row : streamed) row.advance(count);
    });
    for (auto& row : streamed) row.finish();
    fill_rest(sums, whole);
  }

 private:
  static constexpr bool kConverts = !std::is_same_v<Input, Sum> || kTerm != Term::kValue;

  /// Elements of a row, and of a chunk, that are whole vectors and pixels.
  template <class Sums>
  std::int64_t whole_vectors(const Sums& /*sums*/) const {
    return plane_.image.width * C / Sums::kWhole * Sums::kWhole;
  }
  template <class Sums>
  static std::int64_t chunk(const Sums& /*sums*/) {
    return kChunk<Sum> / Sums::kWhole * Sums::kWhole;
  }
  const Sum* above(std::int64_t x) const { return above_ != nullptr ? above_ + x : nullptr; }
  std::array<Sum*, R> out_at(std::int64_t x) const {
    std::array<Sum*, R> at = out_;
    for (auto& row : at) row += x;
    return at;
  }

  /// Calls f(x, count, summands) with what is to be summed from element x on of each row.
  template <class F>
  void for_each_chunk(std::int64_t whole, std::int64_t chunk, const F& f) const {
    for (std::int64_t x = 0; x < whole; x += chunk) {
      const std::int64_t count = std::min(chunk, whole - x);
      alignas(64) std::array<std::array<Sum, kConverts ? kChunk<Sum> : 1>, R> converted;
      std::array<const Sum*, R> summands;
      for (std::size_t r = 0; r < R; ++r) summands[r] = summands_of(in_[r] + x, count, converted[r].data());
      f(x, count, summands);
    }
  }
  /// The pixels themselves where they are what is summed.
  const Sum* summands_of(const Input* pixels, std::int64_t count, Sum* converted) const {
    if constexpr (!kConverts) {
      return pixels;
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        converted[i] = summand<kTerm>(pixels[i], plane_.offsets[static_cast<std::size_t>(i % C)]);
      }
      return converted;
    }
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
    if (plane.is_streamed()) return rows.template fill_past_caches<Vectors>();
    // Where a vector is a line, each of a row that does not begin with one would lie in two.
    if constexpr (Vectors::kBytes == 64) {
      if (!plane.has_whole_lines()) return rows.template fill_by_lines<Vectors>();
    }
    return rows.template fill_by_vectors<Vectors>();
  }
  rows.fill();
}

template <class Vectors, Term kTerm, int C, class Input, class Sum>
void fill_band(const Plane<Input, Sum>& plane, std::int64_t first, std::int64_t end) {
  std::int64_t y = first;
  Vectors::call([&] {
    for (; y + kRowsAtOnce <= end; y += kRowsAtOnce) fill_rows_at_once<Vectors, kTerm, C>(plane, y);
  });
  finish_streaming();
  for (; y < end; ++y) RowFill<kTerm, C, 1, Input, Sum>(plane, y).fill();
}

}  // namespace cumulus::summed_area_table
