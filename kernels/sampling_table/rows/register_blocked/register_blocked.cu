#include <cuda_pipeline.h>

#include <algorithm>
#include <type_traits>

#include "kernels/sampling_table/rows/launch.cuh"
#include "kernels/sampling_table/rows/masses.cuh"
#include "kernels/sampling_table/rows/register_blocked/cells.cuh"
#include "kernels/sampling_table/rows/register_blocked/register_blocked.cuh"

namespace cumulus::sampling_dense {
namespace {

using namespace sampling_rows;

extern __shared__ __align__(Slots::kAlignment) std::byte shared_bytes[];

/// What a thread knows of its weights.
struct OwnWeights {
  std::uint32_t bits[kOwn];
  std::uint32_t largest;
  std::uint32_t least;  ///< ~0 where there are none.

  __device__ void find_least() {
    least = ~0u;
#pragma unroll
    for (std::uint32_t k = 0; k < kOwn; k += 2) least = __vimin3_u32(least, bits[k], bits[k + 1]);
  }
};

/// Of a row; calls `meanwhile` while they are on their way.
template <class T, class Meanwhile>
__device__ OwnWeights load_weights(const RowsArguments<T>& arguments, std::uint32_t row, std::uint32_t count,
                                   const Meanwhile& meanwhile) {
  const std::uint32_t first = threadIdx.x * kOwn;
  OwnWeights own = {{}, 0, ~0u};
  if (first < count) {
    own.largest = TexelRun<T>(arguments, row, 0, count).load_own(first, own.bits, meanwhile);
    own.find_least();
  } else {
    meanwhile();
  }
  return own;
}

/// Sends for the weights of a row, single floats, which come to `ahead`.
__device__ inline void send_for_weights(const float* row, std::uint32_t count, std::uint32_t* ahead) {
  const std::uint32_t cell = threadIdx.x / 32 * kWarpCells + threadIdx.x % 32 * kQuad;
#pragma unroll
  for (std::uint32_t q = 0; q < kOwn / kQuad; ++q) {
    if (cell + q * 32 * kQuad < count) {
      __pipeline_memcpy_async(ahead + warp_quad_place(threadIdx.x, q), row + cell + q * 32 * kQuad,
                              sizeof(uint4));
    }
  }
  __pipeline_commit();
}

/// Takes the weights that have been sent for, and sends for those of row `next`, if there is such a row.
__device__ inline OwnWeights take_weights(const RowsArguments<float>& arguments, std::uint32_t row,
                                          std::uint32_t count, std::uint32_t* ahead, std::uint32_t next,
                                          std::uint32_t rows) {
  __pipeline_wait_prior(0);
  __syncwarp();
  const std::uint32_t first = threadIdx.x * kOwn;
  OwnWeights own = {{}, 0, ~0u};
  if (first < count) {
    own.largest = TexelRun<float>(arguments, row, 0, count).take_own(first, ahead, own.bits);
    own.find_least();
  }
  __syncwarp();
  if (next < rows)
    send_for_weights(arguments.weights.data + next * arguments.weights.row_stride, count, ahead);
  return own;
}

/// The rows of all layers: with kAhead a block takes each gridDim.x-th, and the next row's weights come while
/// it builds one and its trees; else a block has one.
template <class T, int kThreads, DenseLookup kLookup, bool kAhead>
__global__ void __launch_bounds__(kThreads, kThreads > 512 ? 1 : 1024 / kThreads)
    build_dense_rows(const __grid_constant__ RowsArguments<T> arguments,
                     const __grid_constant__ sampling_layout::RowTargets targets, std::uint32_t rows) {
  __shared__ float share;  // of the sphere
  const std::uint32_t count = targets.first.count;
  const std::uint32_t guide_size = targets.first.guide_size;
  const DenseOnChip<kThreads, kLookup> chip{shared_bytes};
  std::uint32_t* const ahead = chip.ahead(guide_size);
  if (threadIdx.x == 0) sampling_launch::let_dependent_begin();
  std::uint32_t row = blockIdx.x;
  if constexpr (kAhead) {
    send_for_weights(arguments.weights.data + row * arguments.weights.row_stride, count, ahead);
  }
  const auto share_of = [&](std::uint32_t y) {
    return row_weight(arguments.header, y % arguments.header.height);
  };
  float shares = 0;  // of the thread's of the block's next kThreads rows
  for (std::uint32_t round = 0; row < rows; row += gridDim.x, ++round) {
    const Target target = targets[row];
    if constexpr (kAhead) {
      const std::uint32_t of_thread = row + threadIdx.x * gridDim.x;
      if (round % kThreads == 0 && of_thread < rows) shares = share_of(of_thread);
      if (threadIdx.x == round % kThreads) share = shares;
    } else {
      if (threadIdx.x == kThreads - 1) share = share_of(row);
    }
    const auto clear = [&] {
      if (kLookup == DenseLookup::kTrees && target.method == Method::kRadixForest) {
        clear_nodes<kThreads>(target);
      }
      chip.clear(guide_size);
    };
    OwnWeights weights;
    if constexpr (kAhead) {
      weights = take_weights(arguments, row, count, ahead, row + gridDim.x, rows);
      clear();
    } else {
      weights = load_weights(arguments, row, count, clear);
    }
    const WeightsRange range = range_of_block<kThreads>(weights.largest, weights.least);
    OwnCells own;
    own.weigh(WeightScale(range.exponent), range.all_positive && threadIdx.x * kOwn < count, weights.bits);
    build_dense<kThreads, kLookup>(target, chip, own, range.all_positive, [&](const Tally& all) {
      if (threadIdx.x > 0) return;
      tell_mass(arguments.row_masses[row], {row_mass(all.sum, share), range.exponent, 0});
    });
    if constexpr (!kAhead) return;
  }
}

/// One block a layer: the marginal over its rows, as soon as their masses are known.
template <int kThreads, DenseLookup kLookup>
__global__ void __launch_bounds__(kThreads)
    build_dense_marginals(const __grid_constant__ sampling::TableHeader header, std::byte* table,
                          const RowMass* row_masses, BuildFindings* findings) {
  if (threadIdx.x == 0) sampling_launch::let_dependent_begin();
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
  wait_for_primary_kernel();
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

std::size_t bytes_for(Method method, std::uint32_t count, std::uint32_t guide_size, bool ahead = false) {
  std::size_t bytes = 0;
  with_lookup(method, count, [&](auto threads, auto lookup) {
    bytes = DenseOnChip<decltype(threads)::value, decltype(lookup)::value>::bytes(guide_size, ahead);
  });
  return bytes;
}

bool distribution_fits(const CudaExecutor& executor, Method method, std::uint32_t count,
                       std::uint32_t guide_size, bool ahead = false) {
  constexpr std::size_t kBesides = Slots::kAlignment;  // what the kernels have in shared memory anyhow
  return method != Method::kBalancedForest && dense_fits(count, guide_size) &&
         bytes_for(method, count, guide_size, ahead) + kBesides <=
             sampling_launch::most_shared_bytes(executor);
}

/// Whether rows are best built by blocks that take one after another: where a multiprocessor has room for one
/// block only, there is nothing else that it could do while that waits for weights.
template <class T>
bool weights_come_ahead(const CudaExecutor& executor, const RowsArguments<T>& arguments) {
  const sampling::TableHeader& header = arguments.header;
  const DeviceImage<const T>& weights = arguments.weights;
  return header.width > kMostDenseCells / 2 && weights.channels == 1 && weights.row_stride % kQuad == 0 &&
         reinterpret_cast<std::uintptr_t>(weights.data) % sizeof(uint4) == 0 &&
         distribution_fits(executor, header.method, header.width, header.row_guide_size, true);
}

unsigned multiprocessors(const CudaExecutor& executor) {
  int number = 0;
  CUMULUS_CUDA(cudaDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, executor.device().ordinal()));
  return static_cast<unsigned>(number);
}

template <class T, int kThreads, DenseLookup kLookup, bool kAhead>
void launch_rows(CudaExecutor& executor, const RowsArguments<T>& arguments, std::uint32_t blocks) {
  const sampling::TableHeader& header = arguments.header;
  sampling_launch::launch<build_dense_rows<T, kThreads, kLookup, kAhead>>(
      executor, {blocks, kThreads, DenseOnChip<kThreads, kLookup>::bytes(header.row_guide_size, kAhead)},
      false, arguments, sampling_layout::row_targets(header, arguments.table), header.layers * header.height);
}

template <class T, int kThreads, DenseLookup kLookup>
void launch_rows(CudaExecutor& executor, const RowsArguments<T>& arguments) {
  const std::uint32_t rows = arguments.header.layers * arguments.header.height;
  if constexpr (std::is_same_v<T, float> && kThreads * kOwn == kMostDenseCells &&
                kLookup == DenseLookup::kTrees) {
    if (weights_come_ahead(executor, arguments)) {
      const std::uint32_t blocks = std::min(rows, multiprocessors(executor));
      return launch_rows<T, kThreads, kLookup, true>(executor, arguments, blocks);
    }
  }
  launch_rows<T, kThreads, kLookup, false>(executor, arguments, rows);
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
  with_lookup(arguments.header.method, arguments.header.width, [&](auto threads, auto lookup) {
    launch_rows<T, decltype(threads)::value, decltype(lookup)::value>(executor, arguments);
  });
}

void build_marginals(CudaExecutor& executor, const sampling::TableHeader& header, std::byte* table,
                     const RowMass* row_masses, BuildFindings* findings, bool early) {
  const std::size_t bytes = bytes_for(header.method, header.height, header.marginal_guide_size);
  with_lookup(header.method, header.height, [&](auto threads, auto lookup) {
    constexpr int kThreads = decltype(threads)::value;
    sampling_launch::launch<build_dense_marginals<kThreads, decltype(lookup)::value>>(
        executor, {header.layers, kThreads, bytes}, early, header, table, row_masses, findings);
  });
}

template void build_rows(CudaExecutor&, const RowsArguments<float>&);
template void build_rows(CudaExecutor&, const RowsArguments<std::uint8_t>&);
template void build_rows(CudaExecutor&, const RowsArguments<Float16>&);

}  // namespace cumulus::sampling_dense
