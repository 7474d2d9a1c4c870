#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/recursive_filter/recursive_filter_line.h"
#include "kernels/recursive_filter/recursive_filter_plan.h"
#include "kernels/recursive_filter/recursive_filter_tuning.h"

// The host's side of the methods that sum the states of neighbouring tiles (filter_windows.cuh).

namespace cumulus::recursive_filter {

/// What a tile publishes: lines of kTile floats, then its cross states.
template <int Order>
struct StateLayout {
  // Lines: the columns' states (causal, then anticausal), the rows', the first and the last pixel of each row
  // (of tiles at the image's sides).
  static constexpr int kRows = 2 * Order;
  static constexpr int kBorder = 4 * Order;
  /// Where the cross states begin. For each of the columns' states, and for the tile's first and last row of
  /// pixels: what it is as a row of pixels, in causal states, anticausal states, its first and its last.
  static constexpr int kCross = (4 * Order + 2) * kTile;
  static constexpr int kFunctionals = 2 * Order + 2;
  static constexpr int kFloats = kCross + kFunctionals * kFunctionals;
};

/// What a tile of the on-chip method tells, in tagged words (tagged_states.cuh), line by line: the columns'
/// states, causal and anticausal, the rows', and the first and the last pixel of each row (of tiles at the
/// image's sides).
template <int Order>
struct OnChipWords {
  static constexpr int kOfState = tagged_words(Order);
  static constexpr int kRows = 2 * kOfState * kTile;
  static constexpr int kBorder = 2 * kRows;
  static constexpr int kCount = kBorder + kTile;
};

/// Where the rows of tiles have their states: those from `first` to before `end` in the part of the output
/// that the rows of tiles from `last_filtered` on fill, the others in scratch memory. By the time that those
/// rows are filtered, nobody needs the states in the output any more.
struct StateRows {
  std::int64_t rows = 0;
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t last_filtered = 0;  // rows of tiles from here on are filtered after the others

  CUMULUS_FILTER_FUNCTION bool all_in_scratch() const { return first == end; }
  CUMULUS_FILTER_FUNCTION std::int64_t in_scratch() const { return rows - (end - first); }
};

/// How far a pixel of a tile's column has responded to the column's carries: `of[y][k]` to the k-th number of
/// the causal state before the tile, then of the anticausal state after it.
template <int Order>
struct TileResponses {
  float of[kTile][2 * Order];

  TileResponses(const AxisPlan& plan, std::int64_t rows) : of{} {
    const auto causal = sections_of<Order, long double>(plan.causal);
    const auto anticausal = sections_of<Order, long double>(plan.anticausal);
    const auto through_causal = small_matrix<Order, long double>(plan.through_causal);
    const auto through_future = small_matrix<Order, long double>(plan.through_future);
    for (int k = 0; k < 2 * Order; ++k) {
      long double before[Order] = {};
      long double after[Order] = {};
      (k < Order ? before[k] : after[k - Order]) = 1;
      long double line[kTile] = {};
      for (std::int64_t y = 0; y < rows; ++y) causal.filter(before, line[y]);
      long double state[Order] = {};
      through_causal.add_product(before, state);
      through_future.add_product(after, state);
      for (std::int64_t y = rows - 1; y >= 0; --y) anticausal.filter(state, line[y]);
      for (std::int64_t y = 0; y < rows; ++y) of[y][k] = static_cast<float>(line[y]);
    }
  }
};

/// Tiles, on either side of a tile, whose states its carries are made of, along each axis, and what the
/// others could have added to a filtered pixel at most, relative to the image's largest magnitude; 0: the
/// windows hold the whole image.
struct Windows {
  std::int64_t y = 0;
  std::int64_t x = 0;
  double truncation_bound = 0;
  /// The same for strips (recursive_filter_strips.h), where they serve.
  struct OfStrips {
    std::int64_t y, x;
    double truncation_bound;
  };
  std::optional<OfStrips> of_strips;
};

/// The smallest windows with a bound of at most `max_truncation_error`; none where the filter remembers more
/// than kMaxWindow tiles of an axis that has more than kMaxWholeAxis.
std::optional<Windows> plan_windows(const AxisPlan& y, const AxisPlan& x, double max_truncation_error);

/// How the windowed methods go through the images.
struct WindowSchedule {
  std::int64_t images_at_once;
  StateRows rows;  // of each image

  template <int Order>
  std::size_t scratch_floats(std::int64_t tile_columns, std::int64_t channels) const {
    return static_cast<std::size_t>(images_at_once * rows.in_scratch() * tile_columns * channels *
                                    StateLayout<Order>::kFloats);
  }
};

/// For images whose rows take `row_bytes`, and the states of a row of tiles `state_bytes`.
WindowSchedule plan_schedule(std::int64_t height, std::int64_t row_bytes, std::int64_t state_bytes,
                             std::int64_t images, const AxisPlan& y, const Windows& windows);

}  // namespace cumulus::recursive_filter
