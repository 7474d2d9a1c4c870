#include <cuda_runtime.h>

#include <cstring>

#include "kernels/bracket_match/bracket_match.h"
#include "kernels/bracket_match/bracket_match_check.h"
#include "kernels/bracket_match/tile_resolver.cuh"

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
    atomicMin(&findings->wrong_segment, static_cast<unsigned long long>(i));
  } else if (begin < count) {
    atomicOr(&begins[begin / 32], 1u << (begin % 32));
  }
}

/// Step 1: what each tile does to the stack, and which of its opens outlive it. Their partners are set to
/// none, in case nobody ever closes them.
template <class Symbol, class Index>
__global__ void __launch_bounds__(kTileThreads)
    summarize_tiles(const __grid_constant__ Arguments<Symbol, Index> a) {
  __shared__ TileSymbols<Symbol> symbols;
  __shared__ typename Rules<Symbol>::Shared rules;
  __shared__ StackChange<std::int32_t> warps[kTileWarps];
  __shared__ int survivors_of_warp[kTileWarps];
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const std::int64_t tile = blockIdx.x;
  const std::int64_t first = tile * kTileItems;

  a.rules.prepare(rules);
  symbols.load(a.text, first, a.count);
  __syncthreads();
  const RoleBits roles = symbols.roles(rules, a.count - first - thread * kThreadItems,
                                       a.tiles.begins_of(tile * kTileThreads + thread));
  const OpenEnds ends = match_in_thread(roles, [](int, int) {});
  StackChange<std::int32_t> total;
  const auto later = block_exclusive_suffix<kTileThreads>(ends.change(roles.begins), warps, total);
  const std::uint32_t survivors = lowest_set_bits(ends.opens, max(__popc(ends.opens) - later.closes, 0));
  a.tiles.surviving_opens[tile * kTileThreads + thread] = survivors;
  if (thread == 0) a.tiles.change[tile] = total;

  int count = __popc(survivors);
  for (int distance = 16; distance > 0; distance /= 2) count += __shfl_xor_sync(kAllLanes, count, distance);
  if (thread % 32 == 0) survivors_of_warp[warp] = count;
  __syncthreads();
  if (thread < kTileWarps) {
    int before = 0;
    for (int i = 0; i < thread; ++i) before += survivors_of_warp[i];
    a.tiles.opens_before[tile * kTileWarps + thread] = static_cast<std::uint16_t>(before);
  }
  if (a.outputs.partner == nullptr) return;
  Index* partner = a.outputs.partner + first + warp * 32 * kThreadItems;
  for (std::uint32_t owners = __ballot_sync(kAllLanes, survivors != 0); owners != 0; owners &= owners - 1) {
    const int owner = lowest_bit(owners);
    const std::uint32_t bits = __shfl_sync(kAllLanes, survivors, owner);
    if (bits >> (thread % 32) & 1) partner[owner * kThreadItems + thread % 32] = -1;
  }
}

