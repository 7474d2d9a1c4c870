#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <cuda/atomic>
#include <stdexcept>

#include "bench/baselines/bracket_match_look_back.h"
#include "kernels/bracket_match/match/tile_memory.cuh"
#include "kernels/primitives/block_scan.cuh"

namespace cumulus::bench {
namespace {

using namespace bracket_match;

using Word = unsigned long long;

template <class Count>
__device__ StackChange<Count> shuffle_down(StackChange<Count> change, int lanes) {
  return {__shfl_down_sync(kFullWarp, change.closes, lanes),
          __shfl_down_sync(kFullWarp, change.opens, lanes)};
}
/// Each lane gets itself and all lanes after.
template <class Count>
__device__ StackChange<Count> warp_suffix(StackChange<Count> change) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const StackChange<Count> after = shuffle_down(change, distance);
    if (lane + distance < 32) change = compose(change, after);
  }
  return change;
}

/// Each thread gets all threads after it, `total` all of them. `warps` as block_exclusive_scan has it.
template <int kThreads, class Count>
__device__ StackChange<Count> block_exclusive_suffix(StackChange<Count> change, StackChange<Count>* warps,
                                                     StackChange<Count>& total) {
  constexpr int kWarps = kThreads / 32;
  static_assert(kWarps < 32, "beyond the last warp the scan below needs a lane that holds nothing");
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const StackChange<Count> from_here = warp_suffix(change);
  if (lane == 0) warps[warp] = from_here;
  __syncthreads();
  const StackChange<Count> scanned = warp_suffix(lane < kWarps ? warps[lane] : StackChange<Count>{});
  total = warp_shuffle(scanned, 0);
  const StackChange<Count> warps_after = warp_shuffle(scanned, warp + 1);
  StackChange<Count> lanes_after = shuffle_down(from_here, 1);
  if (lane == 31) lanes_after = {};
  return compose(lanes_after, warps_after);
}

/// What a partition has published.
enum class Stage : unsigned int {
  kNothing,
  kOwn,   // what it pops and pushes; its snapshot has its own opens
  kStack  // its snapshot has the top of the whole stack after it, and a link to what lies below
};

constexpr unsigned int kNoLink = ~0u;

/// Published as one word. `opens` elements of the snapshot may be read.
struct Status {
  Stage stage;
  int opens;
  int closes;         // kOwn
  unsigned int link;  // kStack: below the snapshot lies the stack after partition `link`, ...
  int skip;           // ... without as many opens at its top

  __device__ Word packed() const {
    const Word rest =
        stage == Stage::kOwn ? static_cast<Word>(closes) : Word{link} << 14 | static_cast<Word>(skip);
    return rest << 16 | static_cast<Word>(opens) << 2 | static_cast<Word>(stage);
  }
  __device__ static Status unpacked(Word word) {
    Status status{};
    status.stage = static_cast<Stage>(word & 3);
    status.opens = static_cast<int>(word >> 2 & 0x3FFF);
    const Word rest = word >> 16;
    if (status.stage == Stage::kOwn) {
      status.closes = static_cast<int>(rest);
    } else {
      status.link = static_cast<unsigned int>(rest >> 14);
      status.skip = static_cast<int>(rest & 0x3FFF);
    }
    return status;
  }
};

struct LookBackArguments {
  const std::uint8_t* text;
  std::int64_t count;
  Rules<std::uint8_t> rules;
  std::int32_t* partner;
  std::int32_t*
      snapshots;  // a partition's size for each partition: opens of the stack after it, from the top
  Word* statuses;
  unsigned int* ticket;
};

template <int kThreads>
struct LookBackMemory {
  static constexpr int kItems = kThreads * kThreadItems;

  TileSymbols<std::uint8_t, kThreads> symbols;
  TileCodes<kThreads> partners;
  std::uint16_t reaching_closes[kItems];
  std::int32_t below[kItems];  // the opens that they pop
  BottomTree<kThreads> bottoms;
  std::uint32_t live[kThreads];
  std::uint32_t elsewhere[kThreads];
  StackChange<std::int32_t> warps[kThreads / 32];
  Rules<std::uint8_t>::Shared rules;
  Word word;
  unsigned int partition;
};

template <int kThreads>
class Partition {
  static constexpr int kItems = kThreads * kThreadItems;
  using Memory = LookBackMemory<kThreads>;
  using StatusWord = cuda::atomic_ref<Word, cuda::thread_scope_device>;

 public:
  __device__ Partition(const LookBackArguments& arguments, Memory& memory)
      : a_(arguments), memory_(memory), thread_(static_cast<int>(threadIdx.x)) {}

