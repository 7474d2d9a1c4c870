#include "kernels/recursive_filter/math/truncation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/core/div.h"
#include "kernels/recursive_filter/math/line.h"
#include "kernels/recursive_filter/strips/strips.h"
#include "kernels/recursive_filter/tuning.h"

namespace cumulus::recursive_filter {
namespace {

using Real = long double;

/// How a direction's response to a pixel decays, and its gain.
struct Decay {
  std::array<StateVector, kMaxWindow + 1> tails{};  // sums of magnitudes from `window` tiles on
  std::array<Real, kMaxWindow + 1> output_tails{};  // of |impulse response| from there on
  Real gain = 0;                                    // all of it
};

/// Relative to a state's usual size: below it a response is not followed any further.
constexpr Real kNegligible = 1e-20L;

bool is_negligible(const StateVector& response, const StateVector& total) {
  for (std::size_t k = 0; k < response.size(); ++k) {
    if (std::abs(response[k]) * kTile > kNegligible * total[k]) return false;
  }
  return true;
}

Decay decay_of(const DirectionPlan& plan) {
  const auto order = static_cast<std::size_t>(plan.transition.order);
  Decay decay;
  const StateVector weights = plan.weights();
  StateVector response = plan.input;
  StateVector total{};
  std::size_t tile = 0;
  for (; tile < 2 * kMaxWindow && (tile == 0 || !is_negligible(response, total)); ++tile) {
    for (int pixel = 0; pixel < kTile; ++pixel) {
      Real output = tile == 0 && pixel == 0 ? plan.sections.direct : 0;
      for (std::size_t k = 0; k < order; ++k) {
        decay.tails[std::min<std::size_t>(tile, kMaxWindow)][k] += std::abs(response[k]);
        total[k] += std::abs(response[k]);
        output += weights[k] * response[k];
      }
      decay.output_tails[std::min<std::size_t>(tile, kMaxWindow)] += std::abs(output);
      response = plan.transition * response;
    }
  }
  // The part that was not followed: negligible, or unbounded.
  const bool decayed = is_negligible(response, total);
  const Real infinity = std::numeric_limits<Real>::infinity();
  for (std::size_t k = 0; k < order; ++k) {
    const Real rest = decayed ? kTile * kNegligible * total[k] : infinity;
    decay.tails.back()[k] += rest;
    if (weights[k] != 0) decay.output_tails.back() += std::abs(weights[k]) * rest;
  }
  for (std::size_t shorter = kMaxWindow; shorter-- > 0;) {
    decay.output_tails[shorter] += decay.output_tails[shorter + 1];
    for (std::size_t k = 0; k < order; ++k) decay.tails[shorter][k] += decay.tails[shorter + 1][k];
  }
  decay.gain = decay.output_tails[0];
  return decay;
}

StateVector product_of_magnitudes(const StateMatrix& matrix, const StateVector& vector) {
  StateVector product{};
  const auto order = static_cast<std::size_t>(matrix.order);
  for (std::size_t row = 0; row < order; ++row) {
    for (std::size_t column = 0; column < order; ++column) {
      product[row] += std::abs(matrix.rows[row][column]) * vector[column];
    }
  }
  return product;
}

/// Responses of the pixels of a tile's column to the column's carries: `of[y][k]` to the k-th number of the
/// causal carry, then of the anticausal one.
template <int Order>
struct TileResponses {
  float of[kTile][2 * Order];

  TileResponses(const AxisPlan& plan, std::int64_t rows) : of{} {
    const auto causal = sections_of<Order, Real>(plan.causal);
    const auto anticausal = sections_of<Order, Real>(plan.anticausal);
    const auto through_causal = small_matrix<Order, Real>(plan.through_causal);
    const auto through_anticausal = small_matrix<Order, Real>(plan.through_anticausal);
    for (int k = 0; k < 2 * Order; ++k) {
      Real before[Order] = {};
      Real after[Order] = {};
      (k < Order ? before[k] : after[k - Order]) = 1;
      Real line[kTile] = {};
      for (std::int64_t y = 0; y < rows; ++y) causal.filter(before, line[y]);
      Real state[Order] = {};
      through_causal.add_product(before, state);
      through_anticausal.add_product(after, state);
      for (std::int64_t y = rows - 1; y >= 0; --y) anticausal.filter(state, line[y]);
      for (std::int64_t y = 0; y < rows; ++y) of[y][k] = static_cast<float>(line[y]);
    }
  }
};

/// One axis: what windows of each size leave out.
class AxisTruncation {
 public:
  explicit AxisTruncation(const AxisPlan& plan)
      : plan_(plan),
        tiles_(divide_up(plan.length, kTile)),
        causal_(decay_of(plan.causal)),
        anticausal_(decay_of(plan.anticausal)) {
    if (plan.needs_runs()) {
      causal_transitions_ = largest_transitions(plan.causal);
      anticausal_transitions_ = largest_transitions(plan.anticausal);
    }
    with_order(plan.order, [&]<int Order>() {
      for (const std::int64_t rows : {std::int64_t{kTile}, plan.length - (tiles_ - 1) * kTile}) {
        const TileResponses<Order> responses(plan, rows);
        for (const auto& of_pixel : responses.of) {
          for (std::size_t k = 0; k < 2 * Order; ++k) {
            Real& largest = k < Order ? to_before_[k] : to_after_[k - Order];
            largest = std::max(largest, static_cast<Real>(std::abs(of_pixel[k])));
          }
        }
      }
    });
  }

