#pragma once

#include <cstdint>
#include <cuda/barrier>
#include <utility>

#include "kernels/core/div.h"
#include "kernels/primitives/mbarrier.cuh"
#include "kernels/primitives/warp.cuh"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/run_length/encode/heads.cuh"
#include "kernels/run_length/encode/look_back.cuh"
#include "kernels/run_length/encode/runs.cuh"

// The encoder's kernel, in one pass. Each warp of a block has its chunk of a tile and runs ahead: it compares
// its chunks of several tiles, while copies of the next ones are in flight, before it needs the carry-in of
// the first. Two carry warps exchange with the other blocks meanwhile: the publisher warp scans the warps'
// counts and publishes the tile aggregate; the look-back warp (the carry scanner) finds the tile's exclusive
// prefix and hands each warp its carry-in.
//
// Tiles go to the blocks in turns rather than by tickets: a block takes its tiles ahead of their use, so that
// with tickets the block that starts first would take several adjacent tiles, and the next one wait for all
// of them.

namespace cumulus::run_length {

/// An mbarrier; completes one phase for each tile of its stage.
using Barrier = cuda::barrier<cuda::thread_scope_block>;

__device__ inline void wait_for(Barrier& barrier, bool parity) {
#if __CUDA_ARCH__ >= 900
  // wait_parity() of the library reads the clock first.
  wait_for_phase_parity(
      static_cast<std::uint32_t>(__cvta_generic_to_shared(cuda::device::barrier_native_handle(barrier))),
      parity ? 1 : 0);
#else
  barrier.wait_parity(parity);
#endif
}

/// A stage of the ring between the warps of a block: one tile.
struct TileStage {
  Barrier counted;    // by the warps: `counts` is written
  Barrier published;  // by the publisher warp: `through` is written
  Barrier carried;    // by the look-back warp: `carries` is written
  SmallRunSum counts[kMaxEncodeWarps];
  SmallRunSum through[32];  // inclusive prefixes over the warps
  CarryIn carries[kMaxEncodeWarps];
};

/// A block's shared memory, before that of its warps.
struct alignas(16) EncodeMemory {
  static constexpr int kStages = kQueuedChunks + 1;
  TileStage stages[kStages];
};

/// Goes through the ring, a stage for each tile.
struct StageCursor {
  EncodeMemory& memory;
  int index = 0;
  bool parity = false;

