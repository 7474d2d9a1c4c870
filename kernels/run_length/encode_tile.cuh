#pragma once

#include <cstdint>
#include <cuda/barrier>

#include "kernels/run_length/encode_heads.cuh"
#include "kernels/run_length/look_back.cuh"

// The encoder's kernel: as many blocks as fit take the array's tiles in turns. Each warp of a block has its
// share of a tile and works at its own pace: it lists the heads of tile k + 1 and only then writes the runs
// of tile k, while the elements of tile k + 2 are on their way. Two more warps speak with the other blocks
// meanwhile: the publisher adds up what the warps have counted and publishes it; the connector looks back,
// and tells each where its runs go.
//
// All blocks must be resident. A block publishes a tile when it has connected all but the last of those that
// it took before, so that whoever waits for the lowest tile that is not published waits for one that nothing
// holds up. Tiles by turns keep it that way for long: were they taken as blocks get to them, two tickets
// ahead of their use, a block that starts first would take three tiles side by side, and the next one wait
// for all of them.

namespace cumulus::run_length {

/// Raised once for each tile of its parity.
using Signal = cuda::barrier<cuda::thread_scope_block>;

struct WarpCount {
  std::int32_t heads;
  std::int32_t open;  // elements from the last head, or else from the share's begin, to its end
};

/// What a warp needs to write the runs of its share.
struct WarpStart {
  std::int64_t run;   // runs before the share
  std::int64_t open;  // the last one's elements so far
};

/// Between the warps of a block, of a tile.
struct Exchange {
  Signal counted;    // by the warps
  Signal published;  // by the publisher
  Signal connected;  // by the connector
  WarpCount counts[kMostEncodeWarps];
  Stretch through[32];  // of the warps up to and including this one
  WarpStart starts[kMostEncodeWarps];
};

/// A block's shared memory, before that of its warps: for tiles of even and of odd turns.
struct alignas(16) EncodeMemory {
  Exchange exchanges[2];
};

template <class T>
__host__ __device__ constexpr std::size_t encode_memory_bytes(int warps) {
  constexpr std::size_t kLeastOfAnyDevice = 64 * 1024;
  static_assert(sizeof(EncodeMemory) + kFewestEncodeWarps * sizeof(WarpMemory<T>) <= kLeastOfAnyDevice);
  return sizeof(EncodeMemory) + static_cast<std::size_t>(warps) * sizeof(WarpMemory<T>);
}

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

/// What follows from the order of two stretches.
__device__ inline Stretch joined(const Stretch& left, const Stretch& right) {
  return {left.runs + right.runs, right.runs > 0 ? right.open : left.open + right.open};
}

/// By the publisher: the stretches of the warps up to and including the lane's.
__device__ inline Stretch join_warps(Stretch stretch, int lane) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const Stretch left{__shfl_up_sync(~0u, stretch.runs, distance),
                       __shfl_up_sync(~0u, stretch.open, distance)};
    if (lane >= distance) stretch = joined(left, stretch);
  }
  return stretch;
}

/// Calls act(exchange, tile) for each of the block's tiles, once `signal` of it is raised; raises `then`.
template <class T, class Act>
__device__ void for_each_tile(const EncodeArguments<T>& a, EncodeMemory& memory, Signal Exchange::*signal,
                              Signal Exchange::*then, const Act& act) {
  std::int64_t tile = blockIdx.x;
  for (int turn = 0; tile < a.tiles; ++turn, tile += gridDim.x) {
    Exchange& exchange = memory.exchanges[turn % 2];
    (exchange.*signal).wait_parity(turn / 2 % 2 != 0);
    act(exchange, tile);
    (void)(exchange.*then).arrive();
  }
}

/// By the publisher: what is in a tile.
template <class T>
__device__ void publish_own(const EncodeArguments<T>& a, Exchange& exchange, std::int64_t tile, int warps,
                            int lane) {
  Stretch through{0, 0};
  if (lane < warps) {
    const WarpCount count = exchange.counts[lane];
    through = {static_cast<std::uint64_t>(count.heads), static_cast<std::uint64_t>(count.open)};
  }
  through = join_warps(through, lane);
  exchange.through[lane] = through;
  if (lane == 31) publish(a.words + tile, tile == 0 ? State::kInclusive : State::kOwn, through);
}

