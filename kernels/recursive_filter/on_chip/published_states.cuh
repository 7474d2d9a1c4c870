#pragma once

#include "kernels/primitives/await_all.cuh"
#include "kernels/recursive_filter/gpu/tagged_states.cuh"
#include "kernels/recursive_filter/on_chip/window_transitions.cuh"

// The zero-state responses of one line of pixels that tiles publish, and the carries that follow from
// them.

namespace cumulus::recursive_filter {

/// The words of all tiles: a tile's lie together.
struct PublishedMemory {
  uint4* words;
  std::uint32_t tag;
};

/// The words of a line of tiles that concern one line of pixels: those of tile i begin at first + i *
/// stride.
struct PublishedWords {
  uint4* first;
  int stride;
  std::uint32_t tag;

  __device__ uint4* of(int tile) const { return first + tile * stride; }

  __device__ void publish_border(int tile, int word, float first_pixel, float last_pixel) const {
    const float pixels[2] = {first_pixel, last_pixel};
    publish_tagged(of(tile) + word, 0, tag, pixels);
  }
  __device__ float await_border(int tile, int word, bool last) const {
    TaggedState<2> published;
    await_all<1>([&](int) { published.load(of(tile) + word, 0); }, [&](int) { return published.has(tag); });
    float pixels[2];
    published.get(pixels);
    return last ? pixels[1] : pixels[0];
  }
};

/// The states of one line of pixels. A tile publishes its kLines lines side by side. kInRegisters: all
/// tiles are whole, runs over the image leave no pixel out, and both directions have the same poles and
/// unit gains.
template <int Order, int kLines, bool kInRegisters>
class PublishedStates {
 public:
  __device__ PublishedStates(const WindowTransitions<Order>& transitions, const PublishedWords& words,
                             int here)
      : transitions_(transitions), words_(words), here_(here) {}

  __device__ int here() const { return here_; }
  __device__ int last_tile() const { return transitions_.tiles - 1; }

  template <class Real>
  __device__ void publish(int anticausal, const Real (&state)[Order]) const {
    float numbers[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) numbers[k] = static_cast<float>(state[k]);
    publish_tagged(words(here_, anticausal), kLines, words_.tag, numbers);
  }

  /// The causal carry of the line, or the anticausal one. `border_pixel(last)`: the first pixel of the
  /// image's line, or the last, as the axis' filter finds it.
  template <class BorderPixel>
  __device__ void await_carry(int anticausal, const BorderPixel& border_pixel, float (&state)[Order]) const {
    const bool after = anticausal != 0;
    const int far =
        after ? min(here_ + transitions_.window, last_tile()) : max(here_ - transitions_.window, 0);
    const bool at_border = far == (after ? last_tile() : 0);
    float runs[2][Order] = {};
    if (at_border && transitions_.tile.needs_runs) run_over_image(anticausal, runs);
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] = 0;
    if (at_border) begin_at_border(after, border_pixel, runs, state);
    const int count = after ? far - here_ : here_ - far;
    if (kInRegisters && transitions_.window == 1) {
      add_aggregates<1>(anticausal, far, count, state);
    } else {
      add_aggregates<kBatch>(anticausal, far, count, state);
    }
  }

 private:
  /// Tiles whose states are loaded at once.
  static constexpr int kBatch = kInRegisters ? kRegisterTileBatch : kWindowBatch;

  __device__ uint4* words(int tile, int anticausal) const {
    return words_.of(tile) + anticausal * TaggedState<Order>::kWords * kLines;
  }

  __device__ const SmallMatrix<Order, float>& tile_transition(int anticausal, int tile) const {
    const TileTransitions<Order, float>& of_tile = transitions_.tile;
    const bool last = tile == last_tile();
    if (kInRegisters || (anticausal == 0 && !last)) return of_tile.forward;
    if (anticausal == 0) return of_tile.forward_last;
    // Only runs over the whole image go through tile 0.
    return tile == 0 ? of_tile.backward_first : last ? of_tile.backward_last : of_tile.backward;
  }

  /// What the boundary needs: runs over the image, in the state's own direction and in the other.
  __device__ void run_over_image(int anticausal, float (&runs)[2][Order]) const {
    const int seen = min(transitions_.window + 1, transitions_.tiles);
#pragma unroll 1
    for (int other = 0; other < 2; ++other) {
      const int backward = other == 0 ? anticausal : 1 - anticausal;
      float response[Order] = {};
      add_aggregates<kBatch>(backward, backward == 0 ? transitions_.tiles - seen : seen - 1, seen, response);
#pragma unroll
      for (int k = 0; k < Order; ++k) (other == 0 ? runs[0][k] : runs[1][k]) = response[k];
    }
  }

  template <class BorderPixel>
  __device__ void begin_at_border(bool after, const BorderPixel& border_pixel, const float (&runs)[2][Order],
                                  float (&state)[Order]) const {
    const TileTransitions<Order, float>& tile = transitions_.tile;
    const float pixel = border_pixel(after);
    const bool end = after && !kInRegisters;
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      state[k] = (end ? tile.end_from_last_pixel[k] : tile.start_from_first_pixel[k]) * pixel;
    }
    (end ? tile.end_from_backward : tile.start_from_forward).add_product(runs[0], state);
    (end ? tile.end_from_forward : tile.start_from_backward).add_product(runs[1], state);
  }

  /// Takes `state` through `count` tiles from `first` on, by their published responses: state = A state +
  /// response. kAtOnce tiles' words are polled together.
  template <int kAtOnce>
  __device__ void add_aggregates(int anticausal, int first, int count, float (&state)[Order]) const {
    const int step = anticausal != 0 ? -1 : 1;
#pragma unroll 1
    for (int i = 0; i < count; i += kAtOnce) {
      TaggedState<Order> published[kAtOnce];
      await_all<kAtOnce>(
          [&](int j) { published[j].load(words(first + step * min(i + j, count - 1), anticausal), kLines); },
          [&](int j) { return published[j].has(words_.tag); });
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (i + j >= count) continue;
        float aggregate[Order];
        published[j].get(aggregate);
        apply_transition(tile_transition(anticausal, first + step * (i + j)), aggregate, state);
      }
    }
  }

  const WindowTransitions<Order>& transitions_;
  const PublishedWords words_;
  const int here_;
};

}  // namespace cumulus::recursive_filter