  __device__ TileStage& operator*() const { return memory.stages[index]; }
  __device__ TileStage* operator->() const { return &memory.stages[index]; }
  __device__ void advance() {
    ++index;
    if (index == EncodeMemory::kStages) {
      index = 0;
      parity = !parity;
    }
  }
};

/// Calls act(stage, tile) for each of the block's tiles, once its barrier `full` completes; then arrives at
/// `done`.
template <class T, class Act>
__device__ void for_each_tile(const EncodeArguments<T>& a, EncodeMemory& memory, Barrier TileStage::*full,
                              Barrier TileStage::*done, const Act& act) {
  StageCursor stage{memory};
  for (std::int64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x, stage.advance()) {
    wait_for((*stage).*full, stage.parity);
    act(*stage, tile);
    (void)((*stage).*done).arrive();
  }
}

/// By the publisher warp: publishes the tile aggregate, scans the warps' aggregates.
template <class T>
__device__ void publish_tile(const EncodeArguments<T>& a, TileStage& stage, std::int64_t tile, int warps,
                             int lane) {
  const SmallRunSum own = lane < warps ? stage.counts[lane] : SmallRunSum{0};
  const unsigned int with_runs = __ballot_sync(kFullWarp, own.runs() > 0);
  const bool reaches_end = lane >= 31 - __clz(static_cast<int>(with_runs));
  const std::uint64_t runs = warp_sum(own.runs());
  const std::uint64_t open = warp_sum(reaches_end ? own.open() : 0u);
  if (lane == 0)
    RunWord(tile == 0 ? LookBackState::kInclusive : LookBackState::kAggregate, {runs, open})
        .store(a.status_words + tile);
  // One scan for both halves. The open elements are then too many by those before the last chunk with a run.
  const SmallRunSum sums{warp_inclusive_sum(own.runs_and_open)};
  const int last = 31 - __clz(static_cast<int>(with_runs & (~0u >> (31 - lane))));
  const SmallRunSum before{__shfl_sync(kFullWarp, sums.runs_and_open, max(last - 1, 0))};
  stage.through[lane] = SmallRunSum::of(sums.runs(), sums.open() - (last > 0 ? before.open() : 0));
}

/// By the look-back warp: publishes the tile's inclusive prefix, hands the warps their carry-ins. Who has the
/// last tile ends the last run.
template <class T>
__device__ void carry_tile(const EncodeArguments<T>& a, TileStage& stage, std::int64_t tile, int warps,
                           int lane) {
  const RunSum before = tile > 0 ? look_back(a.status_words, tile) : RunSum{0, 0};
  const RunSum end = combine(before, stage.through[31].sum());
  if (lane == 0 && tile > 0) RunWord(LookBackState::kInclusive, end).store(a.status_words + tile);
  if (lane < warps) {
    const RunSum carry = lane == 0 ? before : combine(before, stage.through[lane - 1].sum());
    stage.carries[lane] = {static_cast<std::int64_t>(carry.runs), static_cast<std::int64_t>(carry.open)};
  }
  if (lane == 0 && tile == a.tiles - 1) {
    const auto runs = static_cast<std::int64_t>(end.runs);
    store_length(a, runs - 1, static_cast<std::int64_t>(end.open), a.count);
    a.caller_report->runs = runs;
    if (a.first_runs != nullptr) a.first_runs[(a.count - 1) / a.piece + 1] = runs;
  }
}

/// By a warp, after `carried`. Lane 0 reads: the same lane arrives at `counted` of a later tile, and only
/// after that does the look-back warp write to this stage again.
__device__ inline CarryIn carry_of(const TileStage& stage, int warp, int lane) {
  CarryIn carry{0, 0};
  if (lane == 0) carry = stage.carries[warp];
  return {__shfl_sync(kFullWarp, carry.run, 0), __shfl_sync(kFullWarp, carry.open, 0)};
}

/// A warp and its chunks, one of each of the block's tiles. Some are being copied, one is compared, and some
/// wait for their carry-in: at most kMaxHeld as they are, where they have many runs, or else at most
/// kQueuedChunks of which only the list of their few runs is left.
template <class T>
class WarpEncoder {
 public:
  __device__ WarpEncoder(const EncodeArguments<T>& a, EncodeMemory& memory, WarpMemory<T>& own, int warps,
                         int warp, int lane)
      : a_(a),
        own_(own),
        warp_(warp),
        lane_(lane),
        stride_(std::int64_t{gridDim.x} * warps * WarpMemory<T>::kElements),
        count_stage_{memory},
        write_stage_{memory},
        prefetched_((std::int64_t{blockIdx.x} * warps + warp) * WarpMemory<T>::kElements),
        to_write_(prefetched_) {}

  __device__ void run() {
    for (int chunk = 0; chunk < kChunks; ++chunk) prefetch(chunk);
    const auto turns = static_cast<int>(divide_up(a_.tiles - blockIdx.x, gridDim.x));
    std::int64_t first = to_write_;
    int chunk = 0;
    for (int turn = 0;; ++turn, first += stride_) {
      const bool last = turn == turns;
      bool few = last;
      LaneHeads<T> heads{};
      if (!last) {
        wait_for_copies(std::make_integer_sequence<int, kMaxHeld + 1>{});
        const ChunkRange<T> range(a_, first);
        heads = find_heads(a_, own_.chunks[chunk], range.first, range.valid, lane_);
        publish_counts(heads, range);
        // A change between held and queued chunks drains those that wait.
        few = heads.all <= (held_ > 0 ? QueuedRuns<T>::kMaxRuns / 2 : QueuedRuns<T>::kMaxRuns);
      }
      while (held_ > (few ? 0 : kMaxHeld - 1)) {
        const int oldest = chunk < held_ ? chunk - held_ + kChunks : chunk - held_;
        write_held(own_.chunks[oldest]);
        if (!last) prefetch(oldest);
      }
      while (queued_ > (few && !last ? kQueuedChunks - 1 : 0)) write_queued();
      if (last) return;
      if (few) {
        enqueue(heads, own_.chunks[chunk]);
        prefetch(chunk);
      } else {
        hold(heads);
      }
      chunk = chunk + 1 < kChunks ? chunk + 1 : 0;
    }
  }

