#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "kernels/bracket_match/check.h"
#include "kernels/bracket_match/match/match.h"
#include "kernels/bracket_match/match/report.cuh"
#include "kernels/bracket_match/match/scan.cuh"
#include "kernels/bracket_match/match/tile_linker.cuh"
#include "kernels/bracket_match/match/tile_matcher.cuh"
#include "kernels/bracket_match/match/tile_tree.cuh"
#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/multiprocessor.cuh"

namespace cumulus::bracket_match {
namespace {

/// Before everything, where there are segments: marks where documents begin.
/// owns: a segment for each thread.
/// reads: the segment and the one before it.
/// writes: the bit of the element at which the document begins (atomicOr); the first wrong one (atomicMax).
/// waits for: nothing of other blocks, so that it cannot deadlock.
/// source: this project.
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

/// Step 1: matches each tile in itself.
/// owns: block b has tile b, kTileItems elements; a thread has kThreadItems of them, a bit each in registers.
/// reads: the tile's text and bits of beginnings.
/// writes: partners within the tile; its stack change, surviving opens, reaching closes; findings (atomics).
/// waits for: nothing of other blocks, so that it cannot deadlock.
/// source: the monoid of R. Levien, "The stack monoid revisited", 2021.
template <class Symbol, class Index>
__global__ void __launch_bounds__(kTileThreads, blocks_per_multiprocessor(9, kTileThreads))
    match_tiles(const __grid_constant__ Arguments<Symbol, Index> a,
                const __grid_constant__ Codes<Symbol> codes) {
  extern __shared__ __align__(16) unsigned char memory[];
  TileMatcher<Symbol, Index>(a, codes, *reinterpret_cast<MatchMemory<Symbol>*>(memory)).run();
}

/// Step 3: pairs the closes that reach out of their tiles.
/// owns: a warp has a tile and its reaching closes.
/// reads: depths, bottoms and surviving opens of earlier tiles; text, where lists do not hold the kinds.
/// writes: partners of both brackets of a pair; findings (atomics).
/// waits for: nothing of other blocks, so that it cannot deadlock; the kernels before have ended.
/// source: nearest smaller values (O. Berkman, B. Schieber and U. Vishkin, 1993), here by a tree of minima
///   with 32 children to a node.
template <class Symbol, class Index>
__global__ void __launch_bounds__(kTileThreads, blocks_per_multiprocessor(8, kTileThreads))
    link_tiles(const __grid_constant__ Arguments<Symbol, Index> a) {
  extern __shared__ __align__(16) unsigned char memory[];
  TileLinker<Symbol, Index>(a, *reinterpret_cast<LinkMemory<Symbol>*>(memory)).run();
}

/// Step 4, where they are requested: parents, depths and tops.
/// owns: block b has tile b.
/// reads: the tile's text, bits of beginnings and depth; surviving opens of earlier tiles around it.
/// writes: parents, depths and tops of the tile; the maximum depth (atomic).
/// waits for: nothing of other blocks, so that it cannot deadlock; the kernels before have ended.
/// source: R. Levien, 2021, as above.
template <class Symbol, class Index>
__global__ void __launch_bounds__(kTileThreads)
    write_trees(const __grid_constant__ Arguments<Symbol, Index> a) {
  extern __shared__ __align__(16) unsigned char memory[];
  TileTreeWriter<Symbol, Index>(a, *reinterpret_cast<TreeMemory<Symbol, Index>*>(memory)).run();
}

/// With `Memory` in shared memory.
template <class Memory, class Kernel, class Tiles, class... Others>
void launch_over_tiles(CudaExecutor& executor, Kernel* kernel, std::int64_t blocks, const Tiles& arguments,
                       const Others&... others) {
  static_assert(sizeof(Memory) <= 64 * 1024,
                "the oldest architecture has 64 KiB of shared memory for a block");
  if (blocks == 0) return;
  launch(executor.stream(), kernel, {blocks, kTileThreads, sizeof(Memory)}, arguments, others...);
}

DeviceTiles take_tiles(CudaExecutor& executor, const MatchPlan& plan) {
  DeviceTiles tiles{};
  tiles.count = plan.tiles;
  tiles.tree = plan.tree;
  const auto size = static_cast<std::size_t>(tiles.count);
  tiles.surviving_opens = executor.scratch<std::uint32_t>(size * kTileThreads).data();
  tiles.reaching_closes = executor.scratch<std::uint32_t>(size * kTileThreads).data();
  tiles.opens_before = executor.scratch<std::uint16_t>(size * kTileWarps).data();
  tiles.change = executor.scratch<StackChange<std::int32_t>>(size).data();
  tiles.depth = executor.scratch<std::int64_t>(size).data();
  tiles.bottoms = executor.scratch<std::int64_t>(static_cast<std::size_t>(tiles.tree.total)).data();
  const auto groups = static_cast<std::size_t>(plan.scan_groups);
  tiles.groups = executor.scratch<StackChange<std::int64_t>>(groups).data();
  return tiles;
}

/// Step 2.
void scan(CudaExecutor& executor, const MatchPlan& plan, const DeviceTiles& tiles, Findings* findings) {
  const std::int64_t groups =
      std::max(plan.scan_groups, std::int64_t{1});  // of no tiles the final depth is 0
  if (groups > 1) launch(executor.stream(), sum_groups, {groups, kScanThreads}, tiles);
  launch(executor.stream(), scan_tiles, {groups, kScanThreads}, tiles, findings);
  if (groups > 1) launch(executor.stream(), finish_tree, {std::int64_t{1}, kScanThreads}, tiles);
}

constexpr int kMarkThreads = 256;

/// A bit for each element at which a document begins; null where there are no segments.
std::uint32_t* mark_segments(CudaExecutor& executor, const MatchPlan& plan,
                             DeviceSpan<const std::int64_t> segments, std::int64_t count,
                             Findings* findings) {
  if (!plan.segmented) return nullptr;
  const auto words = executor.scratch<std::uint32_t>(static_cast<std::size_t>(plan.tiles) * kTileThreads);
  const auto segment_count = static_cast<std::int64_t>(segments.size());
  CUMULUS_CUDA(cudaMemsetAsync(words.data(), 0, words.bytes(), executor.stream()));
  launch(executor.stream(), mark_beginnings, {divide_up(segment_count, kMarkThreads), kMarkThreads},
         segments.data(), segment_count, count, words.data(), findings);
  return words.data();
}

template <class Symbol, class Index>
void match_elements(CudaExecutor& executor, DeviceSpan<const Symbol> text, const Rules<Symbol>& rules,
                    const Codes<Symbol>& codes, const MatchJob<Index>& job) {
  const BracketOutputs<Index, Space::kDevice>& outputs = job.outputs;
  const DeviceSpan<const std::int64_t> segments = job.segments;
  executor.bind_thread();
  executor.check_interrupt();
  const auto count = static_cast<std::int64_t>(text.size());
  const MatchPlan plan = choose_match(count, !segments.empty());
  DeviceTiles tiles = take_tiles(executor, plan);
  Findings* findings = executor.scratch<Findings>(1).data();
  static_assert(sizeof(BracketReport) <= kReportBytes);
  auto* device_report = reinterpret_cast<BracketReport*>(executor.scratch<std::byte>(kReportBytes).data());
  CUMULUS_CUDA(cudaMemsetAsync(findings, 0, sizeof(Findings), executor.stream()));
  tiles.begins = mark_segments(executor, plan, segments, count, findings);
  const Arguments<Symbol, Index> arguments{
      text.data(),
      count,
      rules,
      tiles,
      {outputs.partner.data(), outputs.parent.data(), outputs.depth.data(), outputs.top.data()},
      findings,
      codes.exact};
  launch_over_tiles<MatchMemory<Symbol>>(executor, match_tiles<Symbol, Index>, plan.tiles, arguments, codes);
  scan(executor, plan, tiles, findings);
  executor.check_interrupt();
  launch_over_tiles<LinkMemory<Symbol>>(executor, link_tiles<Symbol, Index>, plan.link_blocks(), arguments);
  if (wants_tree(outputs))
    launch_over_tiles<TreeMemory<Symbol, Index>>(executor, write_trees<Symbol, Index>, plan.tiles, arguments);
  launch(executor.stream(), write_report<Symbol, Index>, {std::int64_t{1}, 32}, arguments,
         Segments{segments.data(), static_cast<std::int64_t>(segments.size())}, wants_tree(outputs),
         device_report, outputs.maximum_depth.data(), outputs.unmatched.data());
  CUMULUS_CUDA(cudaMemcpyAsync(job.report, device_report, sizeof(BracketReport), cudaMemcpyDeviceToHost,
                               executor.stream()));
}

Rules<std::uint8_t> rules_of(const BracketTable& table) {
  Rules<std::uint8_t> rules;
  std::memcpy(rules.role, table.role.data(), sizeof(rules.role));
  std::memcpy(rules.mate, table.mate.data(), sizeof(rules.mate));
  return rules;
}

}  // namespace

template <class Index>
void match(CudaExecutor& executor, DeviceSpan<const std::uint8_t> text, const BracketTable& table,
           const MatchJob<Index>& job) {
  match_elements(executor, text, rules_of(table), Codes<std::uint8_t>::of(table), job);
}

template <class Index>
void match(CudaExecutor& executor, DeviceSpan<const std::int32_t> tokens, const MatchJob<Index>& job) {
  match_elements(executor, tokens, Rules<std::int32_t>{}, Codes<std::int32_t>{}, job);
}

template void match(CudaExecutor&, DeviceSpan<const std::uint8_t>, const BracketTable&,
                    const MatchJob<std::int32_t>&);
template void match(CudaExecutor&, DeviceSpan<const std::uint8_t>, const BracketTable&,
                    const MatchJob<std::int64_t>&);
template void match(CudaExecutor&, DeviceSpan<const std::int32_t>, const MatchJob<std::int32_t>&);
template void match(CudaExecutor&, DeviceSpan<const std::int32_t>, const MatchJob<std::int64_t>&);

}  // namespace cumulus::bracket_match
