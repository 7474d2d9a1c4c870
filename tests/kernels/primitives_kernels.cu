#include "kernels/primitives/await_all.cuh"
#include "kernels/primitives/block_scan.cuh"
#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/look_back.cuh"
#include "kernels/primitives/status_word.cuh"
#include "tests/kernels/primitives_kernels.h"
#include "tests/kernels/primitives_memory.cuh"

namespace cumulus::testing {
namespace {

void require(bool launched) {
  if (!launched) CUMULUS_CUDA(cudaErrorCooperativeLaunchTooLarge);
}

__host__ __device__ std::uint32_t hashed(std::uint32_t a, std::uint32_t b) {
  std::uint32_t x = a * 2654435761U ^ (b + 0x9E3779B9U) * 2246822519U;
  x = (x ^ x >> 15) * 3266489917U;
  return x ^ x >> 13;
}

// ---- status words

template <int kParts>
struct Parts {
  std::uint32_t of[kParts];
};

template <int kParts>
struct TornArguments {
  typename StatusWord<Parts<kParts>>::Bits* word;
  int rounds;
  unsigned long long* torn;
};

// owns: nothing; block 0 has the word. reads, writes: the word; `torn`.
// waits for: the last round, of block 0. Cannot deadlock: all blocks are resident.
template <int kParts>
__global__ void publish_and_poll(const TornArguments<kParts> a) {
  const auto value = [](std::uint32_t round) {
    Parts<kParts> parts;
    for (int i = 0; i < kParts; ++i) parts.of[i] = hashed(round, static_cast<std::uint32_t>(i));
    return parts;
  };
  const auto rounds = static_cast<std::uint32_t>(a.rounds);
  if (blockIdx.x == 0) {
    if (threadIdx.x != 0) return;
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      StatusWord<Parts<kParts>>(round, value(round)).store(a.word);
    }
    return;
  }
  StatusWord<Parts<kParts>> word;
  do {
    word.load(a.word);
    const std::uint32_t round = word.status();
    if (round == 0) continue;
    const Parts<kParts> expected = value(round);
    const Parts<kParts> seen = word.value();
    bool wrong = !word.has(round);
    for (int i = 0; i < kParts; ++i) wrong = wrong || seen.of[i] != expected.of[i];
    count_if(wrong, a.torn);
  } while (!word.has(rounds));
}

template <int kParts>
std::uint64_t count_torn(CudaExecutor& executor, int rounds) {
  const DeviceMemory word = zeroed(executor, sizeof(uint4));
  const DeviceMemory torn = zeroed(executor, sizeof(unsigned long long));
  const TornArguments<kParts> arguments{data_of<typename StatusWord<Parts<kParts>>::Bits>(word), rounds,
                                        data_of<unsigned long long>(torn)};
  const std::int64_t blocks = resident_blocks(executor, publish_and_poll<kParts>, 32, 0);
  require(launch_cooperative(executor, publish_and_poll<kParts>, {blocks, 32}, arguments));
  return host_copy<std::uint64_t>(executor, torn, 1)[0];
}

// ---- batches

struct NeighbourArguments {
  std::uint64_t* words;  // two places a block
  int rounds;
  bool missing;
  unsigned long long* wrong;
};

// owns: a block, its two words. reads: four neighbours' on each side. writes: its own; `wrong`.
// waits for: the neighbours' words of the round. Cannot deadlock: all blocks are resident, and publish first.
// A place is written again two rounds later, once all neighbours have published the round between, before
// which they had read this one.
__global__ void exchange_with_neighbours(const NeighbourArguments a) {
  constexpr int kCount = 8;
  if (threadIdx.x != 0) return;
  const auto blocks = static_cast<int>(gridDim.x);
  const auto here = static_cast<int>(blockIdx.x);
  for (int round = 1; round <= a.rounds; ++round) {
    const auto tag = static_cast<std::uint32_t>(round);
    std::uint64_t* const place = a.words + round % 2 * blocks;
    StatusWord<std::uint32_t>(tag, hashed(blockIdx.x, tag)).store(place + here);
    StatusWord<std::uint32_t> words[kCount];
    const auto neighbour = [&](int i) { return (here + (i < 4 ? i - 4 : i - 3) + 4 * blocks) % blocks; };
    const auto load = [&](int i) { words[i].load(place + neighbour(i)); };
    const auto has = [&](int i) { return words[i].has(tag); };
    if (a.missing) {
      await_missing<kCount>(0xFFU, load, has);
    } else {
      await_all<kCount>(load, has);
    }
    for (int i = 0; i < kCount; ++i) {
      count_if(words[i].value() != hashed(static_cast<std::uint32_t>(neighbour(i)), tag), a.wrong);
    }
  }
}

// ---- look-back

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
  uint4* words;
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
  uint4* column_words;
  uint4* row_words;
  unsigned int* next_ticket;
};

