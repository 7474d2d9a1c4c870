#include <algorithm>

#include "kernels/primitives/await_all.cuh"
#include "kernels/primitives/cross_block_scan.cuh"
#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/status_word.cuh"
#include "kernels/primitives/warp.cuh"
#include "tests/kernels/primitives_kernels.h"
#include "tests/kernels/primitives_memory.cuh"

namespace cumulus::testing {
namespace {

template <int kParts>
struct Parts {
  std::uint32_t of[kParts];
};

// ---- status words

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

// ---- tagged values

struct TaggedArguments {
  std::uint64_t* words;  // two a block
  std::uint32_t tag;
  unsigned long long* wrong;
};

// owns: a block, a value. reads: the next block's value. writes: its own; `wrong`. waits for: the next block.
// Cannot deadlock: all blocks are resident, and publish first. The first half of a value is the next call's
// tag: who looked for a tag where an earlier call had values would take them for this call's.
template <int kParts>
__global__ void exchange_tagged(const TaggedArguments a) {
  using Word = TaggedValue<Parts<kParts>>;
  if (threadIdx.x != 0) return;
  const auto value = [&](unsigned int block) {
    Parts<kParts> parts;
    for (int i = 0; i < kParts; ++i) parts.of[i] = i == kParts - 1 ? hashed(block, a.tag) : a.tag + 1;
    if (block % 2 != 0) parts.of[kParts - 1] = a.tag + 1;
    return parts;
  };
  Word(a.tag, value(blockIdx.x)).store(a.words + blockIdx.x * Word::kWords);
  const unsigned int next = (blockIdx.x + 1) % gridDim.x;
  Word seen;
  await_all<1>([&](int) { seen.load(a.words + next * Word::kWords); }, [&](int) { return seen.has(a.tag); });
  for (int i = 0; i < kParts; ++i) count_if(seen.value().of[i] != value(next).of[i], a.wrong);
}

// ---- batches

struct NeighbourArguments {
  std::uint64_t* words;  // two places a block
  int rounds;
  Await how;
  unsigned long long* wrong;
};

/// Of words that come one by one.
template <class Load, class Has>
struct Batch {
  Load load;
  Has has;

  __device__ bool poll() {
    bool all = true;
    for (int i = 0; i < 4; ++i) {
      if (has(i)) continue;
      all = false;
      load(i);
    }
    return all;
  }
};
template <class Load, class Has>
__device__ Batch<Load, Has> batch_of(const Load& load, const Has& has) {
  return {load, has};
}

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
    if (a.how == Await::kMissing) {
      await_missing<kCount>(0xFFU, load, has);
    } else if (a.how == Await::kAll) {
      await_all<kCount>(load, has);
    } else {
      for (int i = 0; i < kCount; ++i) load(i);
      auto left = batch_of(load, has);
      auto right = batch_of([&](int i) { load(i + 4); }, [&](int i) { return has(i + 4); });
      await_together(left, right);
    }
    for (int i = 0; i < kCount; ++i) {
      count_if(words[i].value() != hashed(static_cast<std::uint32_t>(neighbour(i)), tag), a.wrong);
    }
  }
}

// ---- scan over blocks

constexpr int kLines = 16;
constexpr int kScannedBlocks = 32;  // of a thread
constexpr int kThreadsOfLines = kLines / 2;
constexpr int kMaxBlocks = kScannedBlocks * 32 / kThreadsOfLines;

struct CarryArguments {
  std::uint64_t* words;  // of two rounds, of each block, of its lines
  int rounds;
  unsigned long long* wrong;

  __device__ std::uint64_t* at(int round, int block, int line) const {
    return words + ((round % 2) * static_cast<int>(gridDim.x) + block) * kLines + line;
  }
};

/// By a warp: a thread has two lines of kScannedBlocks blocks.
__device__ void scan_lines(const CarryArguments& a, int round, std::uint32_t tag) {
  const int line = lane_index() % kThreadsOfLines * 2;
  const int first = lane_index() / kThreadsOfLines * kScannedBlocks;
  const auto exists = [&](int k) { return first + k < static_cast<int>(gridDim.x); };
  const auto at = [&](int k) { return a.at(round, first + k, line); };
  const BlocksOfLane<std::uint32_t, kScannedBlocks, kThreadsOfLines> aggregates(tag, exists, at);
  aggregates.publish_carries(tag + 1, exists, at);
}

