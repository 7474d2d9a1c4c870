#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/core/vector_width.h"
#include "kernels/summed_area_table/cpu/vectors.h"

// Sums of a few rows of a table, a chunk of them at a time, whatever the pixels were: so there is one of
// these for each kind of sums and vectors, and not for each kind of pixels too.

namespace cumulus::summed_area_table {

/// Rows whose running sums advance together: their additions do not wait for each other.
inline constexpr std::int64_t kRowsAtOnce = 4;

/// Goes along kRowsAtOnce rows, one below the other, of C channels.
template <class Vectors, class Sum, int C>
class ChunkSums {
 public:
  using Vector = SumVector<Sum, Vectors::kBytes>;
  /// Sums that are whole vectors and whole pixels.
  static constexpr int kWhole = C == 3 ? 3 * Vector::kCount : Vector::kCount;
  /// An address in each row.
  template <class T>
  using Rows = std::array<T*, kRowsAtOnce>;

  /// The sums of the next `count` summands, whole vectors of them, on top of the sums `above` the first row,
  /// or of none.
  void fill(const Rows<const Sum>& summands, const Sum* above, std::int64_t count, const Rows<Sum>& to) {
    Vectors::call([&] {
      advance(
          summands, above,
          count, [&](auto r, std::int64_t i, const Vector& sums) __attribute__((always_inline)) {
            sums.store(to[r] + i);
          });
    });
  }

  /// The same by stores of whole lines, whichever rows `to` begin with one: between begin_lines and
  /// end_lines.
  void begin_lines(const Rows<Sum>& to) {
    for_each_row([&](auto r) {
      const auto shared =
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to[r]) % Vectors::kBytes / sizeof(Sum));
      Vector::lanes_of_line(shared, lanes_[r]);
      lines_[r] = to[r] - shared;
    });
    at_begin_ = true;
  }
  void fill_lines(const Rows<const Sum>& summands, const Sum* above, std::int64_t count,
                  const Rows<Sum>& to) {
    Vectors::call([&] {
      std::array<Vector, kRowsAtOnce> previous = previous_;
      advance(
          summands, above,
          count, [&](auto r, std::int64_t i, const Vector& sums) __attribute__((always_inline)) {
            if (at_begin_ && i == 0) {
              sums.store(to[r]);
            } else {
              sums.store_line(previous[r], lanes_[r], lines_[r] + i);
            }
            previous[r] = sums;
          });
      previous_ = previous;
    });
    for (auto& line : lines_) line += count;
    at_begin_ = false;
  }
  /// The last vector of each row, to where it belongs.
  void end_lines(const Rows<Sum>& to) const {
    Vectors::call([&] { for_each_row([&](auto r) { previous_[r].store(to[r]); }); });
  }

  /// Of all whole pixels of row r so far.
  Sum running(std::size_t r, std::size_t channel) const { return before_[r].lane(channel); }

 private:
  /// f(0), f(1), ..., as constants: arrays of vectors stay in registers.
  template <class F>
  [[gnu::always_inline]] static void for_each_row(const F& f) {
    [&]<std::size_t... kRows>(std::index_sequence<kRows...>) __attribute__((always_inline)) {
      (f(std::integral_constant<std::size_t, kRows>{}), ...);
    }
    (std::make_index_sequence<kRowsAtOnce>{});
  }

  /// Calls store(r, i, sums) with vectors of sums of each row r.
  template <class Store>
  [[gnu::always_inline]] void advance(const Rows<const Sum>& summands, const Sum* above, std::int64_t count,
                                      const Store& store) {
    std::array<Vector, kRowsAtOnce> before = before_;
    for (std::int64_t i = 0; i < count; i += Vector::kCount) {
      // All reads before the writes: those of rows whose addresses differ by a multiple of 4096 would wait.
      std::array<Vector, kRowsAtOnce> rows;
      for_each_row([&](auto r) __attribute__((always_inline)) { rows[r].load(summands[r] + i); });
      Vector sum;
      if (above != nullptr) sum.load(above + i);
      for_each_row([&](auto r) __attribute__((always_inline)) {
        rows[r].template accumulate<C>(before[r]);
        sum.add(rows[r]);
        store(r, i, sum);
      });
    }
    before_ = before;
  }

  std::array<Vector, kRowsAtOnce> before_{};  // the rows' running sums, of each lane's channel
  std::array<Vector, kRowsAtOnce> previous_{};
  std::array<SumVector<typename Vector::Lane, Vectors::kBytes>, kRowsAtOnce> lanes_{};
  Rows<Sum> lines_{};
  bool at_begin_ = false;
};

}  // namespace cumulus::summed_area_table
