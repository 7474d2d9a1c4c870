#pragma once

#include "kernels/recursive_filter/gpu/tile_lines.cuh"
#include "kernels/recursive_filter/method.h"
#include "kernels/recursive_filter/on_chip/published_states.cuh"

// What the tiles of the on-chip method tell each other, whatever the image, and what it makes of a line's
// carries. No word is cleared: those of earlier calls have other tags.

namespace cumulus::recursive_filter {

/// What a tile of the on-chip method tells, in tagged words (gpu/tagged_states.cuh), line by line: the
/// columns' states, causal and anticausal, the rows', and the first and the last pixel of each row (of tiles
/// at the image's sides).
template <int Order>
struct OnChipWords {
  static constexpr int kOfState = tagged_words(Order);
  static constexpr int kRows = 2 * kOfState * kTile;
  static constexpr int kBorder = 2 * kRows;
  static constexpr int kCount = kBorder + kTile;
};

template <int Order, class Real>
struct OnChipAxis {
  TileAxis<Order, Real> line;
  SmallMatrix<Order, Real> over_part[2];  // causal, anticausal
  WindowMoves<Order> moves;

  OnChipAxis(const AxisPlan& plan, std::int64_t window, std::int64_t part, std::int64_t side)
      : line(plan),
        over_part{small_matrix<Order, Real>(power(plan.causal.transition, part)),
                  small_matrix<Order, Real>(power(plan.anticausal.transition, part))},
        moves(plan, window, side) {}
};

/// What follows from the plan, where tiles have `side` rows and columns and parts of lines `part` pixels.
template <int Order, class Real>
struct OnChipConstants {
  OnChipAxis<Order, Real> axes[2];  // kAlongY, kAlongX

  OnChipConstants(const AxisPlan& y, const AxisPlan& x, const Windows& windows, std::int64_t part,
                  std::int64_t side)
      : axes{{y, windows.y, part, side}, {x, windows.x, part, side}} {}
  OnChipConstants(const RecursiveFilterPlan& plan, std::int64_t part)
      : OnChipConstants(plan.y, plan.x, *plan.windows, part, kTile) {}
};

template <int Order, class Real>
struct OnChipFilter : OnChipConstants<Order, Real> {
  TileImages a;
  ToldMemory told;  // of each tile OnChipWords' words
};

/// A line of a tile, and the same line of the tiles beside it.
template <int Order, class Real>
class ToldLines {
 public:
  __device__ ToldLines(const OnChipFilter<Order, Real>& f, const Tile& tile, int axis, int line)
      : a_(f.a),
        at_(tile.at),
        along_y_(axis == kAlongY),
        line_(line),
        words_(words_of(f, tile.at, along_y_, line)),
        states_(f.axes[axis].moves, {words_.first + (along_y_ ? 0 : Words::kRows), words_.stride, words_.tag},
                static_cast<int>(along_y_ ? tile.at.row : tile.at.column)) {}

  __device__ void tell(int anticausal, const Real (&state)[Order]) const { states_.tell(anticausal, state); }
  /// The first pixel of a row and the last.
  __device__ void tell_border(float first, float last) const {
    const int here = states_.here();
    if (here == 0 || here == states_.last_tile()) words_.tell_border(here, Words::kBorder, first, last);
  }

  /// The causal state before the line, or the anticausal one after it.
  __device__ void hear(int anticausal, float (&state)[Order]) const {
    states_.hear(
        anticausal, [this](bool last) { return border_pixel(last); }, state);
  }

 private:
  using Words = OnChipWords<Order>;

  __device__ static ToldWords words_of(const OnChipFilter<Order, Real>& f, const TileIndex& at, bool along_y,
                                       int line) {
    const CarryMap& c = f.a.carries;
    const std::int64_t row = along_y ? 0 : at.row;
    const std::int64_t column = along_y ? at.column : 0;
    const std::int64_t first_tile =
        ((at.image * c.tile_rows + row) * c.tile_columns + column) * c.channels + at.channel;
    return {f.told.words + first_tile * Words::kCount + line,
            static_cast<int>((along_y ? c.tile_columns : 1) * c.channels * Words::kCount), f.told.tag};
  }

  __device__ float border_pixel(bool last) const {
    if (along_y_) {
      const std::int64_t pixel = at_.image * a_.image_stride +
                                 (at_.column * kTile + line_) * a_.carries.channels + at_.channel +
                                 (last ? (a_.height - 1) * a_.row_stride : 0);
      return a_.images.kind == ElementKind::kHalf ? __half2float(a_.images.as<__half>()[pixel])
                                                  : a_.images.as<float>()[pixel];
    }
    return words_.hear_border(last ? states_.last_tile() : 0, Words::kBorder, last);
  }

  const TileImages& a_;
  const TileIndex& at_;
  const bool along_y_;
  const int line_;
  const ToldWords words_;
  const ToldStates<Order, kTile, false> states_;
};

}  // namespace cumulus::recursive_filter