  __device__ void run() {
    if (thread_ == 0) memory_.partition = atomicAdd(a_.ticket, 1u);
    a_.rules.prepare(memory_.rules);
    memory_.partners.clear();
    __syncthreads();
    partition_ = memory_.partition;
    first_ = static_cast<std::int64_t>(partition_) * kItems;
    memory_.symbols.load(a_.text, first_, a_.count);
    __syncthreads();
    const RoleBits roles =
        memory_.symbols.roles(memory_.rules, a_.count - first_ - thread_ * kThreadItems, 0);
    const OpenEnds ends = match_in_thread(roles, [&](int open, int close) { pair(thread_, open, close); });
    const auto scan =
        block_exclusive_scan<kThreads>(ends.change(0), StackChange<std::int32_t>{}, Compose{}, memory_.warps);
    const StackChange<std::int32_t> before = scan.before;
    total_ = scan.total;
    memory_.live[thread_] = ends.opens;
    memory_.bottoms.build(before.opens - before.closes - __popc(ends.closes));
    __syncthreads();
    const std::uint32_t reaching = match_in_partition(ends.closes, before);
    StackChange<std::int32_t> whole;
    const auto later = block_exclusive_suffix<kThreads>(ends.change(0), memory_.warps, whole);
    const std::uint32_t left = lowest_set_bits(ends.opens, max(__popc(ends.opens) - later.closes, 0));
    memory_.elsewhere[thread_] = reaching | left;
    store_opens(left, later.opens);
    publish({Stage::kOwn, total_.opens, total_.closes, 0, 0});
    look_back();
    match_across();
    write_partners();
  }

 private:
  __device__ std::int32_t* snapshot_of(unsigned int partition) const {
    return a_.snapshots + static_cast<std::int64_t>(partition) * kItems;
  }

  __device__ void pair(int owner, int open, int close) {
    if (!memory_.rules.fit(memory_.symbols.at(owner, open), memory_.symbols.at(thread_, close))) return;
    memory_.partners.at(owner, open) = static_cast<Code>(thread_ * kThreadItems + close);
    memory_.partners.at(thread_, close) = static_cast<Code>(owner * kThreadItems + open);
  }

  /// As the default does it. Returns the closes that reach out of the partition, and lists them.
  __device__ std::uint32_t match_in_partition(std::uint32_t closes, StackChange<std::int32_t> before) {
    const int served = min(__popc(closes), before.opens);
    std::int32_t level = before.opens - before.closes;
    int owner = thread_;
    for (int done = 0; done < served;) {
      owner = memory_.bottoms.last_below(owner, level);
      const std::int32_t bottom = memory_.bottoms.bottom(owner);
      std::uint32_t stack = lowest_set_bits(memory_.live[owner], level - bottom);
      const int end = min(served, done + level - bottom);
      level = bottom;
      for (; done < end; ++done, closes &= closes - 1) {
        const int open = highest_bit(stack);
        stack ^= 1u << open;
        pair(owner, open, lowest_bit(closes));
      }
    }
    int number = before.closes + served - before.opens;
    for (std::uint32_t rest = closes; rest != 0; rest &= rest - 1, ++number) {
      memory_.reaching_closes[number] = static_cast<std::uint16_t>(thread_ * kThreadItems + lowest_bit(rest));
    }
    return closes;
  }

  __device__ void store_opens(std::uint32_t left, int rank) {
    for (; left != 0; ++rank) {
      const int open = highest_bit(left);
      left ^= 1u << open;
      const std::int64_t element = first_ + thread_ * kThreadItems + open;
      snapshot_of(partition_)[rank] = static_cast<std::int32_t>(element);
      a_.partner[element] = -1;  // until somebody closes it
    }
  }

  /// After all that the block has written so far.
  __device__ void publish(const Status& status) {
    __threadfence();
    __syncthreads();
    if (thread_ == 0) StatusWord(a_.statuses[partition_]).store(status.packed(), cuda::memory_order_release);
  }

  __device__ Status wait_for(unsigned int partition) {
    __syncthreads();
    if (thread_ == 0) {
      do {
        memory_.word = StatusWord(a_.statuses[partition]).load(cuda::memory_order_acquire);
      } while ((memory_.word & 3) == 0);
    }
    __syncthreads();
    return Status::unpacked(memory_.word);
  }

  /// Gathers the stack before the partition: what its closes pop, then as much as its own snapshot holds.
  __device__ void look_back() {
    const int wanted = total_.closes + kItems - total_.opens;
    std::int32_t* snapshot = snapshot_of(partition_) + total_.opens - total_.closes;
    unsigned int from = partition_ == 0 ? kNoLink : partition_ - 1;
    std::int64_t skip = 0;
    while (found_ < wanted && from != kNoLink) {
      const Status status = wait_for(from);
      const auto here = static_cast<int>(max(status.opens - skip, std::int64_t{0}));
      const int take = min(here, wanted - found_);
      for (int i = thread_; i < take; i += kThreads) {
        const std::int32_t open = __ldcg(snapshot_of(from) + skip + i);
        const int rank = found_ + i;
        (rank < total_.closes ? memory_.below : snapshot)[rank] = open;
      }
      found_ += take;
      if (found_ == wanted) {
        skip += take;
      } else if (status.stage == Stage::kOwn) {
        skip = max(skip - status.opens, std::int64_t{0}) + status.closes;
        from = from == 0 ? kNoLink : from - 1;
      } else {
        skip = max(skip - status.opens, std::int64_t{0}) + status.skip;
        from = status.link;
      }
    }
    const int opens = total_.opens + max(found_ - total_.closes, 0);
    publish({Stage::kStack, opens, 0, found_ == wanted ? from : kNoLink,
             found_ == wanted ? static_cast<int>(skip) : 0});
  }

