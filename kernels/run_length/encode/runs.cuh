#pragma once

#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/run_length/encode/heads.cuh"

// Writing the runs of a warp's chunk, once its carry-in is known.

namespace cumulus::run_length {

/// The exclusive prefix of a warp's chunk.
struct alignas(16) CarryIn {
  std::int64_t run;   // runs before the chunk
  std::int64_t open;  // elements of the last of them before the chunk
};

/// Stores the length of a run, of `count` elements, that ends before element `end` of the array.
template <class T>
__device__ void store_length(const EncodeArguments<T>& a, std::int64_t run, std::int64_t count,
                             std::int64_t end) {
  const std::int64_t length = a.ends ? end : count;
  if (!a.wide_lengths && length >> 32 != 0) {
    atomicMin(reinterpret_cast<unsigned long long*>(&a.scratch->report.unfitting_run),
              static_cast<unsigned long long>(run));
  }
  if (run >= a.max_runs) return;
  if (a.wide_lengths) {
    static_cast<std::uint64_t*>(a.lengths)[run] = static_cast<std::uint64_t>(length);
  } else {
    static_cast<std::uint32_t*>(a.lengths)[run] = static_cast<std::uint32_t>(length);
  }
}

/// Where a warp's chunk lies in the array.
template <class T>
struct ChunkRange {
  std::int64_t first;  // index of the first element
  int valid;           // elements that are of the array

  __device__ ChunkRange(const EncodeArguments<T>& a, std::int64_t first_element) : first(first_element) {
    const std::int64_t left = a.count - first;
    valid = left >= WarpMemory<T>::kElements ? WarpMemory<T>::kElements
                                             : static_cast<int>(max(left, std::int64_t{0}));
  }
};

/// A lane's listed heads, and where their symbols and lengths of 32 bits go: every 32nd.
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

/// The runs that begin in a chunk: its elements, and where the heads are among them.
template <class T>
struct ChunkRuns {
  const T* elements;
  const std::uint16_t* list;
  int heads;
};

/// By a warp: symbols and lengths of its runs, but for the last one's length, which the warp with the next
/// head writes; and the length of the run that is open before the chunk.
template <class T>
__device__ void write_runs(const EncodeArguments<T>& a, const ChunkRange<T>& range, const ChunkRuns<T>& chunk,
                           const CarryIn& carry, int lane) {
  const T* elements = chunk.elements;
  const std::uint16_t* list = chunk.list;
  const int heads = chunk.heads;
  if (heads == 0) return;
  if (lane == 0 && carry.run > 0) store_length(a, carry.run - 1, carry.open + list[0], range.first + list[0]);
  // Whole lines of memory: parts of them cost the L2 cache reads.
  int r = lane - static_cast<int>(carry.run % 32);
  if (!a.wide_lengths && !a.ends && carry.run + heads <= a.max_runs) {
    PlainRuns<T> runs{elements, list + r, a.symbols + (carry.run + r),
                      static_cast<std::uint32_t*>(a.lengths) + (carry.run + r)};
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
    const std::int64_t run = carry.run + r;
    if (run < a.max_runs) a.symbols[run] = elements[Layout<T>::place(head)];
    if (r + 1 < heads) store_length(a, run, list[r + 1] - head, range.first + list[r + 1]);
  }
}

/// By a warp: as write_runs, of a queued chunk.
template <class T>
__device__ void write_few_runs(const EncodeArguments<T>& a, const ChunkRange<T>& range,
                               const QueuedRuns<T>& runs, const CarryIn& carry, int lane) {
#pragma unroll 1
  for (int r = lane; r < runs.count; r += 32) {
    const int head = runs.heads[r];
    const std::int64_t run = carry.run + r;
    const std::int64_t before = r > 0 ? head - runs.heads[r - 1] : carry.open + head;
    if (run < a.max_runs) a.symbols[run] = runs.symbols[r];
    if (run > 0) store_length(a, run - 1, before, range.first + head);
  }
}

/// By a warp: the first run of each piece that begins in its chunk, which is a head.
template <class T>
__device__ void write_first_runs(const EncodeArguments<T>& a, const ChunkRange<T>& range,
                                 const std::uint16_t* list, int heads, const CarryIn& carry, int lane) {
  for (std::int64_t piece = divide_up(range.first, a.piece) + lane;
       piece * a.piece < range.first + range.valid; piece += 32) {
    const auto head = static_cast<int>(piece * a.piece - range.first);
    int before = 0;  // heads
    for (int left = heads; left > 0;) {
      const int half = left / 2;
      const bool behind = list[before + half] < head;
      before = behind ? before + half + 1 : before;
      left = behind ? left - half - 1 : half;
    }
    a.first_runs[piece] = carry.run + before;
  }
}

}  // namespace cumulus::run_length