 private:
  using Chunk = typename WarpMemory<T>::Chunk;
  static constexpr int kChunks = WarpMemory<T>::kChunks;
  static constexpr int kMaxHeld = WarpMemory<T>::kMaxHeld;

  /// For the elements of the next chunk. How many copies may be in flight still follows from the chunks held.
  template <int... kNow>
  __device__ void wait_for_copies(std::integer_sequence<int, kNow...>) const {
    ((held_ == kNow ? __pipeline_wait_prior(kChunks - 1 - kNow) : void()), ...);
    __syncwarp();
  }

  /// Begins to copy the next chunk.
  __device__ void prefetch(int chunk) {
    load_chunk(a_, own_.chunks[chunk], prefetched_, ChunkRange<T>(a_, prefetched_).valid, lane_);
    prefetched_ += stride_;
  }

  /// Hands the chunk's aggregate to the publisher warp.
  __device__ void publish_counts(const LaneHeads<T>& heads, const ChunkRange<T>& range) {
    const int open = range.valid - last_head(heads, lane_);
    if (lane_ == 0) {
      count_stage_->counts[warp_] =
          SmallRunSum::of(static_cast<std::uint32_t>(heads.all), static_cast<std::uint32_t>(open));
      (void)count_stage_->counted.arrive();
    }
    count_stage_.advance();
  }

  /// Of the next chunk to be written.
  __device__ CarryIn wait_for_carry() {
    wait_for(write_stage_->carried, write_stage_.parity);
    const CarryIn carry = carry_of(*write_stage_, warp_, lane_);
    write_stage_.advance();
    return carry;
  }

  __device__ void hold(const LaneHeads<T>& heads) {
#pragma unroll
    for (int i = kMaxHeld - 1; i > 0; --i) heads_held_[i] = heads_held_[i - 1];
    heads_held_[0] = heads;
    ++held_;
  }

  /// The chunk that has been held longest.
  __device__ void write_held(const Chunk& chunk) {
    LaneHeads<T> heads = heads_held_[0];
#pragma unroll
    for (int i = 1; i < kMaxHeld; ++i) {
      if (held_ == i + 1) heads = heads_held_[i];
    }
    --held_;
    list_heads(heads, own_.heads, lane_);
    __syncwarp();
    const CarryIn carry = wait_for_carry();
    const ChunkRange<T> range(a_, to_write_);
    write_runs(a_, range, ChunkRuns<T>{chunk.elements, own_.heads, heads.all}, carry, lane_);
    if (a_.first_runs != nullptr) write_first_runs(a_, range, own_.heads, heads.all, carry, lane_);
    __syncwarp();
    to_write_ += stride_;
  }

  __device__ void enqueue(const LaneHeads<T>& heads, const Chunk& chunk) {
    QueuedRuns<T>& runs = own_.queued[next_slot(oldest_ + queued_)];
    ++queued_;
    if (lane_ == 0) runs.count = heads.all;
    if (heads.all > 0) {
      list_few(heads, runs.heads, lane_);
      __syncwarp();
      for (int r = lane_; r < heads.all; r += 32)
        runs.symbols[r] = chunk.elements[Layout<T>::place(runs.heads[r])];
    }
    __syncwarp();
  }

