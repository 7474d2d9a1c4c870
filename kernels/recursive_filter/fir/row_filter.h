#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/core/div.h"
#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/fir/gaussian.h"
#include "kernels/recursive_filter/fir/weighted_sums.h"

namespace cumulus::recursive_filter {

/// Filters rows, a piece at a time, which is laid out with what its boundary makes of it, every advance-th
/// pixel side by side.
template <class Real>
class RowFilter {
 public:
  /// Of pieces of so many groups, at most: pixels of the result, one of each phase.
  RowFilter(const FirPass& pass, std::int64_t channels, std::int64_t groups)
      : pass_(pass),
        channels_(channels),
        all_groups_(divide_up(pass.out_length, pass.phases)),
        groups_(std::min(all_groups_, groups)),
        weights_(pass.weights.begin(), pass.weights.end()),
        sums_(pass.taps, pass.taps) {
    plane_ = divide_up(places(groups_), pass.advance) * channels;
    line_.resize(static_cast<std::size_t>(plane_ * pass.advance));
    if (pass.phases > 1) phase_.resize(static_cast<std::size_t>(groups_ * channels));
    for (std::int64_t tap = 0; tap < pass.taps; ++tap) {
      sums_.sources[static_cast<std::size_t>(tap)] = place(tap);
    }
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
    lay_out(pass_.first + first_group * pass_.advance, places(groups), from);
    const std::int64_t length = pixels(piece);
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

 private:
  /// Where the place lies that is `at` after the first one.
  Real* place(std::int64_t at) {
    return line_.data() + at % pass_.advance * plane_ + at / pass_.advance * channels_;
  }

  /// Of the input that are within reach of so many groups.
  std::int64_t places(std::int64_t groups) const { return (groups - 1) * pass_.advance + pass_.taps; }

  /// `places` of them, from that of pixel `first` on.
  void lay_out(std::int64_t first, std::int64_t places, const Real* from) {
    const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, places);
    const std::int64_t end = std::clamp(pass_.in_length - first, begin, places);
    for (std::int64_t at = 0; at < begin; ++at) lay_out_beyond(at, first, from);
    for (std::int64_t at = end; at < places; ++at) lay_out_beyond(at, first, from);
    if (pass_.advance == 1) {
      std::copy_n(from + (first + begin) * channels_, (end - begin) * channels_, place(begin));
      return;
    }
    for (std::int64_t at = begin; at < std::min(begin + pass_.advance, end); ++at) {
      copy_pixels(from + (first + at) * channels_, pass_.advance, place(at), 1,
                  divide_up(end - at, pass_.advance));
    }
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
  std::int64_t plane_;
  std::vector<Real> line_;
  std::vector<Real> phase_;
  std::vector<Real> weights_;
  WeightedSums<Real> sums_;
};

}  // namespace cumulus::recursive_filter