  __device__ void match_across() {
    for (int i = thread_; i < total_.closes; i += kThreads) {
      const std::int64_t close = first_ + memory_.reaching_closes[i];
      const std::int32_t open = i < found_ ? memory_.below[i] : -1;
      const bool fit = open >= 0 && memory_.rules.fit(a_.text[open], a_.text[close]);
      a_.partner[close] = fit ? open : -1;
      if (fit) a_.partner[open] = static_cast<std::int32_t>(close);
    }
  }

  __device__ void write_partners() {
    const int lane = thread_ % 32;
    for (int owner = thread_ / 32; owner < kThreads; owner += kThreads / 32) {
      const std::int64_t element = first_ + owner * kThreadItems + lane;
      if ((memory_.elsewhere[owner] >> lane & 1) != 0 || element >= a_.count) continue;
      const Code code = memory_.partners.at(owner, lane);
      a_.partner[element] = code == kNobody ? -1 : static_cast<std::int32_t>(first_ + code);
    }
  }

  const LookBackArguments& a_;
  Memory& memory_;
  const int thread_;
  unsigned int partition_ = 0;
  std::int64_t first_ = 0;
  StackChange<std::int32_t> total_;
  int found_ = 0;  // opens of the stack before the partition, from the top
};

template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    match_partitions(const __grid_constant__ LookBackArguments arguments) {
  extern __shared__ __align__(16) unsigned char memory[];
  Partition<kThreads>(arguments, *reinterpret_cast<LookBackMemory<kThreads>*>(memory)).run();
}

template <int kThreads>
void launch(CudaExecutor& executor, const LookBackArguments& arguments) {
  constexpr auto kBytes = static_cast<int>(sizeof(LookBackMemory<kThreads>));
  CUMULUS_CUDA(
      cudaFuncSetAttribute(match_partitions<kThreads>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  const auto blocks = static_cast<unsigned int>(divide_up(arguments.count, kThreads * kThreadItems));
  match_partitions<kThreads><<<blocks, kThreads, kBytes, executor.stream()>>>(arguments);
  CUMULUS_CUDA(cudaGetLastError());
}

std::size_t partitions_of(std::int64_t count, int partition) {
  return static_cast<std::size_t>(divide_up(count, partition));
}

}  // namespace

std::size_t look_back_scratch_bytes(std::int64_t count, int partition) {
  const std::size_t partitions = partitions_of(count, partition);
  ScratchSize size;
  size.add<std::int32_t>(partitions * static_cast<std::size_t>(partition));
  size.add<Word>(partitions + 1);
  return size.bytes();
}

void look_back_match(CudaExecutor& executor, DeviceSpan<const std::uint8_t> text, const BracketTable& table,
                     int partition, DeviceSpan<std::int32_t> partner) {
  executor.bind_thread();
  LookBackArguments arguments{};
  arguments.text = text.data();
  arguments.count = static_cast<std::int64_t>(text.size());
  std::memcpy(arguments.rules.role, table.role.data(), sizeof(arguments.rules.role));
  std::memcpy(arguments.rules.mate, table.mate.data(), sizeof(arguments.rules.mate));
  arguments.partner = partner.data();
  const std::size_t partitions = partitions_of(arguments.count, partition);
  arguments.snapshots =
      executor.scratch<std::int32_t>(partitions * static_cast<std::size_t>(partition)).data();
  const DeviceSpan<Word> statuses = executor.scratch<Word>(partitions + 1);
  arguments.statuses = statuses.data();
  arguments.ticket = reinterpret_cast<unsigned int*>(statuses.data() + partitions);
  CUMULUS_CUDA(cudaMemsetAsync(statuses.data(), 0, statuses.bytes(), executor.stream()));
  switch (partition) {
    case 1024:
      return launch<32>(executor, arguments);
    case 2048:
      return launch<64>(executor, arguments);
    case 4096:
      return launch<128>(executor, arguments);
    case 8192:
      return launch<256>(executor, arguments);
    default:
      throw std::invalid_argument(
          "look_back_match: 1024, 2048, 4096 or 8192 elements to a partition are right");
  }
}

}  // namespace cumulus::bench
