#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "kernels/bracket_match/bracket_match.h"
#include "kernels/bracket_match/bracket_match_check.h"
#include "kernels/bracket_match/tile_linker.cuh"
#include "kernels/bracket_match/tile_matcher.cuh"
#include "kernels/bracket_match/tile_tree.cuh"
#include "kernels/primitives/multiprocessor.cuh"

namespace cumulus {
namespace {

using namespace bracket_match;

/// Before everything, where there are segments: marks where documents begin.
__global__ void mark_beginnings(const std::int64_t* segments, std::int64_t segment_count, std::int64_t count,
                                std::uint32_t* begins, Findings* findings) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= segment_count) return;
  const std::int64_t begin = segments[i];
  const bool right = i == 0 ? begin == 0 : begin >= segments[i - 1];
  if (!right || begin < 0 || begin > count) {
    atomicMax(&findings->wrong_segment, ~static_cast<unsigned long long>(i));
  } else if (begin < count) {
    atomicOr(&begins[begin / 32], 1u << (begin % 32));
  }
}

/// Step 1: matches each tile in itself; what it does to the stack, which of its opens outlive it, which of
/// its closes reach out of it.
template <class Symbol, class Index>
__global__ void __launch_bounds__(kTileThreads, blocks_per_multiprocessor(9, kTileThreads))
    match_tiles(const __grid_constant__ Arguments<Symbol, Index> a,
                const __grid_constant__ Codes<Symbol> codes) {
  extern __shared__ __align__(16) unsigned char memory[];
  TileMatcher<Symbol, Index>(a, codes, *reinterpret_cast<MatchMemory<Symbol>*>(memory)).run();
}

/// As many pops as there are elements empty any stack; added up over the tiles they stay below 2^63 up to
/// 2^37 elements.
__device__ StackChange<std::int64_t> change_of_tile(const DeviceTiles& tiles, std::int64_t tile) {
  if (tile >= tiles.count) return {};
  const StackChange<std::int32_t> change = tiles.change[tile];
  const std::int64_t everything = tiles.count * kTileItems;
  return {reaches_beyond_a_beginning(change.closes) ? everything : change.closes, change.opens};
}

/// What a thread's tiles do to the stack, one by one and together.
struct ThreadTiles {
  std::int64_t first;
  StackChange<std::int64_t> changes[kScanTilesPerThread];
  StackChange<std::int64_t> sum;

  __device__ explicit ThreadTiles(const DeviceTiles& tiles)
      : first((std::int64_t{blockIdx.x} * kScanThreads + threadIdx.x) * kScanTilesPerThread) {
#pragma unroll
    for (int i = 0; i < kScanTilesPerThread; ++i) {
      changes[i] = change_of_tile(tiles, first + i);
      sum = compose(sum, changes[i]);
    }
  }
};

/// Step 2a, a block for each group of kScanGroup tiles, where there are several: what the group does to the
/// stack.
__global__ void __launch_bounds__(kScanThreads) sum_groups(const DeviceTiles tiles) {
  __shared__ StackChange<std::int64_t> warps[kScanThreads / 32];
  StackChange<std::int64_t> total;
  block_exclusive_prefix<kScanThreads>(ThreadTiles(tiles).sum, warps, total);
  if (threadIdx.x == 0) tiles.groups[blockIdx.x] = total;
}

/// The stack's size before a group. By one warp.
__device__ std::int64_t depth_before_group(const DeviceTiles& tiles, std::int64_t group) {
  std::int64_t depth = 0;
  for (std::int64_t base = 0; base < group; base += 32) {
    const std::int64_t mine = base + threadIdx.x % 32;
    const auto through = warp_prefix(mine < group ? tiles.groups[mine] : StackChange<std::int64_t>{});
    depth = apply(shuffle(through, 31), depth);
  }
  return depth;
}

