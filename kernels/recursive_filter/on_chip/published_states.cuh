#pragma once

#include "kernels/recursive_filter/gpu/tagged_states.cuh"
#include "kernels/recursive_filter/gpu/windows.cuh"

// What tiles on the chip tell each other about one line of pixels, and what is made of it.

namespace cumulus::recursive_filter {

/// Where tiles tell what they know: a tile's words lie together.
struct ToldMemory {
  uint4* words;
  std::uint32_t tag;
};

/// The words of a line of tiles that concern one line of pixels: what tile i tells of it begins at
/// first + i * stride.
struct ToldWords {
  uint4* first;
  int stride;
  std::uint32_t tag;

  __device__ uint4* of(int tile) const { return first + tile * stride; }

  __device__ void tell_border(int tile, int word, float first_pixel, float last_pixel) const {
    const float pixels[2] = {first_pixel, last_pixel};
    tell_tagged(of(tile) + word, 0, tag, pixels);
  }
  __device__ float hear_border(int tile, int word, bool last) const {
    TaggedState<2> told;
    do {
      told.load(of(tile) + word, 0);
    } while (!told.has(tag));
    float pixels[2];
    told.get(pixels);
    return last ? pixels[1] : pixels[0];
  }
};

/// The states of one line of pixels. A tile tells of its kLines lines one after the other. kHeld: all tiles
/// are whole, runs over the image leave no pixel out, and both directions have the same poles and no gains.
template <int Order, int kLines, bool kHeld>
class ToldStates {
 public:
  __device__ ToldStates(const WindowMoves<Order>& moves, const ToldWords& words, int here)
      : moves_(moves), words_(words), here_(here) {}

  __device__ int here() const { return here_; }
  __device__ int last_tile() const { return moves_.tiles - 1; }

  template <class Real>
  __device__ void tell(int anticausal, const Real (&state)[Order]) const {
    float numbers[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) numbers[k] = static_cast<float>(state[k]);
    tell_tagged(words(here_, anticausal), kLines, words_.tag, numbers);
  }

  /// The causal state before the line, or the anticausal one after it. `border_pixel(last)`: the first pixel
  /// of the image's line, or the last, as the axis' filter finds it.
  template <class BorderPixel>
  __device__ void hear(int anticausal, const BorderPixel& border_pixel, float (&state)[Order]) const {
    const bool after = anticausal != 0;
    const int far = after ? min(here_ + moves_.window, last_tile()) : max(here_ - moves_.window, 0);
    const bool at_border = far == (after ? last_tile() : 0);
    float runs[2][Order] = {};
    if (at_border && moves_.over.needs_runs) run_over_image(anticausal, runs);
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] = 0;
    if (at_border) begin_at_border(after, border_pixel, runs, state);
    const int count = after ? far - here_ : here_ - far;
    if (kHeld && moves_.window == 1) {
      add_walk<1>(anticausal, far, count, state);
    } else {
      add_walk<kBatch>(anticausal, far, count, state);
    }
  }

 private:
  /// Tiles whose states are on their way at once.
  static constexpr int kBatch = kHeld ? kHeldBatch : kWindowBatch;

  __device__ uint4* words(int tile, int anticausal) const {
    return words_.of(tile) + anticausal * TaggedState<Order>::kWords * kLines;
  }

  __device__ const SmallMatrix<Order, float>& over_tile(int anticausal, int tile) const {
    const TileMoves<Order, float>& over = moves_.over;
    const bool last = tile == last_tile();
    if (kHeld || (anticausal == 0 && !last)) return over.forward;
    if (anticausal == 0) return over.forward_last;
    // Into tile 0 only runs over the whole image go.
    return tile == 0 ? over.backward_first : last ? over.backward_last : over.backward;
  }

  /// What the boundary asks for: runs over the image, the state's own way and the other.
  __device__ void run_over_image(int anticausal, float (&runs)[2][Order]) const {
    const int seen = min(moves_.window + 1, moves_.tiles);
#pragma unroll 1
    for (int other = 0; other < 2; ++other) {
      const int backward = other == 0 ? anticausal : 1 - anticausal;
      float left[Order] = {};
      add_walk<kBatch>(backward, backward == 0 ? moves_.tiles - seen : seen - 1, seen, left);
#pragma unroll
      for (int k = 0; k < Order; ++k) (other == 0 ? runs[0][k] : runs[1][k]) = left[k];
    }
  }

  template <class BorderPixel>
  __device__ void begin_at_border(bool after, const BorderPixel& border_pixel, const float (&runs)[2][Order],
                                  float (&state)[Order]) const {
    const TileMoves<Order, float>& over = moves_.over;
    const float pixel = border_pixel(after);
    const bool end = after && !kHeld;
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      state[k] = (end ? over.end_from_last_pixel[k] : over.start_from_first_pixel[k]) * pixel;
    }
    (end ? over.end_from_backward : over.start_from_forward).add_product(runs[0], state);
    (end ? over.end_from_forward : over.start_from_backward).add_product(runs[1], state);
  }

  /// Moves `state` over `count` tiles from `first` on, and adds what each has told. The states of
  /// kAtOnce tiles are on their way at once.
  template <int kAtOnce>
  __device__ void add_walk(int anticausal, int first, int count, float (&state)[Order]) const {
    const int step = anticausal != 0 ? -1 : 1;
#pragma unroll 1
    for (int i = 0; i < count; i += kAtOnce) {
      TaggedState<Order> told[kAtOnce];
      bool all = false;
      while (!all) {
        all = true;
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          told[j].load(words(first + step * min(i + j, count - 1), anticausal), kLines);
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) all = all && told[j].has(words_.tag);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (i + j >= count) continue;
        float own[Order];
        told[j].get(own);
        move_over(over_tile(anticausal, first + step * (i + j)), own, state);
      }
    }
  }

  const WindowMoves<Order>& moves_;
  const ToldWords words_;
  const int here_;
};

}  // namespace cumulus::recursive_filter