// owns: a block, the tile that its ticket names, row after row; a thread one of 32 planes. reads: values,
// words of the tiles above and to the left. writes: above, left, its words. waits for: lower tickets, which
// have begun and publish before they wait.
__global__ void look_back_in_two_dimensions(const BothArguments a) {
  using Sum = std::uint64_t;
  std::uint32_t ticket = 0;
  if (lane_index() == 0) ticket = atomicAdd(a.next_ticket, 1U);
  ticket = __shfl_sync(kFullWarp, ticket, 0);
  const auto row = static_cast<int>(ticket) / a.columns;
  const auto column = static_cast<int>(ticket) % a.columns;
  const std::int64_t place = std::int64_t{ticket} * 32 + lane_index();
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

// ---- block scan

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

std::uint64_t count_torn_words(CudaExecutor& executor, int value_bytes, int rounds) {
  if (value_bytes == 4) return count_torn<1>(executor, rounds);
  if (value_bytes == 8) return count_torn<2>(executor, rounds);
  return count_torn<3>(executor, rounds);
}

std::uint64_t count_wrong_neighbours(CudaExecutor& executor, int rounds, bool missing) {
  const std::int64_t blocks = resident_blocks(executor, exchange_with_neighbours, 32, 0);
  const DeviceMemory words = zeroed(executor, static_cast<std::size_t>(blocks) * 2 * sizeof(std::uint64_t));
  const DeviceMemory wrong = zeroed(executor, sizeof(unsigned long long));
  const NeighbourArguments arguments{data_of<std::uint64_t>(words), rounds, missing,
                                     data_of<unsigned long long>(wrong)};
  require(launch_cooperative(executor, exchange_with_neighbours, {blocks, 32}, arguments));
  return host_copy<std::uint64_t>(executor, wrong, 1)[0];
}

std::vector<Affine> scan_by_warps(CudaExecutor& executor, const std::vector<Affine>& values) {
  const auto tiles = static_cast<std::int64_t>((values.size() + 31) / 32);
  const DeviceMemory from = device_copy(executor, values);
  const DeviceMemory before = executor.allocate(values.size() * sizeof(Affine));
  const DeviceMemory words = zeroed(executor, static_cast<std::size_t>(tiles) * sizeof(uint4));
  const DeviceMemory ticket = zeroed(executor, sizeof(unsigned int));
  const WarpScanArguments arguments{data_of<Affine>(from), data_of<Affine>(before),
                                    static_cast<int>(values.size()), data_of<uint4>(words),
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
                                data_of<uint4>(column_words),
                                data_of<uint4>(row_words),
                                data_of<unsigned int>(ticket)};
  launch(executor.stream(), look_back_in_two_dimensions, {std::int64_t{rows} * columns, 32}, arguments);
  return {host_copy<std::uint64_t>(executor, above, values.size()),
          host_copy<std::uint64_t>(executor, left, values.size())};
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