/// The levels of the tree of minima above the first. By one block.
__device__ void build_upper_levels(const DeviceTiles& tiles) {
  std::int64_t below = (tiles.count + 31) / 32;
  for (int level = 2; level < tiles.tree.levels; ++level) {
    for (std::int64_t base = 0; base < below; base += kScanThreads) {
      const std::int64_t child = base + threadIdx.x;
      std::int64_t least = INT64_MAX;
      if (child < below) least = tiles.bottoms[tiles.tree.first[level - 1] + child];
      for (int distance = 16; distance > 0; distance /= 2) {
        least = min(least, __shfl_xor_sync(kAllLanes, least, distance));
      }
      if (child < below && child % 32 == 0) tiles.bottoms[tiles.tree.first[level] + child / 32] = least;
    }
    below = (below + 31) / 32;
    __syncthreads();
  }
}

/// Step 2b, a block for each group: the stack's size before each tile, and the tiles' bottoms with the first
/// level of the tree of minima over them; where there is one group, the whole tree.
__global__ void __launch_bounds__(kScanThreads) scan_tiles(const DeviceTiles tiles, Findings* findings) {
  __shared__ StackChange<std::int64_t> warps[kScanThreads / 32];
  __shared__ std::int64_t depth_before;
  if (threadIdx.x < 32) {
    const std::int64_t before = depth_before_group(tiles, blockIdx.x);
    if (threadIdx.x == 0) depth_before = before;
  }
  const ThreadTiles own(tiles);
  StackChange<std::int64_t> total;  // synchronizes
  const StackChange<std::int64_t> before = block_exclusive_prefix<kScanThreads>(own.sum, warps, total);
  std::int64_t depth = apply(before, depth_before);
  std::int64_t least = INT64_MAX;
#pragma unroll
  for (int i = 0; i < kScanTilesPerThread; ++i) {
    if (own.first + i < tiles.count) {
      tiles.depth[own.first + i] = depth;
      const std::int64_t bottom = max(depth - own.changes[i].closes, std::int64_t{0});
      tiles.bottoms[own.first + i] = bottom;
      least = min(least, bottom);
    }
    depth = apply(own.changes[i], depth);
  }
  static_assert(kScanTilesPerThread == 4, "eight threads have the 32 tiles of a node");
  for (int distance = 4; distance > 0; distance /= 2) {
    least = min(least, __shfl_xor_sync(kAllLanes, least, distance));
  }
  if (tiles.tree.levels > 1 && threadIdx.x % 8 == 0 && own.first < tiles.count) {
    tiles.bottoms[tiles.tree.first[1] + own.first / 32] = least;
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) findings->final_depth = apply(total, depth_before);
  if (gridDim.x > 1) return;
  __syncthreads();
  build_upper_levels(tiles);
}

/// Step 2c, one block, where there are several groups.
__global__ void __launch_bounds__(kScanThreads) finish_tree(const DeviceTiles tiles) {
  build_upper_levels(tiles);
}

/// Step 3: pairs the closes that reach out of their tiles.
template <class Symbol, class Index>
__global__ void __launch_bounds__(kTileThreads, blocks_per_multiprocessor(8, kTileThreads))
    link_tiles(const __grid_constant__ Arguments<Symbol, Index> a) {
  extern __shared__ __align__(16) unsigned char memory[];
  TileLinker<Symbol, Index>(a, *reinterpret_cast<LinkMemory<Symbol>*>(memory)).run();
}

/// Step 4, where they are asked for: parents, depths and tops.
template <class Symbol, class Index>
__global__ void __launch_bounds__(kTileThreads)
    write_trees(const __grid_constant__ Arguments<Symbol, Index> a) {
  extern __shared__ __align__(16) unsigned char memory[];
  TileTreeWriter<Symbol, Index>(a, *reinterpret_cast<TreeMemory<Symbol, Index>*>(memory)).run();
}

