#pragma once

#include <cstdint>
#include <cuda/barrier>
#include <utility>

#include "kernels/run_length/encode_heads.cuh"
#include "kernels/run_length/encode_write.cuh"
#include "kernels/run_length/look_back.cuh"

// The encoder's kernel: as many blocks as fit take the array's tiles in turns. Each warp of a block has its
// share of a tile and works at its own pace: it looks through its shares of several tiles, while the elements
// of the next ones are on their way, before it must know where the runs of the first of them go. Two more
// warps speak with the other blocks meanwhile: the publisher adds up what the warps have counted and
// publishes it; the connector looks back, and tells each where its runs go.
//
// All blocks must be resident. A block publishes a tile when it has connected all but the last few of those
// that it took before, so that whoever waits for the lowest tile that is not published waits for one that
// nothing holds up. Tiles by turns keep it that way for long: were they taken as blocks get to them, two
// tickets ahead of their use, a block that starts first would take three tiles side by side, and the next one
// wait for all of them.

namespace cumulus::run_length {

/// Raised once for each tile of its parity.
using Signal = cuda::barrier<cuda::thread_scope_block>;

__device__ inline void wait_for(Signal& signal, bool parity) {
#if __CUDA_ARCH__ >= 900
  // The barrier's own function asks what time it is first.
  const auto barrier =
      static_cast<std::uint32_t>(__cvta_generic_to_shared(cuda::device::barrier_native_handle(signal)));
  std::uint32_t raised = 0;
  while (raised == 0) {
    asm volatile(
        "{ .reg .pred raised; mbarrier.try_wait.parity.shared::cta.b64 raised, [%1], %2; "
        "selp.u32 %0, 1, 0, raised; }"
        : "=r"(raised)
        : "r"(barrier), "r"(parity ? 1 : 0)
        : "memory");
  }
#else
  signal.wait_parity(parity);
#endif
}

/// Between the warps of a block, of a tile.
struct Exchange {
  Signal counted;    // by the warps
  Signal published;  // by the publisher
  Signal connected;  // by the connector
  SmallStretch counts[kMostEncodeWarps];
  SmallStretch through[32];  // of the warps up to and including this one
  WarpStart starts[kMostEncodeWarps];
};

/// A block's shared memory, before that of its warps.
struct alignas(16) EncodeMemory {
  static constexpr int kExchanges = kWaitingShares + 1;
  Exchange exchanges[kExchanges];
};

/// Goes through the exchanges, a turn at a time.
struct ExchangeOfTurn {
  EncodeMemory& memory;
  int index = 0;
  bool parity = false;

