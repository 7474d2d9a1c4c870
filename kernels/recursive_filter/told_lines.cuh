#pragma once

#include "kernels/recursive_filter/tagged_states.cuh"
#include "kernels/recursive_filter/window_sums.cuh"

// What the tiles of the on-chip method tell each other, and what it makes of a line's carries. All words are
// cleared first; by the time that anybody asks for one, the grid has long passed that.

namespace cumulus::recursive_filter {

template <int Order, class Real>
struct OnChipAxis {
  TileAxis<Order, Real> line;
  SmallMatrix<Order, Real> over_part[2];  // causal, anticausal
  WindowMoves<Order> moves;

  OnChipAxis(const AxisPlan& plan, std::int64_t window, std::int64_t part)
      : line(plan),
        over_part{small_matrix<Order, Real>(power(plan.causal.transition, part)),
                  small_matrix<Order, Real>(power(plan.anticausal.transition, part))},
        moves(plan, window) {}
};

/// What follows from the plan, where parts of lines have `part` pixels.
template <int Order, class Real>
struct OnChipConstants {
  OnChipAxis<Order, Real> axes[2];  // kAlongY, kAlongX

  OnChipConstants(const RecursiveFilterPlan& plan, std::int64_t part)
      : axes{{plan.y, plan.windows->y, part}, {plan.x, plan.windows->x, part}} {}
};

template <int Order, class Real>
struct OnChipFilter : OnChipConstants<Order, Real> {
  TileImages a;
  uint4* told;  // of each tile OnChipWords' words
};

template <int kThreads, int Order, class Real>
__device__ void clear_told(const OnChipFilter<Order, Real>& f) {
  uint4* own = f.told + std::int64_t{blockIdx.x} * OnChipWords<Order>::kCount;
  for (int i = static_cast<int>(threadIdx.x); i < OnChipWords<Order>::kCount; i += kThreads) own[i] = uint4{};
}

/// A line of a tile, and the same line of the tiles beside it.
template <int Order, class Real>
class ToldLines {
 public:
  __device__ ToldLines(const OnChipFilter<Order, Real>& f, const Tile& tile, int axis, int line)
      : a_(f.a),
        moves_(f.axes[axis].moves),
        at_(tile.at),
        along_y_(axis == kAlongY),
        here_(static_cast<int>(along_y_ ? tile.at.row : tile.at.column)),
        line_(line) {
    const CarryMap& c = f.a.carries;
    const std::int64_t row = along_y_ ? 0 : at_.row;
    const std::int64_t column = along_y_ ? at_.column : 0;
    words_ = f.told + line +
             (((at_.image * c.tile_rows + row) * c.tile_columns + column) * c.channels + at_.channel) *
                 Words::kCount;
    stride_ = (along_y_ ? c.tile_columns : 1) * c.channels * Words::kCount;
  }

  __device__ void tell(int anticausal, const Real (&state)[Order]) const {
    float numbers[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) numbers[k] = static_cast<float>(state[k]);
    tell_tagged(words(here_) + first_word(anticausal), kTile, Words::kTag, numbers);
  }
  /// The first pixel of a row and the last.
  __device__ void tell_border(float first, float last) const {
    if (here_ > 0 && here_ < last_tile()) return;
    const float pixels[2] = {first, last};
    tell_tagged(words(here_) + Words::kBorder, kTile, Words::kTag, pixels);
  }