  /// The window that holds the axis.
  std::int64_t last_tile() const { return plan_.identity ? 0 : tiles_ - 1; }
  Real gain() const { return plan_.identity ? 1 : causal_.gain * anticausal_.gain; }

  /// Of a filtered pixel, relative to the image's largest magnitude.
  Real bound(std::int64_t window) const {
    if (plan_.identity || window >= tiles_ - 1) return 0;
    const StateVector& before = causal_.tails[static_cast<std::size_t>(window)];
    const StateVector& after = anticausal_.tails[static_cast<std::size_t>(window)];
    Real bound = weighed(to_before_, before) + weighed(to_after_, after);
    if (!plan_.needs_runs()) return bound;
    // A run of the reversed image has decayed as much as the direction's own run.
    const StateVector start = sum(product_of_magnitudes(plan_.start_from_causal_run, before),
                                  product_of_magnitudes(plan_.start_from_reversed_run, before));
    const StateVector end = sum(product_of_magnitudes(plan_.end_from_anticausal_run, after),
                                product_of_magnitudes(plan_.end_from_reversed_run, after));
    return bound + weighed(to_before_, product_of_magnitudes(causal_transitions_, start)) +
           weighed(to_after_, product_of_magnitudes(anticausal_transitions_, end));
  }

  /// The same along strips, where both directions start from a zero state at the window's ends: the causal
  /// one over the image, the anticausal one over the causal result.
  Real bound_along_strips(std::int64_t window) const {
    if (plan_.identity) return 0;
    const auto tiles = static_cast<std::size_t>(window);
    return causal_.output_tails[tiles] * anticausal_.gain + causal_.gain * anticausal_.output_tails[tiles];
  }
  /// And across strips.
  Real bound_across_strips(std::int64_t window) const {
    if (plan_.identity) return 0;
    const auto tiles = static_cast<std::size_t>(window);
    return weighed(to_before_, causal_.tails[tiles]) + weighed(to_after_, anticausal_.tails[tiles]);
  }

  std::optional<std::int64_t> smallest_window(Real max_error) const {
    if (plan_.identity) return 0;
    for (std::int64_t window = std::min<std::int64_t>(1, tiles_ - 1); window <= kMaxWindow; ++window) {
      if (bound(window) <= max_error) return std::min(window, tiles_ - 1);
    }
    if (tiles_ <= kMaxWholeAxis) return tiles_ - 1;
    return std::nullopt;
  }

 private:
  Real weighed(const StateVector& responses, const StateVector& state) const {
    Real total = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(plan_.order); ++k) total += responses[k] * state[k];
    return total;
  }
  static StateVector sum(StateVector a, const StateVector& b) {
    for (std::size_t k = 0; k < a.size(); ++k) a[k] += b[k];
    return a;
  }
  /// Magnitudes that bound the border state's part in the carries of all tiles that see it.
  static StateMatrix largest_transitions(const DirectionPlan& direction) {
    const StateMatrix tile_transition = power(direction.transition, kTile);
    StateMatrix product = StateMatrix::identity(tile_transition.order);
    StateMatrix largest = product;
    for (int tile = 0; tile < kMaxWindow; ++tile) {
      product = product * tile_transition;
      for (int row = 0; row < product.order; ++row) {
        for (int column = 0; column < product.order; ++column) {
          largest.at(row, column) = std::max(largest.at(row, column), std::abs(product.at(row, column)));
        }
      }
    }
    return largest;
  }

  const AxisPlan& plan_;
  std::int64_t tiles_;
  Decay causal_, anticausal_;
  StateMatrix causal_transitions_, anticausal_transitions_;
  StateVector to_before_{}, to_after_{};
};

}  // namespace

std::optional<Windows> plan_windows(const AxisPlan& y, const AxisPlan& x, double max_truncation_error) {
  const AxisTruncation along_y(y);
  const AxisTruncation along_x(x);
  const Real share = static_cast<Real>(max_truncation_error) / 2;
  const auto window_y = along_y.smallest_window(share / along_x.gain());
  if (!window_y.has_value()) return std::nullopt;
  const Real error_y = along_y.bound(*window_y);
  const auto window_x = along_x.smallest_window(share / (along_y.gain() + error_y));
  if (!window_x.has_value()) return std::nullopt;
  const auto bound = [&](Real of_y, Real of_x) {
    return static_cast<double>(of_y * along_x.gain() + of_x * (along_y.gain() + of_y));
  };
  Windows windows{*window_y, *window_x, 0, std::nullopt};
  if (window_y != along_y.last_tile() || window_x != along_x.last_tile()) {
    windows.truncation_bound = bound(error_y, along_x.bound(*window_x));
  }
  if (!strips_serve(y, x)) return windows;
  const auto smallest = [](Real most, const auto& bound_of) {
    for (std::int64_t window = 0; window <= kMaxStripWindow; ++window) {
      if (bound_of(window) <= most) return std::optional(window);
    }
    return std::optional<std::int64_t>();
  };
  const auto strip_y =
      smallest(share / along_x.gain(), [&](auto w) { return along_y.bound_along_strips(w); });
  if (!strip_y.has_value()) return windows;
  const Real strip_error_y = along_y.bound_along_strips(*strip_y);
  const auto strip_x = smallest(share / (along_y.gain() + strip_error_y),
                                [&](auto w) { return along_x.bound_across_strips(w); });
  if (strip_x.has_value()) {
    windows.of_strips = {*strip_y, *strip_x, bound(strip_error_y, along_x.bound_across_strips(*strip_x))};
  }
  return windows;
}

}  // namespace cumulus::recursive_filter
