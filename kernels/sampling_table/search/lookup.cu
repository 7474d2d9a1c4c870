#include <cub/block/block_scan.cuh>

#include "kernels/core/div.h"
#include "kernels/sampling_table/format/target.h"
#include "kernels/sampling_table/search/alias.h"
#include "kernels/sampling_table/search/lookup.h"
#include "kernels/sampling_table/search/trees.h"
#include "kernels/sampling_table/tuning.h"

namespace cumulus::sampling_table {
namespace {

using sampling::Method;

using Forest = RadixForest<LowerIn>;

__device__ Forest forest_of(const Target& target) {
  return {LowerIn{target.lower}, target.count, target.guide_size};
}
__device__ bool has_mass(const Target& target) { return target.lower[0] != sampling::kEmptyTail; }

/// Which element of which distribution this thread has.
struct ThreadElement {
  std::uint32_t distribution;
  std::uint32_t element;

  __device__ explicit ThreadElement(unsigned blocks_each)
      : distribution(blockIdx.x / blocks_each),
        element(blockIdx.x % blocks_each * blockDim.x + threadIdx.x) {}
};

__device__ std::uint64_t find_guide_entry(const Target& target, std::uint32_t g) {
  if (!has_mass(target)) return 0;
  const std::uint64_t smallest = divide_up(std::uint64_t{g} << 32, target.guide_size);
  const std::uint32_t cell =
      sampling::detail::find_cell(target.lower, 0, target.count - 1, static_cast<std::uint32_t>(smallest));
  return guide_entry(target.method, forest_of(target), cell, g, target.count);
}

/// Guide entries from lower bounds.
/// owns: `blocks_each` blocks have a distribution, a thread one entry.
/// reads: the distribution's lower bounds, by bisection.
/// writes: its entry.
/// waits for: nothing of other blocks, so that there is no deadlock; the lower bounds' kernel has ended.
/// source: Binder and Keller, 2020; Chen and Asau, 1974, for cutpoints.
__global__ void __launch_bounds__(kLookupThreads)
    write_guides(const __grid_constant__ Distributions distributions, unsigned blocks_each) {
  const ThreadElement thread(blocks_each);
  const Target target = distributions[thread.distribution];
  if (thread.element >= target.guide_size) return;
  const std::uint64_t entry = find_guide_entry(target, thread.element);
  switch (sampling::guide_entry_bytes(target.method, target.count)) {
    case 2:
      reinterpret_cast<std::uint16_t*>(target.guide)[thread.element] = static_cast<std::uint16_t>(entry);
      break;
    case 4:
      reinterpret_cast<std::uint32_t*>(target.guide)[thread.element] = static_cast<std::uint32_t>(entry);
      break;
    default:
      reinterpret_cast<std::uint64_t*>(target.guide)[thread.element] = entry;
  }
}

template <class Word>
__device__ void write_pair(const Target& target, std::uint32_t j) {
  const Forest forest = forest_of(target);
  Word word = 0;
  if (forest.has_node(j)) {
    const auto node = forest.node(j, sampling::detail::leaf_bit(target.count));
    word = static_cast<Word>(node.left | static_cast<std::uint64_t>(node.right) << 4 * sizeof(Word));
  }
  reinterpret_cast<Word*>(target.nodes)[j] = word;
}

/// Nodes of radix forests from lower bounds.
/// owns: `blocks_each` blocks have a distribution, a thread one node.
/// reads: the distribution's lower bounds, by bisection.
/// writes: its node.
/// waits for: nothing of other blocks, so that there is no deadlock; the lower bounds' kernel has ended.
/// source: T. Karras, 2012, as search/trees.h has it.
__global__ void __launch_bounds__(kLookupThreads)
    write_nodes(const __grid_constant__ Distributions distributions, unsigned blocks_each) {
  const ThreadElement thread(blocks_each);
  const Target target = distributions[thread.distribution];
  if (thread.element >= target.count) return;
  if (target.count <= sampling::kNarrowCells) {
    write_pair<std::uint32_t>(target, thread.element);
  } else {
    write_pair<std::uint64_t>(target, thread.element);
  }
}

/// The cells of a thread that goes through neighbours.
struct Chunk {
  std::uint32_t begin;
  std::uint32_t end;
};
template <int kThreads>
__device__ Chunk chunk_of(std::uint32_t count) {
  const std::uint32_t length = divide_up(count, kThreads);
  const std::uint32_t begin = min(threadIdx.x * length, count);
  return {begin, min(begin + length, count)};
}

/// Until the last pass an entry's `alias` is the surplus before its cell, its `split` the result of
/// first_pass.
template <int kThreads>
__device__ void write_alias(const Target& target) {
  using Scan = cub::BlockScan<std::uint64_t, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  __shared__ std::uint32_t first_heavy[kThreads];  // of each chunk; `count` where it has none
  auto* entries = reinterpret_cast<sampling::detail::AliasEntry*>(target.nodes);
  const auto surplus_at = [entries](std::uint32_t i) { return static_cast<std::uint64_t>(entries[i].alias); };
  const AliasColumns columns(LowerIn{target.lower}, surplus_at, target.count);
  const Chunk chunk = chunk_of<kThreads>(target.count);

  std::uint64_t surplus = 0;
  std::uint32_t heavy = target.count;
  for (std::uint32_t i = chunk.end; i-- > chunk.begin;) {
    surplus += columns.surplus(i);
    if (columns.heavy(i)) heavy = i;
  }
  first_heavy[threadIdx.x] = heavy;
  Scan(storage).ExclusiveSum(surplus, surplus);
  for (std::uint32_t i = chunk.begin; i < chunk.end; ++i) {
    entries[i].alias = static_cast<std::uint32_t>(surplus);
    surplus += columns.surplus(i);
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < target.count; i += kThreads)
    entries[i].split = columns.first_pass(i);
  __syncthreads();
  std::uint32_t next_heavy = target.count;
  for (unsigned thread = threadIdx.x + 1; thread < kThreads && next_heavy == target.count; ++thread) {
    next_heavy = first_heavy[thread];
  }
  for (std::uint32_t i = chunk.end; i-- > chunk.begin;) {
    entries[i] = columns.entry(i, entries[i].split, next_heavy);
    if (columns.heavy(i)) next_heavy = i;
  }
}

/// Alias tables from lower bounds.
/// owns: block b has distribution b, a thread a chunk of its cells.
/// reads: the distribution's lower bounds; entries that the block has written.
/// writes: the distribution's entries.
/// waits for: nothing of other blocks, so that there is no deadlock; the lower bounds' kernel has ended.
/// source: L. Hübschle-Schneider and P. Sanders, 2022, as search/alias.h has it.
__global__ void __launch_bounds__(kAliasThreads)
    write_aliases(const __grid_constant__ Distributions distributions) {
  const Target target = distributions[blockIdx.x];
  if (has_mass(target)) return write_alias<kAliasThreads>(target);
  auto* entries = reinterpret_cast<sampling::detail::AliasEntry*>(target.nodes);
  for (std::uint32_t i = threadIdx.x; i < target.count; i += blockDim.x) entries[i] = {};
}

/// Puts `kernel` on the executor's stream, a thread for each of `elements` of each distribution.
void launch_for_each(CudaExecutor& executor, void (*kernel)(Distributions, unsigned),
                     const Distributions& distributions, std::uint32_t elements) {
  if (elements == 0) return;
  const unsigned blocks_each = divide_up(elements, unsigned{kLookupThreads});
  kernel<<<distributions.number() * blocks_each, kLookupThreads, 0, executor.stream()>>>(distributions,
                                                                                         blocks_each);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace

void write_lookup(CudaExecutor& executor, const Distributions& distributions, bool guides_written) {
  const Target any = distributions[0];
  executor.check_interrupt();
  if (!guides_written) launch_for_each(executor, write_guides, distributions, any.guide_size);
  if (any.method == Method::kAlias) {
    write_aliases<<<distributions.number(), kAliasThreads, 0, executor.stream()>>>(distributions);
    CUMULUS_CUDA(cudaGetLastError());
  } else if (!guides_written && any.method == Method::kRadixForest) {
    launch_for_each(executor, write_nodes, distributions, any.count);
  }
}

}  // namespace cumulus::sampling_table