  __device__ void write_queued() {
    const QueuedRuns<T>& runs = own_.queued[oldest_];
    const CarryIn carry = wait_for_carry();
    const ChunkRange<T> range(a_, to_write_);
    write_few_runs(a_, range, runs, carry, lane_);
    if (a_.first_runs != nullptr) write_first_runs(a_, range, runs.heads, runs.count, carry, lane_);
    __syncwarp();
    to_write_ += stride_;
    oldest_ = next_slot(oldest_ + 1);
    --queued_;
  }

  __device__ static int next_slot(int slot) { return slot < kQueuedChunks ? slot : slot - kQueuedChunks; }

  const EncodeArguments<T>& a_;
  WarpMemory<T>& own_;
  int warp_;
  int lane_;
  std::int64_t stride_;  // elements from a chunk to the next
  StageCursor count_stage_;
  StageCursor write_stage_;
  std::int64_t prefetched_;              // begin of the chunk that is copied next
  std::int64_t to_write_;                // and of the one that is written next
  LaneHeads<T> heads_held_[kMaxHeld]{};  // the newest first
  int held_ = 0;
  int oldest_ = 0;  // of the queued ones
  int queued_ = 0;
};

/// owns: block b has tiles b, b + gridDim.x, b + 2 gridDim.x, ...; each warp but the last two one chunk of
/// each, in order;
///   shared memory is a ring of kStages tile stages and each warp's chunks (WarpMemory).
/// reads: its chunks of the array and the element before each; status words of lower tiles.
/// writes: symbols and lengths of the runs that begin in the chunk, but for the last length, which the next
/// chunk with a head
///   writes; first_runs; status word of each tile (aggregate, then inclusive prefix); the last tile writes
///   the report.
/// waits for: the look-back warp polls status words of lower tiles; within the block, mbarriers of the tile's
/// stage. why it cannot deadlock: the launch is cooperative, so that all blocks are resident. A block
/// publishes a tile's aggregate
///   after its warps have compared the tile's chunks, for which they wait at most for carry-ins of tiles that
///   are lower and kMaxHeld or kQueuedChunks turns back. So the lowest tile without a status word waits for
///   published tiles only.
/// source: D. Merrill and M. Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016; the
/// pair of arrays
///   is PARLE's (A. Balevic, "Parallel variable-length encoding on GPGPUs", 2009).
template <class T>
__global__ void __launch_bounds__(32 * (kMaxEncodeWarps + kCarryWarps))
    encode_tiles(const EncodeArguments<T> a) {
  static_assert(kMaxEncodeWarps * WarpMemory<T>::kElements <= 0xFFFF);  // of a SmallRunSum
  static_assert(sizeof(EncodeMemory) == kEncodeBlockBytes);
  constexpr std::size_t kMinOfAnyDevice = 64 * 1024;
  static_assert(sizeof(EncodeMemory) + kMinEncodeWarps * sizeof(WarpMemory<T>) <= kMinOfAnyDevice);
  extern __shared__ uint4 encode_memory[];
  EncodeMemory& memory = *reinterpret_cast<EncodeMemory*>(encode_memory);
  auto* warp_memory = reinterpret_cast<WarpMemory<T>*>(&memory + 1);
  const int warps = static_cast<int>(blockDim.x) / 32 - kCarryWarps;
  const int warp = warp_index();
  const int lane = lane_index();
  if (threadIdx.x == 0) {
    for (TileStage& stage : memory.stages) {
      init(&stage.counted, warps);
      init(&stage.published, 32);
      init(&stage.carried, 32);
    }
  }
  __syncthreads();
  if (warp < warps) {
    WarpEncoder<T>(a, memory, warp_memory[warp], warps, warp, lane).run();
  } else if (warp == warps) {
    for_each_tile(a, memory, &TileStage::counted, &TileStage::published,
                  [&](TileStage& stage, std::int64_t tile) { publish_tile(a, stage, tile, warps, lane); });
  } else {
    for_each_tile(a, memory, &TileStage::published, &TileStage::carried,
                  [&](TileStage& stage, std::int64_t tile) { carry_tile(a, stage, tile, warps, lane); });
  }
}

}  // namespace cumulus::run_length