/// The top of the stack before the element at `position`, at least 1, in the document of the element before
/// it; or -1. Walks back through the tile. By one warp.
template <class Symbol, class Index>
__device__ std::int64_t top_before(const Arguments<Symbol, Index>& a,
                                   const typename Rules<Symbol>::Shared& rules, std::int64_t position) {
  constexpr int kAtOnce = 8;  // elements of a lane, asked for together
  const auto lane = static_cast<int>(threadIdx.x);
  const std::int64_t tile = (position - 1) / kTileItems;
  const std::int64_t begin = tile * kTileItems;
  int closes = 0;  // whose opens are further back
  for (std::int64_t end = position; end > begin; end -= 32 * kAtOnce) {
    int rises[kAtOnce];
    bool begins[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const std::int64_t element = end - 1 - 32 * k - lane;
      const std::uint32_t role = element >= begin ? rules.role_of(a.text[element]) : 0;
      rises[k] = role == kRoleOpen ? 1 : role == kRoleClose ? -1 : 0;
      begins[k] = element >= begin && a.begins_at(element);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int opens = __popc(__ballot_sync(kAllLanes, rises[k] > 0));
      const int pops = __popc(__ballot_sync(kAllLanes, rises[k] < 0));
      const std::uint32_t beginnings = __ballot_sync(kAllLanes, begins[k]);
      if (opens > closes || beginnings != 0) {
        const std::uint32_t tops = __ballot_sync(kAllLanes, warp_inclusive_sum(rises[k]) > closes);
        if (tops != 0 && (beginnings == 0 || lowest_bit(tops) <= lowest_bit(beginnings))) {
          return end - 1 - 32 * k - lowest_bit(tops);
        }
        if (beginnings != 0) return -1;
      }
      closes += pops - opens;
    }
  }
  const std::int64_t level = a.tiles.depth[tile] - closes;
  return level <= 0 ? -1 : open_at(a.tiles, tile, level);
}

/// The number of the document that has `element`.
__device__ std::int64_t segment_of(const std::int64_t* segments, std::int64_t count, std::int64_t element) {
  std::int64_t first = 0;
  while (count > 1) {
    const std::int64_t half = count / 2;
    if (segments[first + half] <= element) first += half;
    count -= half;
  }
  return first;
}

/// Step 5, one warp: says what was found.
template <class Symbol, class Index>
__global__ void __launch_bounds__(32)
    write_report(const __grid_constant__ Arguments<Symbol, Index> a, const std::int64_t* segments,
                 std::int64_t segment_count, bool with_depth, BracketReport* report,
                 std::int64_t* maximum_depth, std::int64_t* unmatched) {
  using Fault = BracketReport::Fault;
  __shared__ typename Rules<Symbol>::Shared rules;
  a.rules.prepare(rules);
  __syncwarp();
  const Findings findings = *a.findings;
  BracketReport result;
  result.unmatched = static_cast<std::int64_t>(findings.unmatched);
  if (with_depth) result.maximum_depth = findings.maximum_depth;
  if (findings.wrong_segment != 0) {
    result.fault = Fault::kWrongSegment;
    result.position = result.segment = static_cast<std::int64_t>(~findings.wrong_segment);
  } else if (findings.first_fault != 0) {
    const auto fault = static_cast<std::int64_t>(~findings.first_fault);
    result.position = fault / 2;
    const bool unclosed = fault % 2 == kUnclosedFault;
    if (result.position > 0 && (unclosed || !a.begins_at(result.position))) {
      result.open_position = top_before(a, rules, result.position);
    }
    result.fault = unclosed                    ? Fault::kUnclosed
                   : result.open_position >= 0 ? Fault::kWrongClose
                                               : Fault::kUnexpectedClose;
    if (!unclosed) result.found = a.text[result.position];
  } else if (findings.final_depth > 0) {
    result.position = a.count;
    result.open_position = top_before(a, rules, a.count);
    result.fault = Fault::kUnclosed;
  }
  if (result.open_position >= 0) result.expected = rules.close_of(a.text[result.open_position]);
  if (result.fault != Fault::kNone && result.fault != Fault::kWrongSegment) {
    const std::int64_t element = result.fault == Fault::kUnclosed ? result.open_position : result.position;
    result.segment = segment_of(segments, segment_count, element);
  }
  if (threadIdx.x != 0) return;
  *report = result;
  if (maximum_depth != nullptr) *maximum_depth = result.maximum_depth;
  if (unmatched != nullptr) *unmatched = result.unmatched;
}