  __device__ Exchange& operator*() const { return memory.exchanges[index]; }
  __device__ Exchange* operator->() const { return &memory.exchanges[index]; }
  __device__ void step() {
    ++index;
    if (index == EncodeMemory::kExchanges) {
      index = 0;
      parity = !parity;
    }
  }
};

template <class T>
__host__ __device__ constexpr std::size_t encode_memory_bytes(int warps) {
  static_assert(kMostEncodeWarps * WarpMemory<T>::kElements <= 0xFFFF);  // of a SmallStretch
  constexpr std::size_t kLeastOfAnyDevice = 64 * 1024;
  static_assert(sizeof(EncodeMemory) + kFewestEncodeWarps * sizeof(WarpMemory<T>) <= kLeastOfAnyDevice);
  return sizeof(EncodeMemory) + static_cast<std::size_t>(warps) * sizeof(WarpMemory<T>);
}

/// Calls act(exchange, tile) for each of the block's tiles, once `signal` of it is raised; raises `then`.
template <class T, class Act>
__device__ void for_each_tile(const EncodeArguments<T>& a, EncodeMemory& memory, Signal Exchange::*signal,
                              Signal Exchange::*then, const Act& act) {
  ExchangeOfTurn exchange{memory};
  for (std::int64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x, exchange.step()) {
    wait_for((*exchange).*signal, exchange.parity);
    act(*exchange, tile);
    (void)((*exchange).*then).arrive();
  }
}

/// By the publisher: what is in a tile.
template <class T>
__device__ void publish_own(const EncodeArguments<T>& a, Exchange& exchange, std::int64_t tile, int warps,
                            int lane) {
  const SmallStretch own = lane < warps ? exchange.counts[lane] : SmallStretch{0};
  const unsigned int with_runs = __ballot_sync(~0u, own.runs() > 0);
  const bool reaches_end = lane >= 31 - __clz(static_cast<int>(with_runs));
  const std::uint64_t runs = warp_sum(own.runs());
  const std::uint64_t open = warp_sum(reaches_end ? own.open() : 0u);
  if (lane == 0) publish(a.words + tile, tile == 0 ? State::kInclusive : State::kOwn, {runs, open});
  // Both sums at once; that of the open elements is too much by those before the last part with a run.
  const SmallStretch sums{warp_inclusive_sum(own.runs_and_open)};
  const int last = 31 - __clz(static_cast<int>(with_runs & (~0u >> (31 - lane))));
  const SmallStretch before{__shfl_sync(~0u, sums.runs_and_open, max(last - 1, 0))};
  exchange.through[lane] = SmallStretch::of(sums.runs(), sums.open() - (last > 0 ? before.open() : 0));
}

/// By the connector: what is before the parts of a tile, and what is up to its end.
template <class T>
__device__ void connect(const EncodeArguments<T>& a, Exchange& exchange, std::int64_t tile, int warps,
                        int lane) {
  const Stretch before = tile > 0 ? look_back(a.words, tile) : Stretch{0, 0};
  const Stretch end = joined(before, exchange.through[31].stretch());
  if (lane == 0 && tile > 0) publish(a.words + tile, State::kInclusive, end);
  if (lane < warps) {
    const Stretch start = lane == 0 ? before : joined(before, exchange.through[lane - 1].stretch());
    exchange.starts[lane] = {static_cast<std::int64_t>(start.runs), static_cast<std::int64_t>(start.open)};
  }
  if (lane == 0 && tile == a.tiles - 1) {
    const auto runs = static_cast<std::int64_t>(end.runs);
    store_length(a, runs - 1, static_cast<std::int64_t>(end.open), a.count);
    a.told->runs = runs;
    if (a.first_runs != nullptr) a.first_runs[(a.count - 1) / a.piece + 1] = runs;
  }
}

/// By a warp, once the tile is connected. Lane 0 reads, the same that tells the connector, by way of the next
/// tiles, that it may write here again.
__device__ inline WarpStart start_of(const Exchange& exchange, int warp, int lane) {
  WarpStart start{0, 0};
  if (lane == 0) start = exchange.starts[warp];
  return {__shfl_sync(~0u, start.run, 0), __shfl_sync(~0u, start.open, 0)};
}

/// A warp's way through the shares that are its own. Some are on their way, one is looked through, and some
/// wait until it is known where their runs go: at most kHeld as they are, where they have many runs, or
/// else at most kWaitingShares of which there is but a list of few runs.
template <class T>
class WarpEncoder {
 public:
  __device__ WarpEncoder(const EncodeArguments<T>& a, EncodeMemory& memory, WarpMemory<T>& own, int warps,
                         int warp, int lane)
      : a_(a),
        own_(own),
        warp_(warp),
        lane_(lane),
        step_(std::int64_t{gridDim.x} * warps * WarpMemory<T>::kElements),
        looked_through_{memory},
        written_{memory},
        sent_((std::int64_t{blockIdx.x} * warps + warp) * WarpMemory<T>::kElements),
        to_write_(sent_) {}

  __device__ void run() {
    for (int share = 0; share < kShares; ++share) send(share);
    const auto turns = static_cast<int>((a_.tiles - blockIdx.x + gridDim.x - 1) / gridDim.x);
    std::int64_t first = to_write_;
    int share = 0;
    for (int turn = 0;; ++turn, first += step_) {
      const bool last = turn == turns;
      bool few = last;
      LaneHeads<T> heads{};
      if (!last) {
        wait_for_copies(std::make_integer_sequence<int, kHeld + 1>{});
        const Part<T> part(a_, first);
        heads = find_heads(a_, own_.shares[share], part.first, part.valid, lane_);
        tell(heads, part);
        // To change from many to few, and back, takes waiting.
        few = heads.all <= (held_ > 0 ? WaitingRuns<T>::kMost / 2 : WaitingRuns<T>::kMost);
      }
      while (held_ > (few ? 0 : kHeld - 1)) {
        const int oldest = share < held_ ? share - held_ + kShares : share - held_;
        write_held(own_.shares[oldest]);
        if (!last) send(oldest);
      }
      while (waiting_ > (few && !last ? kWaitingShares - 1 : 0)) write_waiting();
      if (last) return;
      if (few) {
        keep(heads, own_.shares[share]);
        send(share);
      } else {
        hold(heads);
      }
      share = share + 1 < kShares ? share + 1 : 0;
    }
  }

 private:
  using Share = typename WarpMemory<T>::Share;
  static constexpr int kShares = WarpMemory<T>::kShares;
  static constexpr int kHeld = WarpMemory<T>::kHeld;

  /// For the elements of the next share. What the shares are that are on their way follows from those held.
  template <int... kNow>
  __device__ void wait_for_copies(std::integer_sequence<int, kNow...>) const {
    ((held_ == kNow ? __pipeline_wait_prior(kShares - 1 - kNow) : void()), ...);
    __syncwarp();
  }

