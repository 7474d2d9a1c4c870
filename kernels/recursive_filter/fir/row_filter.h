#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/core/div.h"
#include "kernels/core/memory.h"
#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/fir/gaussian.h"
#include "kernels/recursive_filter/fir/weighted_sums.h"

namespace cumulus::recursive_filter {

/// Filters rows, a piece at a time, which is laid out with what its boundary makes of it, every advance-th
/// pixel side by side.
template <class Real>
class RowFilter {
 public:
  /// Of pieces of so many groups, at most: pixels of the result, one of each phase. `rows` that come from
  /// elsewhere are held at once.
  RowFilter(const FirPass& pass, std::int64_t channels, std::int64_t groups, std::int64_t rows = 0)
      : pass_(pass),
        channels_(channels),
        all_groups_(divide_up(pass.out_length, pass.phases)),
        groups_(std::min(all_groups_, groups)),
        weights_(pass.weights.begin(), pass.weights.end()),
        sums_(pass.taps, pass.taps) {
    // Rows whose pixels all lie in their places need not be copied there.
    in_place_ = pass.advance == 1 && groups_ == all_groups_ && pass.first <= 0 &&
                pass.first + places(groups_) >= pass.in_length;
    plane_ = divide_up(places(groups_), pass.advance) * channels;
    const std::int64_t before = in_place_ ? -pass.first * channels : 0;
    const std::int64_t front = divide_up(before, kAligned) * kAligned - before;
    const std::int64_t line = in_place_ ? plane_ : pass.in_length * channels;
    pitch_ = divide_up(front + line, kAligned) * kAligned;
    first_input_ = front + before;
    const std::int64_t own = plane_ * pass.advance;
    memory_ = allocate_host(static_cast<std::size_t>(rows * pitch_ + own) * sizeof(Real));
    line_ = own_ = numbers() + rows * pitch_;
    if (pass.phases > 1) phase_.resize(static_cast<std::size_t>(groups_ * channels));
  }

  /// Pixels of the result before a piece, and in it.
  std::int64_t first_pixel(std::int64_t piece) const { return piece * groups_ * pass_.phases; }
  std::int64_t pixels(std::int64_t piece) const {
    return std::min(groups_ * pass_.phases, pass_.out_length - first_pixel(piece));
  }

  /// A piece of the row that begins at `from`, to `to`.
  void filter(std::int64_t piece, const Real* from, Real* to) {
    const std::int64_t first_group = piece * groups_;
    const std::int64_t groups = std::min(groups_, all_groups_ - first_group);
    line_ = own_;
    lay_out(pass_.first + first_group * pass_.advance, places(groups), from);
    add_up(pixels(piece), to);
  }

  /// Where row `row` of those that are held begins, a whole number of vectors from the one before.
  Real* input(std::int64_t row) const { return numbers() + row * pitch_ + first_input_; }
  /// What has been written there, to `to`.
  void filter_input(std::int64_t row, Real* to) {
    if (!in_place_) return filter(0, input(row), to);
    line_ = input(row) + pass_.first * channels_;
    lay_out_ends(pass_.first, places(groups_), input(row));
    add_up(pass_.out_length, to);
  }

  bool all_finite() const { return sums_.all_finite(); }

 private:
  static constexpr std::int64_t kAligned = 64 / sizeof(Real);

  Real* numbers() const { return reinterpret_cast<Real*>(memory_.data()); }

  /// Of what has been laid out, so many pixels.
  void add_up(std::int64_t length, Real* to) {
    for (std::int64_t tap = 0; tap < pass_.taps; ++tap) {
      sums_.sources[static_cast<std::size_t>(tap)] = place(tap);
    }
    for (std::int64_t phase = 0; phase < std::min(pass_.phases, length); ++phase) {
      const bool in_place = pass_.phases == 1;
      const std::int64_t pixels = divide_up(length - phase, pass_.phases);
      const typename WeightedSums<Real>::Result result = {0, weights_.data() + phase * pass_.taps,
                                                          in_place ? to : phase_.data()};
      sums_.compute({&result, 1}, pixels * channels_);
      if (in_place) return;
      copy_pixels(phase_.data(), 1, to + phase * channels_, pass_.phases, pixels);
    }
  }

  /// Where the place lies that is `at` after the first one.
  Real* place(std::int64_t at) {
    return line_ + at % pass_.advance * plane_ + at / pass_.advance * channels_;
  }

  /// Of the input that are within reach of so many groups.
  std::int64_t places(std::int64_t groups) const { return (groups - 1) * pass_.advance + pass_.taps; }

  struct Inside {
    std::int64_t begin, end;
  };
  /// Which of `places` are pixels of the row, the first being that of pixel `first`.
  Inside inside(std::int64_t first, std::int64_t places) const {
    const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, places);
    return {begin, std::clamp(pass_.in_length - first, begin, places)};
  }

  /// `places` of them, from that of pixel `first` on.
  void lay_out(std::int64_t first, std::int64_t places, const Real* from) {
    lay_out_ends(first, places, from);
    const auto [begin, end] = inside(first, places);
    if (pass_.advance == 1) {
      std::copy_n(from + (first + begin) * channels_, (end - begin) * channels_, place(begin));
      return;
    }
    for (std::int64_t at = begin; at < std::min(begin + pass_.advance, end); ++at) {
      copy_pixels(from + (first + at) * channels_, pass_.advance, place(at), 1,
                  divide_up(end - at, pass_.advance));
    }
  }

  void lay_out_ends(std::int64_t first, std::int64_t places, const Real* from) {
    const auto [begin, end] = inside(first, places);
    for (std::int64_t at = 0; at < begin; ++at) lay_out_beyond(at, first, from);
    for (std::int64_t at = end; at < places; ++at) lay_out_beyond(at, first, from);
  }

  void lay_out_beyond(std::int64_t at, std::int64_t first, const Real* from) {
    const std::int64_t source = source_pixel(first + at, pass_.in_length, pass_.boundary);
    if (source < 0) {
      std::fill_n(place(at), channels_, Real{0});
    } else {
      std::copy_n(from + source * channels_, channels_, place(at));
    }
  }

  /// Pixels that lie `from_step` and `to_step` pixels apart.
  void copy_pixels(const Real* from, std::int64_t from_step, Real* to, std::int64_t to_step,
                   std::int64_t count) const {
    const auto copy = [&](auto channels) {
      for (std::int64_t i = 0; i < count; ++i) {
        for (int c = 0; c < channels; ++c) {
          to[i * to_step * channels + c] = from[i * from_step * channels + c];
        }
      }
    };
    if (channels_ == 1) return copy(std::integral_constant<int, 1>());
    if (channels_ == 2) return copy(std::integral_constant<int, 2>());
    if (channels_ == 3) return copy(std::integral_constant<int, 3>());
    copy(std::integral_constant<int, 4>());
  }

  const FirPass& pass_;
  std::int64_t channels_;
  std::int64_t all_groups_;
  std::int64_t groups_;  // of a piece
  bool in_place_;
  std::int64_t plane_;
  std::int64_t pitch_;        // from row to row of those that are held
  std::int64_t first_input_;  // numbers before the first pixel of these
  HostMemory memory_;
  Real* own_;   // a line for other rows
  Real* line_;  // that is filtered
  std::vector<Real> phase_;
  std::vector<Real> weights_;
  WeightedSums<Real> sums_;
};

}  // namespace cumulus::recursive_filter