/// A block for each `tiles_each` tiles, with `Memory` in shared memory.
template <class Memory, class Kernel, class Tiles, class... Others>
void launch(CudaExecutor& executor, Kernel* kernel, std::int64_t tiles_each, const Tiles& arguments,
            const Others&... others) {
  constexpr auto kBytes = static_cast<int>(sizeof(Memory));
  static_assert(kBytes <= 64 * 1024, "the oldest architecture has 64 KiB of shared memory for a block");
  if (arguments.tiles.count == 0) return;
  if (kBytes > 48 * 1024) {
    CUMULUS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  }
  kernel<<<static_cast<unsigned int>(divide_up(arguments.tiles.count, tiles_each)), kTileThreads, kBytes,
           executor.stream()>>>(arguments, others...);
  CUMULUS_CUDA(cudaGetLastError());
}

DeviceTiles take_tiles(CudaExecutor& executor, std::int64_t count) {
  DeviceTiles tiles{};
  tiles.count = tiles_of(count, Space::kDevice);
  tiles.tree = TileTree::of(tiles.count);
  const auto size = static_cast<std::size_t>(tiles.count);
  tiles.surviving_opens = executor.scratch<std::uint32_t>(size * kTileThreads).data();
  tiles.reaching_closes = executor.scratch<std::uint32_t>(size * kTileThreads).data();
  tiles.opens_before = executor.scratch<std::uint16_t>(size * kTileWarps).data();
  tiles.change = executor.scratch<StackChange<std::int32_t>>(size).data();
  tiles.depth = executor.scratch<std::int64_t>(size).data();
  tiles.bottoms = executor.scratch<std::int64_t>(static_cast<std::size_t>(tiles.tree.total)).data();
  const auto groups = static_cast<std::size_t>(scan_groups_of(tiles.count));
  tiles.groups = executor.scratch<StackChange<std::int64_t>>(groups).data();
  return tiles;
}

/// Step 2.
void scan(CudaExecutor& executor, const DeviceTiles& tiles, Findings* findings) {
  const auto groups = static_cast<unsigned int>(std::max(scan_groups_of(tiles.count), std::int64_t{1}));
  if (groups > 1) sum_groups<<<groups, kScanThreads, 0, executor.stream()>>>(tiles);
  scan_tiles<<<groups, kScanThreads, 0, executor.stream()>>>(tiles, findings);
  if (groups > 1) finish_tree<<<1, kScanThreads, 0, executor.stream()>>>(tiles);
  CUMULUS_CUDA(cudaGetLastError());
}

constexpr int kMarkThreads = 256;

/// A bit for each element at which a document begins; null where there are no segments.
std::uint32_t* mark_segments(CudaExecutor& executor, DeviceSpan<const std::int64_t> segments,
                             std::int64_t count, Findings* findings) {
  if (segments.empty()) return nullptr;
  const auto words = executor.scratch<std::uint32_t>(
      static_cast<std::size_t>(tiles_of(count, Space::kDevice)) * kTileThreads);
  const auto segment_count = static_cast<std::int64_t>(segments.size());
  CUMULUS_CUDA(cudaMemsetAsync(words.data(), 0, words.bytes(), executor.stream()));
  mark_beginnings<<<static_cast<unsigned int>(divide_up(segment_count, kMarkThreads)), kMarkThreads, 0,
                    executor.stream()>>>(segments.data(), segment_count, count, words.data(), findings);
  CUMULUS_CUDA(cudaGetLastError());
  return words.data();
}