  /// Sends for the next share.
  __device__ void send(int share) {
    send_for(a_, own_.shares[share], sent_, Part<T>(a_, sent_).valid, lane_);
    sent_ += step_;
  }

  /// Tells the block what is in a share.
  __device__ void tell(const LaneHeads<T>& heads, const Part<T>& part) {
    const int open = part.valid - last_head(heads, lane_);
    if (lane_ == 0) {
      looked_through_->counts[warp_] =
          SmallStretch::of(static_cast<std::uint32_t>(heads.all), static_cast<std::uint32_t>(open));
      (void)looked_through_->counted.arrive();
    }
    looked_through_.step();
  }

  /// Where the runs of the next share to be written go.
  __device__ WarpStart wait_for_start() {
    wait_for(written_->connected, written_.parity);
    const WarpStart start = start_of(*written_, warp_, lane_);
    written_.step();
    return start;
  }

  __device__ void hold(const LaneHeads<T>& heads) {
#pragma unroll
    for (int i = kHeld - 1; i > 0; --i) heads_held_[i] = heads_held_[i - 1];
    heads_held_[0] = heads;
    ++held_;
  }

  /// The one that is held longest.
  __device__ void write_held(const Share& share) {
    LaneHeads<T> heads = heads_held_[0];
#pragma unroll
    for (int i = 1; i < kHeld; ++i) {
      if (held_ == i + 1) heads = heads_held_[i];
    }
    --held_;
    list_heads(heads, own_.heads, lane_);
    __syncwarp();
    const WarpStart start = wait_for_start();
    const Part<T> part(a_, to_write_);
    write_runs(a_, part, share.elements, own_.heads, heads.all, start, lane_);
    if (a_.first_runs != nullptr) write_first_runs(a_, part, own_.heads, heads.all, start, lane_);
    __syncwarp();
    to_write_ += step_;
  }

  __device__ void keep(const LaneHeads<T>& heads, const Share& share) {
    WaitingRuns<T>& runs = own_.waiting[next_slot(oldest_ + waiting_)];
    ++waiting_;
    if (lane_ == 0) runs.count = heads.all;
    if (heads.all > 0) {
      list_few(heads, runs.heads, lane_);
      __syncwarp();
      for (int r = lane_; r < heads.all; r += 32)
        runs.symbols[r] = share.elements[Layout<T>::place(runs.heads[r])];
    }
    __syncwarp();
  }

  __device__ void write_waiting() {
    const WaitingRuns<T>& runs = own_.waiting[oldest_];
    const WarpStart start = wait_for_start();
    const Part<T> part(a_, to_write_);
    write_few_runs(a_, part, runs, start, lane_);
    if (a_.first_runs != nullptr) write_first_runs(a_, part, runs.heads, runs.count, start, lane_);
    __syncwarp();
    to_write_ += step_;
    oldest_ = next_slot(oldest_ + 1);
    --waiting_;
  }

  __device__ static int next_slot(int slot) { return slot < kWaitingShares ? slot : slot - kWaitingShares; }

  const EncodeArguments<T>& a_;
  WarpMemory<T>& own_;
  int warp_;
  int lane_;
  std::int64_t step_;  // from a share to the next
  ExchangeOfTurn looked_through_;
  ExchangeOfTurn written_;
  std::int64_t sent_;                 // begin of the share that is sent for next
  std::int64_t to_write_;             // and of the one that is written next
  LaneHeads<T> heads_held_[kHeld]{};  // the last one's first
  int held_ = 0;
  int oldest_ = 0;  // of the waiting ones
  int waiting_ = 0;
};

/// Of blocks that are all resident.
template <class T>
__global__ void __launch_bounds__(32 * (kMostEncodeWarps + kEncodeServants))
    encode_tiles(const EncodeArguments<T> a) {
  extern __shared__ uint4 encode_memory[];
  EncodeMemory& memory = *reinterpret_cast<EncodeMemory*>(encode_memory);
  auto* warp_memory = reinterpret_cast<WarpMemory<T>*>(&memory + 1);
  const int warps = static_cast<int>(blockDim.x) / 32 - kEncodeServants;
  const auto warp = static_cast<int>(threadIdx.x / 32);
  const auto lane = static_cast<int>(threadIdx.x % 32);
  if (threadIdx.x == 0) {
    for (Exchange& exchange : memory.exchanges) {
      init(&exchange.counted, warps);
      init(&exchange.published, 32);
      init(&exchange.connected, 32);
    }
  }
  __syncthreads();
  if (warp < warps) {
    WarpEncoder<T>(a, memory, warp_memory[warp], warps, warp, lane).run();
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
