#pragma once

#include "kernels/recursive_filter/gpu/tile_lines.cuh"
#include "kernels/recursive_filter/math/truncation.h"
#include "kernels/recursive_filter/on_chip/published_states.cuh"

// The states that tiles of the on-chip method publish, whatever the image, and the carries that follow
// from them. No word is cleared: those of earlier calls have other tags.

namespace cumulus::recursive_filter {

/// What a tile of the on-chip method publishes, in tagged words (gpu/tagged_states.cuh), line by line:
/// the zero-state responses of its columns, causal and anticausal, of its rows, and the first and the
/// last pixel of each row (of tiles at the image's sides).
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
  SmallMatrix<Order, Real> part_transitions[2];  // causal, anticausal
  WindowTransitions<Order> transitions;

  OnChipAxis(const AxisPlan& plan, std::int64_t window, std::int64_t part, std::int64_t side)
      : line(plan),
        part_transitions{small_matrix<Order, Real>(power(plan.causal.transition, part)),
                         small_matrix<Order, Real>(power(plan.anticausal.transition, part))},
        transitions(plan, window, side) {}
};

/// Made once for each plan, for tiles of `side` rows and columns and parts of `part` pixels.
template <int Order, class Real>
struct OnChipConstants {
  OnChipAxis<Order, Real> axes[2];  // kAlongY, kAlongX

  OnChipConstants(const AxisPlan& y, const AxisPlan& x, const Windows& windows, std::int64_t part,
                  std::int64_t side)
      : axes{{y, windows.y, part, side}, {x, windows.x, part, side}} {}
};

template <int Order, class Real>
struct OnChipFilter : OnChipConstants<Order, Real> {
  TileImages a;
  PublishedMemory published;  // of each tile OnChipWords' words
};

/// A line of a tile, and the same line of the tiles beside it.
template <int Order, class Real>
class PublishedLines {
 public:
  __device__ PublishedLines(const OnChipFilter<Order, Real>& f, const Tile& tile, int axis, int line)
      : a_(f.a),
        at_(tile.at),
        along_y_(axis == kAlongY),
        line_(line),
        words_(words_of(f, tile.at, along_y_, line)),
        states_(f.axes[axis].transitions,
                {words_.first + (along_y_ ? 0 : Words::kRows), words_.stride, words_.tag},
                static_cast<int>(along_y_ ? tile.at.row : tile.at.column)) {}

  __device__ void publish(int anticausal, const Real (&state)[Order]) const {
    states_.publish(anticausal, state);
  }
  /// The first pixel of a row and the last.
  __device__ void publish_border(float first, float last) const {
    const int here = states_.here();
    if (here == 0 || here == states_.last_tile()) words_.publish_border(here, Words::kBorder, first, last);
  }

  /// The causal carry of the line, or the anticausal one.
  __device__ void await_carry(int anticausal, float (&state)[Order]) const {
    states_.await_carry(
        anticausal, [this](bool last) { return border_pixel(last); }, state);
  }

 private:
  using Words = OnChipWords<Order>;

  __device__ static PublishedWords words_of(const OnChipFilter<Order, Real>& f, const TileIndex& at,
                                            bool along_y, int line) {
    const CarryMap& c = f.a.carries;
    const std::int64_t row = along_y ? 0 : at.row;
    const std::int64_t column = along_y ? at.column : 0;
    const std::int64_t first_tile =
        ((at.image * c.tile_rows + row) * c.tile_columns + column) * f.a.channels + at.channel;
    return {f.published.words + first_tile * Words::kCount + line,
            static_cast<int>((along_y ? c.tile_columns : 1) * f.a.channels * Words::kCount), f.published.tag};
  }

  __device__ float border_pixel(bool last) const {
    if (along_y_) {
      const std::int64_t pixel = at_.image * a_.image_stride +
                                 (at_.column * kTile + line_) * a_.carries.channels + at_.channel +
                                 (last ? (a_.height - 1) * a_.row_stride : 0);
      return a_.images.kind == ElementKind::kHalf ? __half2float(a_.images.as<__half>()[pixel])
                                                  : a_.images.as<float>()[pixel];
    }
    return words_.await_border(last ? states_.last_tile() : 0, Words::kBorder, last);
  }

  const TileImages& a_;
  const TileIndex& at_;
  const bool along_y_;
  const int line_;
  const PublishedWords words_;
  const PublishedStates<Order, kTile, false> states_;
};

}  // namespace cumulus::recursive_filter
