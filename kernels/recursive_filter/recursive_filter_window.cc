#include "kernels/recursive_filter/recursive_filter_window.h"

#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/recursive_filter/recursive_filter_scratch.h"
#include "kernels/recursive_filter/recursive_filter_strips.h"

namespace cumulus::recursive_filter {
namespace {

using Real = long double;

/// What is left of a pixel in a direction's state, and what the direction does to a signal.
struct Forgetting {
  std::array<StateVector, kMaxWindow + 1> tails{};  // sums of magnitudes from `window` tiles on
  std::array<Real, kMaxWindow + 1> output_tails{};  // of |impulse response| from there on
  Real gain = 0;                                    // all of it
};

/// The share of a state's usual size below which what is left of a pixel is not followed any further.
constexpr Real kNothing = 1e-20L;

bool is_nothing(const StateVector& response, const StateVector& total) {
  for (std::size_t k = 0; k < response.size(); ++k) {
    if (std::abs(response[k]) * kTile > kNothing * total[k]) return false;
  }
  return true;
}

Forgetting forgetting_of(const DirectionPlan& plan) {
  const auto order = static_cast<std::size_t>(plan.transition.order);
  Forgetting forgetting;
  const StateVector weights = plan.weights();
  StateVector response = plan.input;
  StateVector total{};
  std::size_t tile = 0;
  for (; tile < 2 * kMaxWindow && (tile == 0 || !is_nothing(response, total)); ++tile) {
    for (int pixel = 0; pixel < kTile; ++pixel) {
      Real output = tile == 0 && pixel == 0 ? plan.sections.direct : 0;
      for (std::size_t k = 0; k < order; ++k) {
        forgetting.tails[std::min<std::size_t>(tile, kMaxWindow)][k] += std::abs(response[k]);
        total[k] += std::abs(response[k]);
        output += weights[k] * response[k];
      }
      forgetting.output_tails[std::min<std::size_t>(tile, kMaxWindow)] += std::abs(output);
      response = plan.transition * response;
    }
  }
  // What was not followed: a trifle, or nobody knows how much.
  const bool forgotten = is_nothing(response, total);
  const Real infinity = std::numeric_limits<Real>::infinity();
  for (std::size_t k = 0; k < order; ++k) {
    const Real rest = forgotten ? kTile * kNothing * total[k] : infinity;
    forgetting.tails.back()[k] += rest;
    if (weights[k] != 0) forgetting.output_tails.back() += std::abs(weights[k]) * rest;
  }
  for (std::size_t shorter = kMaxWindow; shorter-- > 0;) {
    forgetting.output_tails[shorter] += forgetting.output_tails[shorter + 1];
    for (std::size_t k = 0; k < order; ++k) forgetting.tails[shorter][k] += forgetting.tails[shorter + 1][k];
  }
  forgetting.gain = forgetting.output_tails[0];
  return forgetting;
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

/// One axis: what windows of each size leave out.
class AxisTruncation {
 public:
  explicit AxisTruncation(const AxisPlan& plan)
      : plan_(plan),
        tiles_((plan.length + kTile - 1) / kTile),
        causal_(forgetting_of(plan.causal)),
        anticausal_(forgetting_of(plan.anticausal)) {
    if (plan.needs_runs()) {
      causal_moves_ = largest_moves(plan.causal);
      anticausal_moves_ = largest_moves(plan.anticausal);
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
    // A run of the reversed image has forgotten as much as the direction's own run.
    const StateVector start = sum(product_of_magnitudes(plan_.start_from_causal_run, before),
                                  product_of_magnitudes(plan_.start_from_reversed_run, before));
    const StateVector end = sum(product_of_magnitudes(plan_.end_from_anticausal_run, after),
                                product_of_magnitudes(plan_.end_from_reversed_run, after));
    return bound + weighed(to_before_, product_of_magnitudes(causal_moves_, start)) +
           weighed(to_after_, product_of_magnitudes(anticausal_moves_, end));
  }

  /// The same where strips go along the axis, which know nothing of what lies beyond the window: the causal
  /// direction has forgotten the image before it, and the anticausal one the causal result behind it.
  Real bound_along_strips(std::int64_t window) const {
    if (plan_.identity) return 0;
    const auto tiles = static_cast<std::size_t>(window);
    return causal_.output_tails[tiles] * anticausal_.gain + causal_.gain * anticausal_.output_tails[tiles];
  }
  /// And where they lie side by side.
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
  /// Magnitudes that bound how the border's state reaches any of the tiles that see it.
  static StateMatrix largest_moves(const DirectionPlan& direction) {
    const StateMatrix over_tile = power(direction.transition, kTile);
    StateMatrix moved = StateMatrix::identity(over_tile.order);
    StateMatrix largest = moved;
    for (int tile = 0; tile < kMaxWindow; ++tile) {
      moved = moved * over_tile;
      for (int row = 0; row < moved.order; ++row) {
        for (int column = 0; column < moved.order; ++column) {
          largest.at(row, column) = std::max(largest.at(row, column), std::abs(moved.at(row, column)));
        }
      }
    }
    return largest;
  }

  const AxisPlan& plan_;
  std::int64_t tiles_;
  Forgetting causal_, anticausal_;
  StateMatrix causal_moves_, anticausal_moves_;
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
    for (std::int64_t window = 0; window <= kMostStripWindow; ++window) {
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

namespace {

std::int64_t tiles_of(std::int64_t pixels) { return (pixels + kTile - 1) / kTile; }

RecursiveFilterPlan make_plan(const RecursiveFilter& filter, std::int64_t height, std::int64_t width,
                              bool of_doubles, const RecursiveFilterChoice& choice) {
  using Method = RecursiveFilterMethod;
  const Precision precision = of_doubles ? Precision::kDouble : precision_for(filter);
  const int order = kernel_order(filter);
  RecursiveFilterPlan plan{precision,
                           order,
                           plan_axis(filter.y, height, order, precision),
                           plan_axis(filter.x, width, order, precision),
                           MethodObstacle::kNone,
                           Method::kLines,
                           std::nullopt,
                           false,
                           std::make_shared<KernelConstants>(),
                           std::make_shared<KernelConstants>(),
                           nullptr};
  if (choice.method == Method::kLines) return plan;
  const bool automatic = choice.method == Method::kAutomatic;
  const auto stopped_by = [&](MethodObstacle obstacle) {
    if (!automatic) plan.obstacle = obstacle;
    return plan;
  };
  if (of_doubles || !tiles_serve(filter)) return stopped_by(MethodObstacle::kTiles);
  plan.method = Method::kTiled;
  const bool single = precision == Precision::kSingle;
  const bool is_small =
      tiles_of(height) * tiles_of(width) <= (single ? kMostTilesByWindows : kMostTilesByWindowsInDouble);
  const bool strips_may_do = single && strip_blocks() > 0;
  const auto in_tiles = [&] {
    if (strips_may_do) plan.exact_strips = plan_exact_strips(filter, plan);
    return plan;
  };
  if (choice.method == Method::kTiled || (automatic && !is_small && !strips_may_do)) return in_tiles();
  plan.windows = plan_windows(plan.y, plan.x, choice.max_truncation_error);
  if (!plan.windows.has_value()) return automatic ? in_tiles() : stopped_by(MethodObstacle::kTruncation);
  const bool in_strips = strips_may_do && plan.windows->of_strips.has_value() &&
                         (choice.method == Method::kDecaying || (automatic && !is_small));
  // Tiles are faster than the two passes of large images, and than windows that are wide.
  const bool windows_are_wide = std::max(plan.windows->y, plan.windows->x) > kMaxWindow;
  if (automatic && !in_strips && (!is_small || windows_are_wide)) return in_tiles();
  plan.method = in_strips ? Method::kDecaying : Method::kOnChip;
  if (in_strips && runs_by_outputs(plan.y, plan.x)) run_by_outputs(filter, plan);
  return plan;
}

/// The plans of the last few calls, of all threads.
class KeptPlans {
 public:
  struct Call {
    RecursiveFilter filter;
    std::int64_t height, width;
    bool of_doubles;
    RecursiveFilterChoice choice;

    bool operator==(const Call&) const = default;
  };
  using Plan = std::shared_ptr<const RecursiveFilterPlan>;

  Plan find(const Call& call) {
    const std::lock_guard lock(mutex_);
    const auto kept =
        std::find_if(plans_.begin(), plans_.end(), [&](const Kept& a) { return a.call == call; });
    if (kept == plans_.end()) return nullptr;
    std::rotate(plans_.begin(), kept, kept + 1);
    return plans_.front().plan;
  }
  void keep(const Call& call, const Plan& plan) {
    const std::lock_guard lock(mutex_);
    std::rotate(plans_.begin(), plans_.end() - 1, plans_.end());
    plans_.front() = {call, plan};
  }

 private:
  struct Kept {
    Call call;
    Plan plan;
  };
  std::mutex mutex_;
  std::vector<Kept> plans_ = std::vector<Kept>(16);
};

}  // namespace

std::shared_ptr<const RecursiveFilterPlan> plan_on_gpu(const RecursiveFilter& filter, std::int64_t height,
                                                       std::int64_t width, bool of_doubles,
                                                       const RecursiveFilterChoice& choice) {
  static KeptPlans kept;
  const KeptPlans::Call call{filter, height, width, of_doubles, choice};
  KeptPlans::Plan plan = kept.find(call);
  if (plan == nullptr) {
    plan = std::make_shared<const RecursiveFilterPlan>(make_plan(filter, height, width, of_doubles, choice));
    kept.keep(call, plan);
  }
  return plan;
}

std::shared_ptr<const RecursiveFilterPlan> require_plan_on_gpu(const RecursiveFilter& filter,
                                                               std::int64_t height, std::int64_t width,
                                                               bool of_doubles,
                                                               const RecursiveFilterChoice& choice) {
  const auto plan = plan_on_gpu(filter, height, width, of_doubles, choice);
  const auto refuse = [](const std::string& why) { throw std::invalid_argument("recursive_filter: " + why); };
  switch (plan->obstacle) {
    case MethodObstacle::kNone:
      break;
    case MethodObstacle::kTiles:
      refuse(
          "tiles do not serve images of double, nor a boundary that folds the image back (reflect, mirror) "
          "for "
          "a filter whose directions differ; the line method does");
      break;
    case MethodObstacle::kTruncation:
      refuse("the filter remembers too much of this image to leave out no more than " +
             std::to_string(choice.max_truncation_error) + "; the tiled method leaves out nothing");
      break;
  }
  return plan;
}

WindowSchedule plan_schedule(std::int64_t height, std::int64_t row_bytes, std::int64_t state_bytes,
                             std::int64_t images, const AxisPlan& y, const Windows& windows) {
  const std::int64_t rows = tiles_of(height);
  const std::int64_t image_bytes = height * row_bytes;
  if (image_bytes <= kImageBytesAtOnce) {
    return {std::min(images, std::max<std::int64_t>(1, kImageBytesAtOnce / image_bytes)), {rows, 0, 0, rows}};
  }
  // As many rows of tiles' states as find room in the output behind those rows; and of these, the ones that
  // rows behind them look at go to scratch memory all the same.
  const std::int64_t last_filtered =
      std::max<std::int64_t>(0, (image_bytes - kStateAlignment) / (state_bytes + kTile * row_bytes));
  const std::int64_t first = y.needs_runs() ? std::min(windows.y + 1, rows) : 0;
  const std::int64_t end = std::max(first, last_filtered - windows.y);
  return {1, {rows, first, end, last_filtered}};
}

}  // namespace cumulus::recursive_filter

namespace cumulus {

DoesNotFitOnChip::DoesNotFitOnChip(std::int64_t tiles, std::int64_t tiles_on_chip)
    : std::invalid_argument("recursive_filter: the on-chip method holds " + std::to_string(tiles_on_chip) +
                            " tiles of 64 x 64 pixels of one channel on this device; the image has " +
                            std::to_string(tiles)),
      tiles_(tiles),
      tiles_on_chip_(tiles_on_chip) {}

MethodObstacle obstacle_to(const RecursiveFilter& filter, std::int64_t height, std::int64_t width,
                           bool of_doubles, const RecursiveFilterChoice& choice) {
  return recursive_filter::plan_on_gpu(filter, height, width, of_doubles, choice)->obstacle;
}

}  // namespace cumulus