  /// The causal state before the line, or the anticausal one after it.
  __device__ void hear(int anticausal, float (&state)[Order]) const {
    const bool after = anticausal != 0;
    const int far = after ? min(here_ + moves_.window, last_tile()) : max(here_ - moves_.window, 0);
    const bool at_border = far == (after ? last_tile() : 0);
    const int seen = min(moves_.window + 1, moves_.tiles);
    // The boundary may ask for runs over the image, both ways, first; the way from there comes last.
    constexpr int kWay = 2;
    float runs[2][Order] = {};
#pragma unroll 1
    for (int walk = at_border && moves_.over.needs_runs ? 0 : kWay; walk <= kWay; ++walk) {
      float left[Order] = {};
      int backward = walk;
      int first = walk == 0 ? moves_.tiles - seen : seen - 1;
      int count = seen;
      if (walk == kWay) {
        if (at_border) begin_at_border(after, runs, left);
        backward = anticausal;
        first = far;
        count = after ? far - here_ : here_ - far;
      }
      add_walk(backward, first, count, left);
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        if (walk == 0) runs[0][k] = left[k];
        if (walk == 1) runs[1][k] = left[k];
        if (walk == kWay) state[k] = left[k];
      }
    }
  }

 private:
  using Words = OnChipWords<Order>;

  __device__ int last_tile() const { return moves_.tiles - 1; }
  __device__ uint4* words(int tile) const { return words_ + tile * stride_; }
  __device__ int first_word(int anticausal) const {
    return ((along_y_ ? 0 : 2) + anticausal) * Words::kOfState * kTile;
  }

  __device__ float border_pixel(bool last) const {
    if (along_y_) {
      const std::int64_t pixel = at_.image * a_.image_stride +
                                 (at_.column * kTile + line_) * a_.carries.channels + at_.channel +
                                 (last ? (a_.height - 1) * a_.row_stride : 0);
      return a_.images.kind == ElementKind::kHalf ? __half2float(a_.images.as<__half>()[pixel])
                                                  : a_.images.as<float>()[pixel];
    }
    TaggedState<2> told;
    do {
      told.load(words(last ? last_tile() : 0) + Words::kBorder, kTile);
    } while (!told.has(Words::kTag));
    float pixels[2];
    told.get(pixels);
    return last ? pixels[1] : pixels[0];
  }

  __device__ void begin_at_border(bool after, const float (&runs)[2][Order], float (&state)[Order]) const {
    const TileMoves<Order, float>& over = moves_.over;
    const float pixel = border_pixel(after);
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      state[k] = (after ? over.end_from_last_pixel[k] : over.start_from_first_pixel[k]) * pixel;
    }
    (after ? over.end_from_forward : over.start_from_forward).add_product(runs[0], state);
    (after ? over.end_from_backward : over.start_from_backward).add_product(runs[1], state);
  }

  /// Moves `state` over `count` tiles from `first` on, and adds what each has told. The states of
  /// kWindowBatch tiles are on their way at once.
  __device__ void add_walk(int anticausal, int first, int count, float (&state)[Order]) const {
    const TileMoves<Order, float>& over = moves_.over;
    const int step = anticausal != 0 ? -1 : 1;
#pragma unroll 1
    for (int i = 0; i < count; i += kWindowBatch) {
      TaggedState<Order> told[kWindowBatch];
      bool all = false;
      while (!all) {
        all = true;
#pragma unroll
        for (int j = 0; j < kWindowBatch; ++j) {
          told[j].load(words(first + step * min(i + j, count - 1)) + first_word(anticausal), kTile);
        }
#pragma unroll
        for (int j = 0; j < kWindowBatch; ++j) all = all && told[j].has(Words::kTag);
      }
#pragma unroll
      for (int j = 0; j < kWindowBatch; ++j) {
        if (i + j >= count) continue;
        const int tile = first + step * (i + j);
        float own[Order];
        told[j].get(own);
        // Into tile 0 only runs over the whole image go.
        const bool from_last = tile == last_tile();
        move_over(anticausal == 0 ? (from_last ? over.forward_last : over.forward)
                  : tile == 0     ? over.backward_first
                  : from_last     ? over.backward_last
                                  : over.backward,
                  own, state);
      }
    }
  }

  const TileImages& a_;
  const WindowMoves<Order>& moves_;
  const TileIndex& at_;
  const bool along_y_;
  const int here_, line_;
  uint4* words_;  // of the first tile
  std::int64_t stride_;
};

}  // namespace cumulus::recursive_filter
