#include <type_traits>

#include "kernels/sampling_table/rows/launch.cuh"
#include "kernels/sampling_table/rows/masses.cuh"
#include "kernels/sampling_table/rows/register_blocked/cells.cuh"
#include "kernels/sampling_table/rows/register_blocked/register_blocked.h"
#include "kernels/sampling_table/rows/texels.cuh"

namespace cumulus::sampling_table {
namespace {

extern __shared__ __align__(kSlotAlignment) std::byte shared_bytes[];

/// A thread's weights.
struct ThreadWeights {
  std::uint32_t bits[kThreadCells];
  std::uint32_t largest;
  std::uint32_t smallest;  ///< ~0 where there are none.

  __device__ void find_smallest() {
    smallest = ~0u;
#pragma unroll
    for (std::uint32_t k = 0; k < kThreadCells; k += 2)
      smallest = __vimin3_u32(smallest, bits[k], bits[k + 1]);
  }
};

/// Loads the weights of a row; calls `meanwhile` while the loads are in flight.
template <class T, class Meanwhile>
__device__ ThreadWeights load_weights(const RowsArguments<T>& arguments, std::uint32_t row,
                                      std::uint32_t count, const Meanwhile& meanwhile) {
  const std::uint32_t first = threadIdx.x * kThreadCells;
  ThreadWeights own = {{}, 0, ~0u};
  if (first < count) {
    own.largest = TexelRun<T>(arguments, row, 0, count).load_thread_cells(first, own.bits, meanwhile);
    own.find_smallest();
  } else {
    meanwhile();
  }
  return own;
}

/// Lower bounds of rows and, as kLookup has it, guides and trees, a row in a block's registers.
/// owns: block b has row b of all layers. Thread t has its cells 16 t to 16 t + 15.
/// reads: the row's texels, once.
/// writes: the row's section of the table; the first invalid texel (atomicMin); publishes the row's mass.
/// waits for: nothing of other blocks, so that there is no deadlock; the kernels before have ended. The
/// marginals' kernel may begin when each block has.
/// source: Binder and Keller, 2020; Cartesian trees of key differences, as trees.cuh has it.
template <class T, int kThreads, RowLookup kLookup>
__global__ void __launch_bounds__(kThreads, kThreads > 512 ? 1 : 1024 / kThreads)
    build_register_blocked_rows(const __grid_constant__ RowsArguments<T> arguments,
                                const __grid_constant__ RowTargets targets) {
  __shared__ float share;  // of the sphere
  const std::uint32_t count = targets.first.count;
  const RegisterBlockedMemory<kThreads, kLookup> memory{shared_bytes};
  if (threadIdx.x == 0) allow_secondary_kernel();
  const std::uint32_t row = blockIdx.x;
  const Target target = targets[row];
  if (threadIdx.x == kThreads - 1) share = row_weight(arguments.header, row % arguments.header.height);
  ThreadWeights weights = load_weights(arguments, row, count, [&] {
    if (kLookup == RowLookup::kTrees && target.method == Method::kRadixForest) clear_nodes<kThreads>(target);
    memory.clear(targets.first.guide_size);
  });
  const WeightsRange range = range_of_block<kThreads>(weights.largest, weights.smallest);
  ThreadCells own;
  own.weigh(WeightScale(range.exponent), range.all_positive && threadIdx.x * kThreadCells < count,
            weights.bits);
  build_register_blocked<kThreads, kLookup>(target, memory, own, range.all_positive, [&](const Tally& all) {
    if (threadIdx.x > 0) return;
    publish_mass(arguments.row_masses[row], {row_mass(all.sum, share), range.exponent, kPublished});
  });
}

/// Marginals, a block a layer, the masses of a layer's rows in its registers.
/// owns: block b has the marginal of layer b; thread t has its cells 16 t to 16 t + 15.
/// reads: the masses of the layer's rows.
/// writes: the marginal's section of the table; the first layer without mass (atomicMin).
/// waits for: each mass of the layer, which the kernel of the rows publishes.
/// deadlock: none. Either that kernel has ended, or this one began when each of its blocks had; those wait
/// for nothing, and keep their places until they have published.
/// source: as build_register_blocked_rows.
template <int kThreads, RowLookup kLookup>
__global__ void __launch_bounds__(kThreads)
    build_register_blocked_marginals(const __grid_constant__ sampling::TableHeader header, std::byte* table,
                                     const RowMass* row_masses, BuildFindings* findings) {
  if (threadIdx.x == 0) allow_secondary_kernel();
  const Target target = marginal_target(header, table, blockIdx.x);
  const RegisterBlockedMemory<kThreads, kLookup> memory{shared_bytes};
  if (kLookup == RowLookup::kTrees && target.method == Method::kRadixForest) clear_nodes<kThreads>(target);
  memory.clear(target.guide_size);
  const std::uint32_t first = threadIdx.x * kThreadCells;
  RowMass rows[kThreadCells] = {};
  if (first < target.count) {
    wait_for_masses(row_masses + static_cast<std::size_t>(blockIdx.x) * header.height + first, rows);
  }
  std::uint32_t largest = 0;
#pragma unroll
  for (const RowMass& row : rows) largest = max(largest, mass_exponent(row.mass, row.exponent));
  const std::uint32_t heaviest = largest_of_block<kThreads / 32>(largest);
  ThreadCells own;
#pragma unroll
  for (std::uint32_t k = 0; k < kThreadCells; ++k) {
    own.weights[k] = integer_mass(rows[k].mass, rows[k].exponent, heaviest);
  }
  own.add_up();
  build_register_blocked<kThreads, kLookup>(target, memory, own, false, [&](const Tally& all) {
    if (threadIdx.x == 0 && all.positive == 0) atomicMin(&findings->first_empty, blockIdx.x);
  });
  wait_for_primary_kernel();
}

/// Calls `launch` with the threads of a block, and what it builds, as constants.
template <class Launch>
void with_constants(const RegisterBlockedPlan& plan, const Launch& launch) {
  with_threads(plan.threads, [&](auto threads) {
    switch (plan.lookup) {
      case RowLookup::kTrees:
        return launch(threads, std::integral_constant<RowLookup, RowLookup::kTrees>{});
      case RowLookup::kRanges:
        return launch(threads, std::integral_constant<RowLookup, RowLookup::kRanges>{});
      case RowLookup::kCutpoints:
        return launch(threads, std::integral_constant<RowLookup, RowLookup::kCutpoints>{});
      default:
        return launch(threads, std::integral_constant<RowLookup, RowLookup::kNone>{});
    }
  });
}

}  // namespace

template <class T>
void build_rows(CudaExecutor& executor, const RegisterBlockedPlan& plan, const RowsArguments<T>& arguments) {
  const RowTargets targets = row_targets(arguments.header, arguments.table);
  with_constants(plan, [&](auto threads, auto lookup) {
    launch<build_register_blocked_rows<T, decltype(threads)::value, decltype(lookup)::value>>(
        executor, {plan.blocks, threads, plan.shared_bytes}, false, arguments, targets);
  });
}

void build_marginals(CudaExecutor& executor, const RegisterBlockedPlan& plan,
                     const MarginalsArguments& arguments) {
  with_constants(plan, [&](auto threads, auto lookup) {
    launch<build_register_blocked_marginals<decltype(threads)::value, decltype(lookup)::value>>(
        executor, {plan.blocks, threads, plan.shared_bytes}, arguments.early, arguments.header,
        arguments.table, arguments.row_masses, arguments.findings);
  });
}

template void build_rows(CudaExecutor&, const RegisterBlockedPlan&, const RowsArguments<float>&);
template void build_rows(CudaExecutor&, const RegisterBlockedPlan&, const RowsArguments<std::uint8_t>&);
template void build_rows(CudaExecutor&, const RegisterBlockedPlan&, const RowsArguments<Float16>&);

}  // namespace cumulus::sampling_table
