#include "kernels/primitives/block_scan.cuh"
#include "kernels/primitives/diagonal_tiles.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/look_back.cuh"
#include "kernels/primitives/status_word.cuh"
#include "kernels/primitives/warp_scan.cuh"
#include "tests/kernels/primitives_kernels.h"
#include "tests/kernels/primitives_memory.cuh"

namespace cumulus::testing {
namespace {

struct JoinAffine {
  /// The map that applies `first`, then `second`.
  __host__ __device__ Affine operator()(const Affine& first, const Affine& second) const {
    return {first.scale * second.scale, second.scale * first.offset + second.offset};
  }
};

struct AffineWord {
  LookBackState known;
  Affine value;
  __device__ LookBackState state() const { return known; }
};

struct WarpScanArguments {
  const Affine* values;
  Affine* before;
  int count;
  StatusWord<Affine>::Bits* words;
  unsigned int* next_ticket;
};

// owns: a warp, the tile of 32 values that its ticket names. reads: values, words of earlier tiles.
// writes: before, its word. waits for: tiles of lower tickets. Cannot deadlock: those have begun, and publish
// before they wait.
__global__ void scan_tiles_by_warps(const WarpScanArguments a) {
  std::uint32_t ticket = 0;
  if (lane_index() == 0) ticket = atomicAdd(a.next_ticket, 1U);
  const auto tile = static_cast<int>(__shfl_sync(kFullWarp, ticket, 0));
  const int item = tile * 32 + lane_index();
  const Affine own = item < a.count ? a.values[item] : Affine{1, 0};
  const Affine through = warp_inclusive_scan(own, JoinAffine{});
  const Affine aggregate = warp_shuffle(through, 31);
  if (lane_index() == 0) publish(a.words + tile, LookBackState::kAggregate, aggregate);
  const auto load = [&](std::int64_t at) {
    if (at < 0) return AffineWord{LookBackState::kInclusive, {1, 0}};
    StatusWord<Affine> word;
    word.load(a.words + at);
    return AffineWord{static_cast<LookBackState>(word.status()), word.value()};
  };
  Affine before{1, 0};
  warp_look_back(tile, load, [&](const AffineWord& word, unsigned int wanted, unsigned int /*inclusive*/) {
    for (int lane = 0; lane < 32; ++lane) {  // the nearest first
      const Affine of_lane = warp_shuffle(word.value, lane);
      if ((wanted >> lane & 1) != 0) before = JoinAffine{}(of_lane, before);
    }
  });
  if (lane_index() == 0) publish(a.words + tile, LookBackState::kInclusive, JoinAffine{}(before, aggregate));
  const Affine lanes_before = warp_shuffle(through, max(lane_index() - 1, 0));
  if (item < a.count) a.before[item] = lane_index() == 0 ? before : JoinAffine{}(before, lanes_before);
}

struct BothArguments {
  const std::uint64_t* values;
  std::uint64_t* above;
  std::uint64_t* left;
  int rows, columns;
  StatusWord<std::uint64_t>::Bits* column_words;
  StatusWord<std::uint64_t>::Bits* row_words;
  unsigned int* next_ticket;
};

// owns: a block, the tile that its ticket names, by diagonals; a thread one of 32 planes. reads: values,
// words of the tiles above and to the left. writes: above, left, its words. waits for: lower tickets, which
// have begun and publish before they wait.
__global__ void look_back_in_two_dimensions(const BothArguments a) {
  using Sum = std::uint64_t;
  std::uint32_t ticket = 0;
  if (lane_index() == 0) ticket = atomicAdd(a.next_ticket, 1U);
  ticket = __shfl_sync(kFullWarp, ticket, 0);
  const GridTile tile =
      tile_of_ticket(0, ticket, static_cast<std::uint32_t>(a.rows), static_cast<std::uint32_t>(a.columns));
  const int row = tile.row;
  const int column = tile.column;
  const std::int64_t place = (std::int64_t{row} * a.columns + column) * 32 + lane_index();
  const Sum own = a.values[place];
  publish(a.column_words + place, row == 0 ? LookBackState::kInclusive : LookBackState::kAggregate, own);
  publish(a.row_words + place, column == 0 ? LookBackState::kInclusive : LookBackState::kAggregate, own);
  Sum above = 0;
  if (row > 0) {
    above = look_back<Sum, 6, 2>(a.column_words + place, std::int64_t{a.columns} * 32, row);
    publish(a.column_words + place, LookBackState::kInclusive, above + own);
  }
  Sum left = 0;
  if (column > 0) {
    left = look_back<Sum, 6, 2>(a.row_words + place, 32, column);
    publish(a.row_words + place, LookBackState::kInclusive, left + own);
  }
  a.above[place] = above;
  a.left[place] = left;
}

// ---- warp and block scans

constexpr int kWarpValues = 8;

// owns: one warp, all values. reads: values, kWarpValues a lane. writes: results. waits for: nothing of other
// blocks.
__global__ void sum_values(const std::uint32_t* values, std::uint32_t* results) {
  constexpr int kLanes = 16;
  std::uint32_t own[kWarpValues];
  for (int k = 0; k < kWarpValues; ++k) own[k] = values[k * 32 + lane_index()];
  warp_inclusive_sums<kLanes>(own);
  for (int k = 0; k < kWarpValues; ++k) {
    results[(1 + k) * 32 + lane_index()] = own[k];
    results[(1 + kWarpValues + k) * 32 + lane_index()] = before_lane<kLanes>(own[k]);
    own[k] = values[k * 32 + lane_index()];
  }
  results[lane_index()] = warp_sums(own);
}

// owns: one block, all values. reads: values. writes: before. waits for: nothing of other blocks.
template <int kThreads>
__global__ void scan_values(const Affine* values, Affine* before) {
  __shared__ Affine warps[kThreads / 32];
  const BlockScan<Affine> scan =
      block_exclusive_scan<kThreads>(values[threadIdx.x], Affine{1, 0}, JoinAffine{}, warps);
  before[threadIdx.x] = scan.before;
  if (threadIdx.x == kThreads / 2) before[kThreads] = scan.total;
}

}  // namespace

std::vector<Affine> scan_by_warps(CudaExecutor& executor, const std::vector<Affine>& values) {
  const auto tiles = static_cast<std::int64_t>((values.size() + 31) / 32);
  const DeviceMemory from = device_copy(executor, values);
  const DeviceMemory before = executor.allocate(values.size() * sizeof(Affine));
  const DeviceMemory words = zeroed(executor, static_cast<std::size_t>(tiles) * sizeof(uint4));
  const DeviceMemory ticket = zeroed(executor, sizeof(unsigned int));
  const WarpScanArguments arguments{data_of<Affine>(from), data_of<Affine>(before),
                                    static_cast<int>(values.size()), data_of<StatusWord<Affine>::Bits>(words),
                                    data_of<unsigned int>(ticket)};
  launch(executor.stream(), scan_tiles_by_warps, {tiles, 32}, arguments);
  return host_copy<Affine>(executor, before, values.size());
}

SumsBefore look_back_along_both(CudaExecutor& executor, const std::vector<std::uint64_t>& values, int rows,
                                int columns) {
  const std::size_t bytes = values.size() * sizeof(std::uint64_t);
  const DeviceMemory from = device_copy(executor, values);
  const DeviceMemory above = executor.allocate(bytes);
  const DeviceMemory left = executor.allocate(bytes);
  const DeviceMemory column_words = zeroed(executor, values.size() * sizeof(uint4));
  const DeviceMemory row_words = zeroed(executor, values.size() * sizeof(uint4));
  const DeviceMemory ticket = zeroed(executor, sizeof(unsigned int));
  const BothArguments arguments{data_of<std::uint64_t>(from),
                                data_of<std::uint64_t>(above),
                                data_of<std::uint64_t>(left),
                                rows,
                                columns,
                                data_of<StatusWord<std::uint64_t>::Bits>(column_words),
                                data_of<StatusWord<std::uint64_t>::Bits>(row_words),
                                data_of<unsigned int>(ticket)};
  launch(executor.stream(), look_back_in_two_dimensions, {std::int64_t{rows} * columns, 32}, arguments);
  return {host_copy<std::uint64_t>(executor, above, values.size()),
          host_copy<std::uint64_t>(executor, left, values.size())};
}

WarpSums sum_by_warp(CudaExecutor& executor, const std::vector<std::uint32_t>& values) {
  constexpr std::size_t kCount = (1 + 2 * kWarpValues) * 32;
  const DeviceMemory from = device_copy(executor, values);
  const DeviceMemory results = executor.allocate(kCount * sizeof(std::uint32_t));
  launch(executor.stream(), sum_values, {1, 32}, data_of<std::uint32_t>(from),
         data_of<std::uint32_t>(results));
  const auto all = host_copy<std::uint32_t>(executor, results, kCount);
  const auto exclusive = all.begin() + (1 + kWarpValues) * 32;
  return {{all.begin(), all.begin() + 32}, {all.begin() + 32, exclusive}, {exclusive, all.end()}};
}

std::vector<Affine> scan_by_block(CudaExecutor& executor, const std::vector<Affine>& values) {
  const DeviceMemory from = device_copy(executor, values);
  const DeviceMemory before = executor.allocate((values.size() + 1) * sizeof(Affine));
  const auto run = [&](auto kernel, int threads) {
    launch(executor.stream(), kernel, {1, threads}, data_of<Affine>(from), data_of<Affine>(before));
  };
  values.size() == 128 ? run(scan_values<128>, 128) : run(scan_values<1024>, 1024);
  return host_copy<Affine>(executor, before, values.size() + 1);
}

}  // namespace cumulus::testing
