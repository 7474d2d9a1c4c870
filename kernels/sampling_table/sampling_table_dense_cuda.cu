#include <type_traits>

#include "kernels/sampling_table/sampling_table_dense.cuh"
#include "kernels/sampling_table/sampling_table_dense_rows.cuh"
#include "kernels/sampling_table/sampling_table_launch.cuh"
#include "kernels/sampling_table/sampling_table_row_masses.cuh"

namespace cumulus::sampling_dense {
namespace {

using namespace sampling_rows;

extern __shared__ __align__(Slots::kAlignment) std::byte shared_bytes[];

/// One block a row of any layer.
template <class T, int kThreads, DenseLookup kLookup>
__global__ void __launch_bounds__(kThreads, kThreads > 512 ? 1 : 1024 / kThreads)
    build_dense_rows(const __grid_constant__ RowsArguments<T> arguments,
                     const __grid_constant__ sampling_layout::RowTargets targets) {
  __shared__ float share;  // of the sphere
  const std::uint32_t row = blockIdx.x;
  const Target target = targets[row];
  const DenseOnChip<kThreads, kLookup> chip{shared_bytes};
  if (kLookup == DenseLookup::kTrees && target.method == Method::kRadixForest) clear_nodes<kThreads>(target);
  chip.clear(target.guide_size);
  if (threadIdx.x == kThreads - 1) {
    sampling_launch::let_dependent_begin();
    share = row_weight(arguments.header, row % arguments.header.height);
  }
  const std::uint32_t first = threadIdx.x * kOwn;
  std::uint32_t bits[kOwn] = {};
  std::uint32_t largest = 0;
  std::uint32_t least = ~0u;
  if (first < target.count) {
    const TexelRun<T> texels(arguments, row, 0, target.count);
    largest = texels.load_own(first, bits);
#pragma unroll
    for (std::uint32_t k = 0; k < kOwn; k += 2) least = __vimin3_u32(least, bits[k], bits[k + 1]);
  }
  const WeightsRange range = range_of_block<kThreads>(largest, least);
  OwnCells own;
  own.weigh(WeightScale(range.exponent), range.all_positive && first < target.count, bits);
  build_dense<kThreads, kLookup>(target, chip, own, range.all_positive, [&](const Tally& all) {
    if (threadIdx.x == 0) tell_mass(arguments.row_masses[row], {row_mass(all.sum, share), range.exponent, 0});
  });
}

/// One block a layer: the marginal over its rows, as soon as their masses are known.
template <int kThreads, DenseLookup kLookup>
__global__ void __launch_bounds__(kThreads)
    build_dense_marginals(const __grid_constant__ sampling::TableHeader header, std::byte* table,
                          const RowMass* row_masses, BuildFindings* findings) {
  const Target target = sampling_layout::marginal_target(header, table, blockIdx.x);
  const DenseOnChip<kThreads, kLookup> chip{shared_bytes};
  if (kLookup == DenseLookup::kTrees && target.method == Method::kRadixForest) clear_nodes<kThreads>(target);
  chip.clear(target.guide_size);
  const std::uint32_t first = threadIdx.x * kOwn;
  RowMass rows[kOwn] = {};
  if (first < target.count) {
    wait_for_masses(row_masses + static_cast<std::size_t>(blockIdx.x) * header.height + first, rows);
  }
  std::uint32_t largest = 0;
#pragma unroll
  for (const RowMass& row : rows) largest = max(largest, mass_exponent(row.mass, row.exponent));
  const std::uint32_t heaviest = largest_of_block<kThreads / 32>(largest);
  OwnCells own;
#pragma unroll
  for (std::uint32_t k = 0; k < kOwn; ++k) {
    own.weights[k] = integer_mass(rows[k].mass, rows[k].exponent, heaviest);
  }
  own.add_up();
  build_dense<kThreads, kLookup>(target, chip, own, false, [&](const Tally& all) {
    if (threadIdx.x == 0 && all.positive == 0) atomicMin(&findings->first_empty, blockIdx.x);
  });
  wait_for_kernel_before();
}

DenseLookup lookup_of(Method method) {
  switch (method) {
    case Method::kRadixForest:
    case Method::kRadixForest4:
      return DenseLookup::kTrees;
    case Method::kCutpointBinary:
    case Method::kCutpointLinear:
      return DenseLookup::kCutpoints;
    default:
      return DenseLookup::kNone;
  }
}

/// Calls `launch` with the threads of a block of which each has kOwn cells.
template <class Launch>
void with_threads(std::uint32_t count, const Launch& launch) {
  if (count <= 128 * kOwn) return launch(std::integral_constant<int, 128>{});
  if (count <= 256 * kOwn) return launch(std::integral_constant<int, 256>{});
  if (count <= 512 * kOwn) return launch(std::integral_constant<int, 512>{});
  return launch(std::integral_constant<int, 1024>{});
}

/// Calls `launch` with the threads of a block, and what it builds.
template <class Launch>
void with_lookup(Method method, std::uint32_t count, const Launch& launch) {
  with_threads(count, [&](auto threads) {
    switch (lookup_of(method)) {
      case DenseLookup::kTrees:
        return launch(threads, std::integral_constant<DenseLookup, DenseLookup::kTrees>{});
      case DenseLookup::kCutpoints:
        return launch(threads, std::integral_constant<DenseLookup, DenseLookup::kCutpoints>{});
      default:
        return launch(threads, std::integral_constant<DenseLookup, DenseLookup::kNone>{});
    }
  });
}

std::size_t bytes_for(Method method, std::uint32_t count, std::uint32_t guide_size) {
  std::size_t bytes = 0;
  with_lookup(method, count, [&](auto threads, auto lookup) {
    bytes = DenseOnChip<decltype(threads)::value, decltype(lookup)::value>::bytes(guide_size);
  });
  return bytes;
}

bool distribution_fits(const CudaExecutor& executor, Method method, std::uint32_t count,
                       std::uint32_t guide_size) {
  constexpr std::size_t kBesides = 8192;  // what the kernels have in shared memory anyhow
  return method != Method::kBalancedForest && dense_fits(count, guide_size) &&
         bytes_for(method, count, guide_size) + kBesides <= sampling_launch::most_shared_bytes(executor);
}

}  // namespace

bool rows_fit(const CudaExecutor& executor, const sampling::TableHeader& header) {
  return distribution_fits(executor, header.method, header.width, header.row_guide_size);
}

bool marginals_fit(const CudaExecutor& executor, const sampling::TableHeader& header) {
  return distribution_fits(executor, header.method, header.height, header.marginal_guide_size);
}

bool has_lookup(Method method) { return lookup_of(method) != DenseLookup::kNone; }

template <class T>
void build_rows(CudaExecutor& executor, const RowsArguments<T>& arguments) {
  const sampling::TableHeader& header = arguments.header;
  const std::size_t bytes = bytes_for(header.method, header.width, header.row_guide_size);
  with_lookup(header.method, header.width, [&](auto threads, auto lookup) {
    constexpr int kThreads = decltype(threads)::value;
    sampling_launch::launch(executor, build_dense_rows<T, kThreads, decltype(lookup)::value>,
                            header.layers * header.height, kThreads, bytes, false, arguments,
                            sampling_layout::row_targets(header, arguments.table));
  });
}

void build_marginals(CudaExecutor& executor, const sampling::TableHeader& header, std::byte* table,
                     const RowMass* row_masses, BuildFindings* findings, bool early) {
  const std::size_t bytes = bytes_for(header.method, header.height, header.marginal_guide_size);
  with_lookup(header.method, header.height, [&](auto threads, auto lookup) {
    constexpr int kThreads = decltype(threads)::value;
    sampling_launch::launch(executor, build_dense_marginals<kThreads, decltype(lookup)::value>, header.layers,
                            kThreads, bytes, early, header, table, row_masses, findings);
  });
}

template void build_rows(CudaExecutor&, const RowsArguments<float>&);
template void build_rows(CudaExecutor&, const RowsArguments<std::uint8_t>&);
template void build_rows(CudaExecutor&, const RowsArguments<Float16>&);

}  // namespace cumulus::sampling_dense