// owns: a block, its lines; warp 0 scans every gridDim.x-th round. reads: aggregates, carries. writes: its
// aggregates; the round's carries, in their places. waits for: aggregates of the round; carries.
// Cannot deadlock: all blocks are resident; warp 1 publishes before it waits, and waits for scanners alone,
// which wait for aggregates alone.
// A place is written again two rounds later, by warp 1, which has then read both carries.
__global__ void scan_across_blocks(const CarryArguments a) {
  const auto here = static_cast<int>(blockIdx.x);
  for (int round = 0; round < a.rounds; ++round) {
    const auto tag = 2 * static_cast<std::uint32_t>(round) + 1;
    if (threadIdx.x < 32) {
      if (round % static_cast<int>(gridDim.x) == here) scan_lines(a, round, tag);
      continue;
    }
    if (lane_index() >= kThreadsOfLines) continue;
    const int line = lane_index() * 2;
    // Of block b the aggregate is b + 1 times the line's number of the round.
    const auto number = [&](int i) { return hashed(tag, static_cast<std::uint32_t>(line + i)); };
    const std::uint32_t blocks = blockIdx.x + 1;
    using Word = TaggedValue<LinePair<std::uint32_t>>;
    Word(tag, {{blocks * number(0), blocks * number(1)}}).store(a.at(round, here, line));
    Word carry;
    await_all<1>([&](int) { carry.load(a.at(round, here, line)); }, [&](int) { return carry.has(tag + 1); });
    for (int i = 0; i < 2; ++i)
      count_if(carry.value().v[i] != blocks * (blocks - 1) / 2 * number(i), a.wrong);
  }
}

}  // namespace

std::uint64_t count_torn_words(CudaExecutor& executor, int value_bytes, int rounds) {
  if (value_bytes == 4) return count_torn<1>(executor, rounds);
  if (value_bytes == 8) return count_torn<2>(executor, rounds);
  return count_torn<3>(executor, rounds);
}

std::uint64_t count_wrong_tagged_values(CudaExecutor& executor, int calls) {
  const std::int64_t blocks = std::min(resident_blocks(executor, exchange_tagged<1>, 32, 0),
                                       resident_blocks(executor, exchange_tagged<2>, 32, 0));
  const DeviceMemory words = zeroed(executor, static_cast<std::size_t>(blocks) * 2 * sizeof(std::uint64_t));
  const DeviceMemory wrong = zeroed(executor, sizeof(unsigned long long));
  for (int call = 1; call <= calls; ++call) {
    const TaggedArguments arguments{data_of<std::uint64_t>(words), static_cast<std::uint32_t>(call),
                                    data_of<unsigned long long>(wrong)};
    require(launch_cooperative(executor, call % 2 != 0 ? exchange_tagged<1> : exchange_tagged<2>,
                               {blocks, 32}, arguments));
  }
  return host_copy<std::uint64_t>(executor, wrong, 1)[0];
}

std::uint64_t count_wrong_neighbours(CudaExecutor& executor, int rounds, Await how) {
  const std::int64_t blocks = resident_blocks(executor, exchange_with_neighbours, 32, 0);
  const DeviceMemory words = zeroed(executor, static_cast<std::size_t>(blocks) * 2 * sizeof(std::uint64_t));
  const DeviceMemory wrong = zeroed(executor, sizeof(unsigned long long));
  const NeighbourArguments arguments{data_of<std::uint64_t>(words), rounds, how,
                                     data_of<unsigned long long>(wrong)};
  require(launch_cooperative(executor, exchange_with_neighbours, {blocks, 32}, arguments));
  return host_copy<std::uint64_t>(executor, wrong, 1)[0];
}

std::uint64_t count_wrong_carries(CudaExecutor& executor, int blocks, int rounds) {
  const std::int64_t resident = resident_blocks(executor, scan_across_blocks, 64, 0);
  const std::int64_t scanned = std::min({resident, std::int64_t{blocks}, std::int64_t{kMaxBlocks}});
  const DeviceMemory words =
      zeroed(executor, static_cast<std::size_t>(scanned) * 2 * kLines * sizeof(std::uint64_t));
  const DeviceMemory wrong = zeroed(executor, sizeof(unsigned long long));
  const CarryArguments arguments{data_of<std::uint64_t>(words), rounds, data_of<unsigned long long>(wrong)};
  require(launch_cooperative(executor, scan_across_blocks, {scanned, 64}, arguments));
  return host_copy<std::uint64_t>(executor, wrong, 1)[0];
}

}  // namespace cumulus::testing
