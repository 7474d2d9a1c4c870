#include <type_traits>

#include "kernels/sampling_table/bilinear/vertices.h"
#include "kernels/sampling_table/rows/block/block.h"
#include "kernels/sampling_table/rows/block/lookup.cuh"
#include "kernels/sampling_table/rows/launch.cuh"
#include "kernels/sampling_table/rows/masses.cuh"
#include "kernels/sampling_table/rows/texels.cuh"

namespace cumulus::sampling_table {
namespace {

extern __shared__ uint4 shared_quads[];

/// The block's shared memory, its slots cleared where there is to be a lookup.
template <int kThreads>
__device__ BlockMemory memory_for(const Target& target, bool lookup) {
  const BlockMemory memory(reinterpret_cast<std::uint32_t*>(shared_quads), target.count);
  if (lookup) clear_slots<kThreads>(memory, target.guide_size);
  return memory;
}

/// Lower bounds of rows, a block a row; with `lookup` guides and the nodes of kRadixForest, too.
/// owns: block b has row b of all layers, whose cells are in its shared memory.
/// reads: the row's texels, once; the layer's adjustment.
/// writes: the row's section of the table; its mass; the first invalid texel (atomicMin).
/// waits for: nothing of other blocks, so that there is no deadlock; the kernels before have ended.
/// source: Binder and Keller, 2020, and Karras, 2012: see search/trees.h.
template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads)
    build_block_rows(const __grid_constant__ RowsArguments<T> arguments, bool lookup) {
  const sampling::TableHeader& header = arguments.header;
  const std::uint32_t row = blockIdx.x;
  const Target target = row_target(header, arguments.table, row);
  const BlockMemory memory = memory_for<kThreads>(target, lookup);
  const TexelRun<T> texels(arguments, row, 0, header.width);
  const std::uint32_t largest =
      largest_of_block<kThreads / 32>(texels.template stage<kThreads>(memory.cells));
  const std::uint32_t exponent = row_exponent(largest, header.width);
  const Tally all = build_distribution<kThreads>(target, memory, lookup, WeightTally{exponent});
  if (threadIdx.x == 0) {
    arguments.row_masses[row] = {row_mass(all.sum, row_weight(header, row % header.height)), exponent,
                                 kPublished};
  }
}

/// Marginals, a block a layer.
/// owns: block b has the marginal of layer b, whose cells are in its shared memory.
/// reads: the masses of the layer's rows.
/// writes: the marginal's section of the table; the first layer without mass (atomicMin).
/// waits for: each mass of the layer, which the kernel of the rows publishes.
/// deadlock: none. Either that kernel has ended, or this one began when each of its blocks had; those wait
/// for nothing, and keep their places until they have published.
/// source: as build_block_rows.
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    build_block_marginals(const __grid_constant__ sampling::TableHeader header, std::byte* table,
                          const RowMass* row_masses, BuildFindings* findings, bool lookup) {
  const Target target = marginal_target(header, table, blockIdx.x);
  const BlockMemory memory = memory_for<kThreads>(target, lookup);
  const RowMass* rows = row_masses + static_cast<std::size_t>(blockIdx.x) * header.height;
  std::uint32_t largest = 0;
  for (std::uint32_t y = threadIdx.x; y < header.height; y += kThreads) {
    RowMass row[1];
    wait_for_masses(rows + y, row);
    largest = max(largest, mass_exponent(row[0].mass, row[0].exponent));
  }
  const std::uint32_t heaviest = largest_of_block<kThreads / 32>(largest);
  const auto mass_of = [=](std::uint32_t, std::uint32_t y) -> Tally {
    const std::uint64_t mass =
        y < header.height ? integer_mass(__ldcg(&rows[y].mass), __ldcg(&rows[y].exponent), heaviest) : 0;
    return {mass, mass > 0 ? 1u : 0u};
  };
  const Tally all = build_distribution<kThreads>(target, memory, lookup, mass_of);
  if (threadIdx.x == 0 && all.positive == 0) atomicMin(&findings->first_empty, blockIdx.x);
  wait_for_primary_kernel();
}

}  // namespace

template <class T>
void build_rows(CudaExecutor& executor, const BlockPlan& plan, const RowsArguments<T>& arguments) {
  const std::int64_t rows = std::int64_t{arguments.header.layers} * arguments.header.height;
  with_threads(plan.threads, [&](auto threads) {
    launch<build_block_rows<T, decltype(threads)::value>>(executor, {rows, threads, plan.shared_bytes}, false,
                                                          arguments, plan.guides);
  });
}

void build_marginals(CudaExecutor& executor, const BlockPlan& plan, const MarginalsArguments& arguments) {
  with_threads(plan.threads, [&](auto threads) {
    launch<build_block_marginals<decltype(threads)::value>>(
        executor, {arguments.header.layers, threads, plan.shared_bytes}, arguments.early, arguments.header,
        arguments.table, arguments.row_masses, arguments.findings, plan.guides);
  });
}

template void build_rows(CudaExecutor&, const BlockPlan&, const RowsArguments<float>&);
template void build_rows(CudaExecutor&, const BlockPlan&, const RowsArguments<std::uint8_t>&);
template void build_rows(CudaExecutor&, const BlockPlan&, const RowsArguments<Float16>&);
template void build_rows(CudaExecutor&, const BlockPlan&, const RowsArguments<CellWeight>&);

}  // namespace cumulus::sampling_table