template <class Symbol, class Index>
void match(CudaExecutor& executor, DeviceSpan<const Symbol> text, const Rules<Symbol>& rules,
           const Codes<Symbol>& codes, DeviceSpan<const std::int64_t> segments,
           const BracketOutputs<Index, Space::kDevice>& outputs, BracketReport* report) {
  check_outputs(text.size(), outputs);
  executor.bind_thread();
  executor.check_interrupt();
  const auto count = static_cast<std::int64_t>(text.size());
  DeviceTiles tiles = take_tiles(executor, count);
  Findings* findings = executor.scratch<Findings>(1).data();
  static_assert(sizeof(BracketReport) <= kReportBytes);
  auto* device_report = reinterpret_cast<BracketReport*>(executor.scratch<std::byte>(kReportBytes).data());
  CUMULUS_CUDA(cudaMemsetAsync(findings, 0, sizeof(Findings), executor.stream()));
  tiles.begins = mark_segments(executor, segments, count, findings);
  const Arguments<Symbol, Index> arguments{
      text.data(),
      count,
      rules,
      tiles,
      {outputs.partner.data(), outputs.parent.data(), outputs.depth.data(), outputs.top.data()},
      findings,
      codes.exact};
  launch<MatchMemory<Symbol>>(executor, match_tiles<Symbol, Index>, 1, arguments, codes);
  scan(executor, tiles, findings);
  executor.check_interrupt();
  launch<LinkMemory<Symbol>>(executor, link_tiles<Symbol, Index>, kLinkedTiles, arguments);
  if (wants_tree(outputs))
    launch<TreeMemory<Symbol, Index>>(executor, write_trees<Symbol, Index>, 1, arguments);
  write_report<<<1, 32, 0, executor.stream()>>>(
      arguments, segments.data(), static_cast<std::int64_t>(segments.size()), wants_tree(outputs),
      device_report, outputs.maximum_depth.data(), outputs.unmatched.data());
  CUMULUS_CUDA(cudaGetLastError());
  CUMULUS_CUDA(cudaMemcpyAsync(report, device_report, sizeof(BracketReport), cudaMemcpyDeviceToHost,
                               executor.stream()));
}

}  // namespace

template <class Index>
void match_brackets(CudaExecutor& executor, DeviceSpan<const std::uint8_t> text, const BracketTable& table,
                    DeviceSpan<const std::int64_t> segments,
                    const BracketOutputs<Index, Space::kDevice>& outputs, BracketReport* report) {
  Rules<std::uint8_t> rules;
  std::memcpy(rules.role, table.role.data(), sizeof(rules.role));
  std::memcpy(rules.mate, table.mate.data(), sizeof(rules.mate));
  match(executor, text, rules, Codes<std::uint8_t>::of(table), segments, outputs, report);
}

template <class Index>
void match_brackets(CudaExecutor& executor, DeviceSpan<const std::int32_t> tokens,
                    DeviceSpan<const std::int64_t> segments,
                    const BracketOutputs<Index, Space::kDevice>& outputs, BracketReport* report) {
  match(executor, tokens, Rules<std::int32_t>{}, Codes<std::int32_t>{}, segments, outputs, report);
}

template void match_brackets(CudaExecutor&, DeviceSpan<const std::uint8_t>, const BracketTable&,
                             DeviceSpan<const std::int64_t>,
                             const BracketOutputs<std::int32_t, CudaExecutor::kSpace>&, BracketReport*);
template void match_brackets(CudaExecutor&, DeviceSpan<const std::int32_t>, DeviceSpan<const std::int64_t>,
                             const BracketOutputs<std::int32_t, CudaExecutor::kSpace>&, BracketReport*);
template void match_brackets(CudaExecutor&, DeviceSpan<const std::uint8_t>, const BracketTable&,
                             DeviceSpan<const std::int64_t>,
                             const BracketOutputs<std::int64_t, CudaExecutor::kSpace>&, BracketReport*);
template void match_brackets(CudaExecutor&, DeviceSpan<const std::int32_t>, DeviceSpan<const std::int64_t>,
                             const BracketOutputs<std::int64_t, CudaExecutor::kSpace>&, BracketReport*);

}  // namespace cumulus
