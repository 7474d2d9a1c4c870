#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/core/views.h"
#include "kernels/primitives/streaming_stores.h"
#include "kernels/primitives/vector_width.h"
#include "kernels/summed_area_table/summed_area_table_tuning.h"
#include "kernels/summed_area_table/summed_area_table_types.h"
#include "kernels/summed_area_table/summed_area_table_vectors.h"

// A band of a table's rows on the CPU: its last row, summed, and the others, filled below the band before.

namespace cumulus::summed_area_table {

/// Rows whose running sums advance together: their additions do not wait for each other.
inline constexpr std::int64_t kRowsAtOnce = 4;

/// One image and its table: `sums` holds the inclusive sums, its rows maybe those of a wider table.
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
template <class Vectors, Term kTerm, int C, int R, class Input, class Sum>
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

  void fill_by_vectors() {
    const std::int64_t whole = whole_vectors();
    const std::int64_t stretch = kConverts ? kStretch<Sum> : whole;
    std::array<Vector, R> before{};
    for (std::int64_t x = 0; x < whole; x += stretch) {
      fill_stretch(
          x, std::min(stretch, whole - x),
          before, [&](auto r, std::int64_t i, const Vector& sums) __attribute__((always_inline)) {
            sums.store(out_[r] + x + i);
          });
    }
    fill_rest(before);
  }
  /// Vectors of a whole line: a store to two lines would cost two, and rows begin anywhere.
  void fill_by_lines() {
    const std::int64_t whole = whole_vectors();
    if (whole == 0) return fill();
    const std::int64_t stretch = kConverts ? kStretch<Sum> : whole;
    std::array<Vector, R> before{};
    std::array<Vector, R> previous{};
    std::array<SumVector<typename Vector::Lane, Vectors::kBytes>, R> lanes;
    std::array<Sum*, R> line;
    for_each_row([&](auto r) __attribute__((always_inline)) {
      const auto shared = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out_[r]) %
                                                    Vectors::kBytes / sizeof(Sum));
      Vector::lanes_of_line(shared, lanes[r]);
      line[r] = out_[r] - shared;
    });
    for (std::int64_t x = 0; x < whole; x += stretch) {
      fill_stretch(
          x, std::min(stretch, whole - x),
          before, [&](auto r, std::int64_t i, const Vector& sums) __attribute__((always_inline)) {
            if (x + i == 0) {
              sums.store(out_[r]);
            } else {
              sums.store_line(previous[r], lanes[r], line[r] + x + i);
            }
            previous[r] = sums;
          });
    }
    for_each_row([&](auto r)
                     __attribute__((always_inline)) { previous[r].store(out_[r] + whole - Vector::kCount); });
    fill_rest(before);
  }
  /// All rows but the last, which the next rows need at once, go past the caches.
  void fill_past_caches() {
    const std::int64_t whole = whole_vectors();
    std::array<StreamedRow<Sum>, R - 1> streamed;
    for (std::size_t r = 0; r + 1 < R; ++r) streamed[r].begin(out_[r]);
    std::array<Vector, R> before{};
    for (std::int64_t x = 0; x < whole; x += kStretch<Sum>) {
      const std::int64_t count = std::min(kStretch<Sum>, whole - x);
      std::array<Sum*, R> to;
      for (std::size_t r = 0; r + 1 < R; ++r) to[r] = streamed[r].next();
      to[R - 1] = out_[R - 1] + x;
      fill_stretch(
          x, count, before, [&](auto r, std::int64_t i, const Vector& sums) __attribute__((always_inline)) {
            sums.store(to[r] + i);
          });
      for (auto& row : streamed) row.advance(count);
    }
    for (auto& row : streamed) row.finish();
    fill_rest(before);
  }

 private:
  using Vector = SumVector<Sum, Vectors::kBytes>;
  static constexpr bool kConverts = !std::is_same_v<Input, Sum> || kTerm != Term::kValue;

  std::int64_t whole_vectors() const { return plane_.image.width / Vector::kCount * Vector::kCount; }

  /// f(0), ..., f(R - 1), as constants: arrays of vectors stay in registers.
  template <class F>
  [[gnu::always_inline]] static void for_each_row(const F& f) {
    [&]<std::size_t... kRows>(std::index_sequence<kRows...>) __attribute__((always_inline)) {
      (f(std::integral_constant<std::size_t, kRows>{}), ...);
    }
    (std::make_index_sequence<R>{});
  }

  /// Calls store(r, i, sums) with vectors of sums of each row r, from pixel x + i on.
  template <class Store>
  [[gnu::always_inline]] void fill_stretch(std::int64_t x, std::int64_t count,
                                           std::array<Vector, R>& sums_before, const Store& store) {
    static_assert(C == 1);
    alignas(64) std::array<std::array<Sum, kConverts ? kStretch<Sum> : 1>, R> converted;
    std::array<const Sum*, R> from;
    for (std::size_t r = 0; r < R; ++r) from[r] = summands_of(in_[r] + x, count, converted[r].data());
    const Sum* above = above_ != nullptr ? above_ + x : nullptr;
    std::array<Vector, R> before = sums_before;
    for (std::int64_t i = 0; i < count; i += Vector::kCount) {
      // All reads before the writes: those of rows whose addresses differ by a multiple of 4096 would wait.
      std::array<Vector, R> rows;
      for_each_row([&](auto r) __attribute__((always_inline)) { rows[r].load(from[r] + i); });
      Vector sum;
      if (above != nullptr) sum.load(above + i);
      for_each_row([&](auto r) __attribute__((always_inline)) {
        rows[r].accumulate(before[r]);
        sum.add(rows[r]);
        store(r, i, sum);
      });
    }
    sums_before = before;
  }
  /// The pixels themselves where they are what is summed.
  const Sum* summands_of(const Input* pixels, std::int64_t count, Sum* converted) const {
    if constexpr (!kConverts) {
      return pixels;
    } else {
      for (std::int64_t i = 0; i < count; ++i) converted[i] = summand<kTerm>(pixels[i], plane_.offsets[0]);
      return converted;
    }
  }
  void fill_rest(const std::array<Vector, R>& before) {
    for (std::size_t r = 0; r < R; ++r) running_[r][0] = before[r].first();
    fill_from(whole_vectors());
  }
  void fill_from(std::int64_t first) {
    for (std::int64_t x = first * C; x < plane_.image.width * C; x += C) {
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
  RowFill<Vectors, kTerm, C, kRowsAtOnce, Input, Sum> rows(plane, first);
  if constexpr (C == 1 && Vectors::kBytes > PlainVectors::kBytes) {
    if (plane.is_streamed()) return rows.fill_past_caches();
    // Where a vector is a line, each of a row that does not begin with one would lie in two.
    if constexpr (Vectors::kBytes == 64) {
      if (!plane.has_whole_lines()) return rows.fill_by_lines();
    }
    return rows.fill_by_vectors();
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
  for (; y < end; ++y) RowFill<PlainVectors, kTerm, C, 1, Input, Sum>(plane, y).fill();
}

}  // namespace cumulus::summed_area_table
