#include <type_traits>

#include "kernels/sampling_table/sampling_table_dense.cuh"
#include "kernels/sampling_table/sampling_table_dense_rows.cuh"
#include "kernels/sampling_table/sampling_table_launch.cuh"

namespace cumulus::sampling_dense {
namespace {

using namespace sampling_rows;

extern __shared__ uint4 shared_quads[];

/// One block a row of any layer.
template <class T, int kThreads, DenseLookup kLookup>
__global__ void __launch_bounds__(kThreads, kThreads > 512 ? 1 : 1024 / kThreads)
    build_dense_rows(const __grid_constant__ RowsArguments<T> arguments,
                     const __grid_constant__ sampling_layout::RowTargets targets) {
  const std::uint32_t row = blockIdx.x;
  const Target target = targets[row];
  const std::uint32_t guide_size = kLookup == DenseLookup::kNone ? 0 : target.guide_size;
  const DenseOnChip<kThreads> dense(reinterpret_cast<std::uint32_t*>(shared_quads), kLookup);
  clear_dense<kThreads, kLookup>(dense, guide_size);
  const std::uint32_t first = threadIdx.x * kOwn;
  std::uint32_t bits[kOwn] = {};
  std::uint32_t largest = 0;
  if (first < target.count) {
    const TexelRun<T> texels(arguments, row, 0, target.count);
    largest = texels.load_own(first, bits);
  }
  const std::uint32_t exponent = row_exponent(largest_of_block<kThreads / 32>(largest), target.count);
  build_dense<kThreads, kLookup>(target, dense, exponent, bits, [&](const Tally& all) {
    if (threadIdx.x > 0) return;
    arguments.row_masses[row] = {row_mass(all.sum, 1.0F), exponent, 0};
    sampling_launch::tell_dependent(&arguments.findings->rows_known);
  });
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

std::size_t bytes_for(const sampling::TableHeader& header) {
  std::size_t bytes = 0;
  with_threads(header.width, [&](auto threads) {
    bytes = DenseOnChip<decltype(threads)::value>::bytes(header.row_guide_size, lookup_of(header.method));
  });
  return bytes;
}

}  // namespace

bool fit(const CudaExecutor& executor, const sampling::TableHeader& header) {
  constexpr std::size_t kBesides = 4096;  // what the kernels have in shared memory anyhow
  return header.method != Method::kBalancedForest && dense_fits(header.width, header.row_guide_size) &&
         bytes_for(header) + kBesides <= sampling_launch::most_shared_bytes(executor);
}

bool has_lookup(Method method) { return lookup_of(method) != DenseLookup::kNone; }

template <class T>
void build_rows(CudaExecutor& executor, const RowsArguments<T>& arguments) {
  const sampling::TableHeader& header = arguments.header;
  const std::size_t bytes = bytes_for(header);
  const DenseLookup lookup = lookup_of(header.method);
  with_threads(header.width, [&](auto threads) {
    constexpr int kThreads = decltype(threads)::value;
    const auto kernel = lookup == DenseLookup::kTrees ? build_dense_rows<T, kThreads, DenseLookup::kTrees>
                        : lookup == DenseLookup::kCutpoints
                            ? build_dense_rows<T, kThreads, DenseLookup::kCutpoints>
                            : build_dense_rows<T, kThreads, DenseLookup::kNone>;
    sampling_launch::launch(executor, kernel, header.layers * header.height, kThreads, bytes, false,
                            arguments, sampling_layout::row_targets(header, arguments.table));
  });
}

template void build_rows(CudaExecutor&, const RowsArguments<float>&);
template void build_rows(CudaExecutor&, const RowsArguments<std::uint8_t>&);
template void build_rows(CudaExecutor&, const RowsArguments<Float16>&);

}  // namespace cumulus::sampling_dense
