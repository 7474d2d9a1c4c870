#include <cub/block/block_reduce.cuh>

#include "kernels/sampling_table/tuning.h"
#include "kernels/sampling_table/weights/reduction.h"

namespace cumulus::sampling_table {

struct LargerBits {
  __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a > b ? a : b; }
};

struct SumLayers {
  __device__ LayerReduction operator()(LayerReduction a, const LayerReduction& b) const {
    a.add(b);
    return a;
  }
};

template <class T>
struct ReductionArguments {
  DeviceImage<const T> weights;
  WeightRule rule;
  sampling::Projection projection;
  std::uint32_t height;  // of a layer
  std::uint32_t width;
  bool mis_compensation;
  bool uniform_if_all_zero;
  RowReduction* rows;
  WeightAdjustment* adjustments;
};

/// The largest of the threads' values, to every thread.
template <int kThreads>
__device__ std::uint32_t largest_of(std::uint32_t own) {
  using Reduce = cub::BlockReduce<std::uint32_t, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ std::uint32_t shared_largest;
  const std::uint32_t largest = Reduce(storage).Reduce(own, LargerBits{});
  if (threadIdx.x == 0) shared_largest = largest;
  __syncthreads();
  return shared_largest;
}

/// The sum and the largest of each row's weights.
/// owns: block b has row b of all layers.
/// reads: the row's texels, twice: for the exponent, and for the sum.
/// writes: the row's RowReduction.
/// waits for: nothing of other blocks, so that there is no deadlock.
/// source: a block's reductions.
template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads) reduce_rows(ReductionArguments<T> arguments) {
  using Sum = cub::BlockReduce<std::uint64_t, kThreads>;
  __shared__ typename Sum::TempStorage storage;
  const DeviceImage<const T>& weights = arguments.weights;
  const T* texels = weights.data + static_cast<std::int64_t>(blockIdx.x) * weights.row_stride;
  std::uint32_t own = 0;
  for (std::uint32_t x = threadIdx.x; x < arguments.width; x += kThreads)
    own = max(own, load_weight(texels + x * weights.channels, arguments.rule).bits);
  const std::uint32_t largest = largest_of<kThreads>(own);
  const std::uint32_t exponent = row_exponent(largest, arguments.width);
  std::uint64_t sum = 0;
  for (std::uint32_t x = threadIdx.x; x < arguments.width; x += kThreads)
    sum += integer_weight(load_weight(texels + x * weights.channels, arguments.rule).bits, exponent);
  sum = Sum(storage).Sum(sum);
  if (threadIdx.x > 0) return;
  arguments.rows[blockIdx.x] =
      row_reduction(sum, largest, arguments.projection, blockIdx.x % arguments.height, arguments.height);
}

/// How the weights of each layer are changed.
/// owns: block b has layer b.
/// reads: the RowReductions of its rows.
/// writes: the layer's adjustment.
/// waits for: nothing of other blocks, so that there is no deadlock; reduce_rows has ended.
/// source: O. Karlik et al., "MIS Compensation", 2019, for what is taken off.
template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads) find_adjustments(ReductionArguments<T> arguments) {
  using Join = cub::BlockReduce<LayerReduction, kThreads>;
  __shared__ typename Join::TempStorage storage;
  const RowReduction* rows = arguments.rows + static_cast<std::size_t>(blockIdx.x) * arguments.height;
  std::uint32_t own = 0;
  for (std::uint32_t y = threadIdx.x; y < arguments.height; y += kThreads)
    own = max(own, mass_exponent(rows[y], arguments.width));
  const std::uint32_t heaviest = largest_of<kThreads>(own);
  LayerReduction layer;
  for (std::uint32_t y = threadIdx.x; y < arguments.height; y += kThreads)
    layer.add(rows[y], arguments.width, heaviest);
  layer = Join(storage).Reduce(layer, SumLayers{});
  if (threadIdx.x > 0) return;
  arguments.adjustments[blockIdx.x] = adjustment_of(
      layer, arguments.width, heaviest, arguments.mis_compensation, arguments.uniform_if_all_zero);
}

template <class T>
void reduce_weights(CudaExecutor& executor, DeviceImage<const T> weights, const SamplingTableParams& params,
                    DeviceSpan<RowReduction> rows, DeviceSpan<WeightAdjustment> adjustments) {
  constexpr int kThreads = kReductionThreads;
  const ReductionArguments<T> arguments{weights,
                                        weight_rule(params, weights.channels),
                                        params.projection,
                                        static_cast<std::uint32_t>(params.height),
                                        static_cast<std::uint32_t>(params.width),
                                        params.mis_compensation,
                                        params.uniform_if_all_zero,
                                        rows.data(),
                                        adjustments.data()};
  reduce_rows<T, kThreads><<<static_cast<unsigned>(rows.size()), kThreads, 0, executor.stream()>>>(arguments);
  CUMULUS_CUDA(cudaGetLastError());
  find_adjustments<T, kThreads>
      <<<static_cast<unsigned>(adjustments.size()), kThreads, 0, executor.stream()>>>(arguments);
  CUMULUS_CUDA(cudaGetLastError());
}

template void reduce_weights(CudaExecutor&, DeviceImage<const float>, const SamplingTableParams&,
                             DeviceSpan<RowReduction>, DeviceSpan<WeightAdjustment>);
template void reduce_weights(CudaExecutor&, DeviceImage<const std::uint8_t>, const SamplingTableParams&,
                             DeviceSpan<RowReduction>, DeviceSpan<WeightAdjustment>);
template void reduce_weights(CudaExecutor&, DeviceImage<const Float16>, const SamplingTableParams&,
                             DeviceSpan<RowReduction>, DeviceSpan<WeightAdjustment>);

}  // namespace cumulus::sampling_table