/// By the connector: what is before the parts of a tile, and what is up to its end.
template <class T>
__device__ void connect(const EncodeArguments<T>& a, Exchange& exchange, std::int64_t tile, int warps,
                        int lane) {
  const Stretch before = tile > 0 ? look_back(a.words, tile) : Stretch{0, 0};
  const Stretch end = joined(before, exchange.through[31]);
  if (lane == 0 && tile > 0) publish(a.words + tile, State::kInclusive, end);
  if (lane < warps) {
    const Stretch start = lane == 0 ? before : joined(before, exchange.through[lane - 1]);
    exchange.starts[lane] = {static_cast<std::int64_t>(start.runs), static_cast<std::int64_t>(start.open)};
  }
  if (lane == 0 && tile == a.tiles - 1) {
    const auto runs = static_cast<std::int64_t>(end.runs);
    store_length(a, runs - 1, static_cast<std::int64_t>(end.open), a.count);
    a.told->runs = runs;
    if (a.first_runs != nullptr) a.first_runs[(a.count - 1) / a.piece + 1] = runs;
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

/// By a warp, once the tile is connected. Lane 0 reads, the same that tells the connector, by way of the next
/// tiles, that it may write here again.
__device__ inline WarpStart start_of(const Exchange& exchange, int warp, int lane) {
  WarpStart start{0, 0};
  if (lane == 0) start = exchange.starts[warp];
  return {__shfl_sync(~0u, start.run, 0), __shfl_sync(~0u, start.open, 0)};
}

template <class T>
__device__ void encode_parts(const EncodeArguments<T>& a, EncodeMemory& memory, WarpMemory<T>& own, int warps,
                             int warp, int lane) {
  const std::int64_t stride = gridDim.x;
  const std::int64_t step = stride * warps * WarpMemory<T>::kElements;
  const auto send = [&](std::int64_t first, int share) {
    send_for(a, own.shares[share], first, Part<T>(a, first).valid, lane);
  };
  std::int64_t tile = blockIdx.x;
  std::int64_t first = (tile * warps + warp) * WarpMemory<T>::kElements;
  send(first, 0);
  send(first + step, 1);
  LaneHeads<T> heads_before{};
  int share = 0;
  for (int turn = 0;; ++turn, tile += stride, first += step) {
    LaneHeads<T> heads{};
    if (tile < a.tiles) {
      __pipeline_wait_prior(1);
      __syncwarp();
      const Part<T> part(a, first);
      heads = find_heads(a, own.shares[share], part.first, part.valid, lane);
      const int open = part.valid - last_head(heads, lane);
      Exchange& exchange = memory.exchanges[turn % 2];
      if (lane == 0) {
        exchange.counts[warp] = {heads.all, open};
        (void)exchange.counted.arrive();
      }
    }
    const int share_before = share == 0 ? 2 : share - 1;  // and that of the tile behind the next
    if (turn > 0) {
      list_heads(heads_before, own.heads, lane);
      __syncwarp();
      Exchange& exchange = memory.exchanges[(turn - 1) % 2];
      exchange.connected.wait_parity((turn - 1) / 2 % 2 != 0);
      const WarpStart start = start_of(exchange, warp, lane);
      const Part<T> part(a, first - step);
      const int count = heads_before.all;
      write_runs(a, part, own.shares[share_before].elements, own.heads, count, start, lane);
      if (a.first_runs != nullptr) write_first_runs(a, part, own.heads, count, start, lane);
      __syncwarp();
    }
    if (tile >= a.tiles) return;
    send(first + 2 * step, share_before);
    heads_before = heads;
    share = share == 2 ? 0 : share + 1;
  }
}

/// Of blocks that are all resident.
template <class T>
__global__ void __launch_bounds__(32 * (kMostEncodeWarps + kEncodeServants))
    encode_tiles(const EncodeArguments<T> a) {
  extern __shared__ uint4 encode_memory[];
  EncodeMemory& memory = *reinterpret_cast<EncodeMemory*>(encode_memory);
  auto* warp_memory = reinterpret_cast<WarpMemory<T>*>(&memory + 1);
  const int warps = static_cast<int>(blockDim.x) / 32 - kEncodeServants;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x == 0) {
    for (Exchange& exchange : memory.exchanges) {
      init(&exchange.counted, warps);
      init(&exchange.published, 32);
      init(&exchange.connected, 32);
    }
  }
  __syncthreads();
  if (warp < warps) {
    encode_parts(a, memory, warp_memory[warp], warps, warp, lane);
  } else if (warp == warps) {
    for_each_tile(
        a, memory, &Exchange::counted, &Exchange::published,
        [&](Exchange& exchange, std::int64_t tile) { publish_own(a, exchange, tile, warps, lane); });
  } else {
    for_each_tile(a, memory, &Exchange::published, &Exchange::connected,
                  [&](Exchange& exchange, std::int64_t tile) { connect(a, exchange, tile, warps, lane); });
  }
}

}  // namespace cumulus::run_length