/// Step 2, one block: the stack's size before each tile, and the tree of minima over the tiles' bottoms.
__global__ void __launch_bounds__(kScanThreads) scan_tiles(const DeviceTiles tiles, Findings* findings) {
  __shared__ StackChange<std::int64_t> warps[kScanThreads / 32];
  // As many pops as there are elements empty any stack; added up over the tiles they stay below 2^63 up to
  // 2^37 elements.
  const std::int64_t everything = tiles.count * kTileItems;
  std::int64_t carry = 0;
  for (std::int64_t base = 0; base < tiles.count; base += kScanThreads * kScanTilesPerThread) {
    const std::int64_t first = base + threadIdx.x * kScanTilesPerThread;
    StackChange<std::int64_t> changes[kScanTilesPerThread];
    StackChange<std::int64_t> sum;
#pragma unroll
    for (int i = 0; i < kScanTilesPerThread; ++i) {
      if (first + i < tiles.count) {
        const StackChange<std::int32_t> change = tiles.change[first + i];
        changes[i] = {reaches_beyond_a_beginning(change.closes) ? everything : change.closes, change.opens};
      }
      sum = compose(sum, changes[i]);
    }
    StackChange<std::int64_t> total;
    std::int64_t depth = apply(block_exclusive_prefix<kScanThreads>(sum, warps, total), carry);
#pragma unroll
    for (int i = 0; i < kScanTilesPerThread; ++i) {
      if (first + i < tiles.count) {
        tiles.depth[first + i] = depth;
        tiles.bottoms[first + i] = max(depth - changes[i].closes, std::int64_t{0});
      }
      depth = apply(changes[i], depth);
    }
    carry = apply(total, carry);
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    findings->first_fault = kNoFault;
    findings->unmatched = 0;
    findings->maximum_depth = 0;
    findings->final_depth = carry;
  }

  std::int64_t below = tiles.count;
  for (int level = 1; level < tiles.tree.levels; ++level) {
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

/// Step 3.
template <class Symbol, class Index, bool kTree>
__global__ void __launch_bounds__(kTileThreads)
    resolve_tiles(const __grid_constant__ Arguments<Symbol, Index> a) {
  extern __shared__ __align__(16) unsigned char memory[];
  TileResolver<Symbol, Index, kTree>(a, *reinterpret_cast<ResolveMemory<Symbol, Index, kTree>*>(memory))
      .run();
}

/// The top of the stack before the element at `position`, at least 1, in the document of the element before
/// it; or -1. Walks back through the tile. By one warp.
template <class Symbol, class Index>
__device__ std::int64_t top_before(const Arguments<Symbol, Index>& a,
                                   const typename Rules<Symbol>::Shared& rules, std::int64_t position) {
  const std::int64_t tile = (position - 1) / kTileItems;
  std::int64_t open = -1;
  std::int64_t level = a.tiles.depth[tile];
  if (threadIdx.x == 0) {
    std::int64_t closes = 0;
    bool begun = false;
    for (std::int64_t i = position - 1; i >= tile * kTileItems && open < 0 && !begun; --i) {
      const std::uint32_t role = rules.role_of(a.text[i]);
      if (role == kRoleClose) ++closes;
      if (role == kRoleOpen && closes-- == 0) open = i;
      begun = a.begins_at(i);
    }
    level = open >= 0 || begun ? 0 : level - closes;
  }
  open = __shfl_sync(kAllLanes, open, 0);
  level = __shfl_sync(kAllLanes, level, 0);
  if (level <= 0) return open;
  return __shfl_sync(kAllLanes, opens_down_from(a.tiles, tile, level, 1), 0);
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

/// Step 4, one warp: says what was found.
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
  if (segment_count > 0 && findings.wrong_segment != kNoFault) {
    result.fault = Fault::kWrongSegment;
    result.position = result.segment = static_cast<std::int64_t>(findings.wrong_segment);
  } else if (findings.first_fault != kNoFault) {
    const auto fault = static_cast<std::int64_t>(findings.first_fault);
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

template <class Symbol, class Index, bool kTree>
void launch_resolve(CudaExecutor& executor, const Arguments<Symbol, Index>& arguments) {
  constexpr auto kBytes = static_cast<int>(sizeof(ResolveMemory<Symbol, Index, kTree>));
  static_assert(kBytes <= 64 * 1024, "the oldest architecture has 64 KiB of shared memory for a block");
  if (kBytes > 48 * 1024) {
    CUMULUS_CUDA(cudaFuncSetAttribute(resolve_tiles<Symbol, Index, kTree>,
                                      cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  }
  resolve_tiles<Symbol, Index, kTree>
      <<<static_cast<unsigned int>(arguments.tiles.count), kTileThreads, kBytes, executor.stream()>>>(
          arguments);
}

DeviceTiles take_tiles(CudaExecutor& executor, std::int64_t count) {
  DeviceTiles tiles{};
  tiles.count = tiles_of(count, Space::kDevice);
  tiles.tree = TileTree::of(tiles.count);
  const auto size = static_cast<std::size_t>(tiles.count);
  tiles.surviving_opens = executor.scratch<std::uint32_t>(size * kTileThreads).data();
  tiles.opens_before = executor.scratch<std::uint16_t>(size * kTileWarps).data();
  tiles.change = executor.scratch<StackChange<std::int32_t>>(size).data();
  tiles.depth = executor.scratch<std::int64_t>(size).data();
  tiles.bottoms = executor.scratch<std::int64_t>(static_cast<std::size_t>(tiles.tree.total)).data();
  return tiles;
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
  CUMULUS_CUDA(cudaMemsetAsync(findings, 0xFF, sizeof(Findings), executor.stream()));
  mark_beginnings<<<static_cast<unsigned int>(divide_up(segment_count, kMarkThreads)), kMarkThreads, 0,
                    executor.stream()>>>(segments.data(), segment_count, count, words.data(), findings);
  CUMULUS_CUDA(cudaGetLastError());
  return words.data();
}

template <class Symbol, class Index>
void match(CudaExecutor& executor, DeviceSpan<const Symbol> text, const Rules<Symbol>& rules,
           DeviceSpan<const std::int64_t> segments, const BracketOutputs<Index, Space::kDevice>& outputs,
           BracketReport* report) {
  check_outputs(text.size(), outputs);
  executor.bind_thread();
  executor.check_interrupt();
  const auto count = static_cast<std::int64_t>(text.size());
  DeviceTiles tiles = take_tiles(executor, count);
  Findings* findings = executor.scratch<Findings>(1).data();
  static_assert(sizeof(BracketReport) <= kReportBytes);
  auto* device_report = reinterpret_cast<BracketReport*>(executor.scratch<std::byte>(kReportBytes).data());
  tiles.begins = mark_segments(executor, segments, count, findings);
  const Arguments<Symbol, Index> arguments{
      text.data(),
      count,
      rules,
      tiles,
      {outputs.partner.data(), outputs.parent.data(), outputs.depth.data(), outputs.top.data()},
      findings};
  const auto blocks = static_cast<unsigned int>(tiles.count);
  if (blocks > 0) summarize_tiles<<<blocks, kTileThreads, 0, executor.stream()>>>(arguments);
  scan_tiles<<<1, kScanThreads, 0, executor.stream()>>>(tiles, findings);
  CUMULUS_CUDA(cudaGetLastError());
  executor.check_interrupt();
  if (blocks > 0 && wants_tree(outputs)) launch_resolve<Symbol, Index, true>(executor, arguments);
  if (blocks > 0 && !wants_tree(outputs)) launch_resolve<Symbol, Index, false>(executor, arguments);
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
  match(executor, text, rules, segments, outputs, report);
}

template <class Index>
void match_brackets(CudaExecutor& executor, DeviceSpan<const std::int32_t> tokens,
                    DeviceSpan<const std::int64_t> segments,
                    const BracketOutputs<Index, Space::kDevice>& outputs, BracketReport* report) {
  match(executor, tokens, Rules<std::int32_t>{}, segments, outputs, report);
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
