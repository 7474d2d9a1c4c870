#pragma once

#include <cstdint>

#include "kernels/run_length/encode_heads.cuh"

// Where the runs of a warp's share of a tile go, once it is known how many lie before them.

namespace cumulus::run_length {

/// What a warp needs to write the runs of its share.
struct alignas(16) WarpStart {
  std::int64_t run;   // runs before the share
  std::int64_t open;  // the last one's elements so far
};

/// Stores the length of a run, of `count` elements, that ends before element `end` of the array.
template <class T>
__device__ void store_length(const EncodeArguments<T>& a, std::int64_t run, std::int64_t count,
                             std::int64_t end) {
  const std::int64_t length = a.ends ? end : count;
  if (!a.wide_lengths && length >> 32 != 0) {
    atomicMin(reinterpret_cast<unsigned long long*>(&a.shared->report.unfitting_run),
              static_cast<unsigned long long>(run));
  }
  if (run >= a.max_runs) return;
  if (a.wide_lengths) {
    static_cast<std::uint64_t*>(a.lengths)[run] = static_cast<std::uint64_t>(length);
  } else {
    static_cast<std::uint32_t*>(a.lengths)[run] = static_cast<std::uint32_t>(length);
  }
}

/// A warp's part of a tile.
template <class T>
struct Part {
  std::int64_t first;  // index of the first element
  int valid;           // elements that are of the array

  __device__ Part(const EncodeArguments<T>& a, std::int64_t first_element) : first(first_element) {
    const std::int64_t left = a.count - first;
    valid = left >= WarpMemory<T>::kElements ? WarpMemory<T>::kElements
                                             : static_cast<int>(max(left, std::int64_t{0}));
  }
};

/// A lane's way through the listed heads, and to where their symbols and lengths of 32 bits go: 32 on at
/// once.
template <class T>
struct PlainRuns {
  const T* elements;
  const std::uint16_t* heads;
  T* symbols;
  std::uint32_t* lengths;

  /// Of so many rows of 32 heads; another one follows.
  template <int kRows>
  __device__ void write() {
    int here[kRows];
    std::uint32_t length[kRows];
    T symbol[kRows];
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      here[row] = heads[32 * row];
      length[row] = static_cast<std::uint32_t>(heads[32 * row + 1] - here[row]);
    }
#pragma unroll
    for (int row = 0; row < kRows; ++row) symbol[row] = elements[Layout<T>::place(here[row])];
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      symbols[32 * row] = symbol[row];
      lengths[32 * row] = length[row];
    }
    step(32 * kRows);
  }
  __device__ void write_one(bool with_length) const {
    const int here = *heads;
    *symbols = elements[Layout<T>::place(here)];
    if (with_length) *lengths = static_cast<std::uint32_t>(heads[1] - here);
  }
  __device__ void step(int runs) {
    heads += runs;
    symbols += runs;
    lengths += runs;
  }
};

/// By a warp: symbols and lengths of its runs, but for the last one's length, which is that of whoever has
/// the next head; and the length of the run before them.
template <class T>
__device__ void write_runs(const EncodeArguments<T>& a, const Part<T>& part, const T* elements,
                           const std::uint16_t* list, int heads, const WarpStart& start, int lane) {
  if (heads == 0) return;
  if (lane == 0 && start.run > 0) store_length(a, start.run - 1, start.open + list[0], part.first + list[0]);
  // Whole lines of memory: parts of them cost the L2 cache reads.
  int r = lane - static_cast<int>(start.run % 32);
  if (!a.wide_lengths && !a.ends && start.run + heads <= a.max_runs) {
    PlainRuns<T> runs{elements, list + r, a.symbols + (start.run + r),
                      static_cast<std::uint32_t*>(a.lengths) + (start.run + r)};
    if (r >= 0 && r < heads) runs.write_one(r + 1 < heads);
    runs.step(32);
    int left = heads - (r - lane) - 32;  // from the row's first on
    for (; left > 4 * 32; left -= 4 * 32) runs.template write<4>();
    for (; left > 32; left -= 32) runs.template write<1>();
    if (lane < left) runs.write_one(lane + 1 < left);
    return;
  }
#pragma unroll 1
  for (; r < heads; r += 32) {
    if (r < 0) continue;
    const int head = list[r];
    const std::int64_t run = start.run + r;
    if (run < a.max_runs) a.symbols[run] = elements[Layout<T>::place(head)];
    if (r + 1 < heads) store_length(a, run, list[r + 1] - head, part.first + list[r + 1]);
  }
}

/// By a warp, of few runs: as write_runs.
template <class T>
__device__ void write_few_runs(const EncodeArguments<T>& a, const Part<T>& part, const WaitingRuns<T>& runs,
                               const WarpStart& start, int lane) {
#pragma unroll 1
  for (int r = lane; r < runs.count; r += 32) {
    const int head = runs.heads[r];
    const std::int64_t run = start.run + r;
    const std::int64_t before = r > 0 ? head - runs.heads[r - 1] : start.open + head;
    if (run < a.max_runs) a.symbols[run] = runs.symbols[r];
    if (run > 0) store_length(a, run - 1, before, part.first + head);
  }
}

/// By a warp: the first run of each piece that begins in its part, which is a head.
template <class T>
__device__ void write_first_runs(const EncodeArguments<T>& a, const Part<T>& part, const std::uint16_t* list,
                                 int heads, const WarpStart& start, int lane) {
  for (std::int64_t piece = (part.first + a.piece - 1) / a.piece + lane;
       piece * a.piece < part.first + part.valid; piece += 32) {
    const auto head = static_cast<int>(piece * a.piece - part.first);
    int before = 0;  // heads
    for (int left = heads; left > 0;) {
      const int half = left / 2;
      const bool behind = list[before + half] < head;
      before = behind ? before + half + 1 : before;
      left = behind ? left - half - 1 : half;
    }
    a.first_runs[piece] = start.run + before;
  }
}

}  // namespace cumulus::run_length
