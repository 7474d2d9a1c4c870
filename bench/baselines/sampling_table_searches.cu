#include "bench/baselines/sampling_table_searches.h"
#include "kernels/core/cuda_error.h"

namespace cumulus::bench {
namespace {

using sampling::Method;

/// owns: a thread has 64 points.
/// reads: the first row of the table.
/// writes: its sum.
/// waits for: the other lanes of its warp, after each search.
template <Method kMethod>
__global__ void search(const __grid_constant__ sampling::TableView table, std::uint32_t* sums,
                       std::uint32_t threads, std::uint32_t lanes) {
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= threads) return;
  if (threadIdx.x % 32 >= lanes) {
    sums[thread] = 0;
    return;
  }
  const std::uint32_t searching = lanes == 32 ? 0xFFFFFFFFu : (1u << lanes) - 1;
  const sampling::detail::Distribution cells = sampling::detail::row(table, 0);
  std::uint32_t sum = 0;
#pragma unroll 1
  for (std::uint32_t i = 0; i < kSearchesOfThread; ++i) {
    sum += sampling::detail::cell_of_point(kMethod, cells, searched_point(thread, i)).index;
    __syncwarp(searching);  // no lane runs ahead, as none does whose sample the others wait for
  }
  sums[thread] = sum;
}

}  // namespace

void search_cells(CudaExecutor& executor, const sampling::TableHeader& header,
                  DeviceSpan<const std::byte> table, DeviceSpan<std::uint32_t> sums, std::uint32_t lanes) {
  constexpr unsigned kThreads = 256;
  const auto threads = static_cast<std::uint32_t>(sums.size());
  const sampling::TableView view{header, reinterpret_cast<const unsigned char*>(table.data()), 0};
  const auto kernel = [&] {
    switch (header.method) {
      case Method::kRadixForest:
        return search<Method::kRadixForest>;
      case Method::kRadixForest4:
        return search<Method::kRadixForest4>;
      case Method::kBalancedForest:
        return search<Method::kBalancedForest>;
      case Method::kCutpointBinary:
        return search<Method::kCutpointBinary>;
      case Method::kCutpointLinear:
        return search<Method::kCutpointLinear>;
      case Method::kLinearSearch:
        return search<Method::kLinearSearch>;
      case Method::kQuaternaryTree:
        return search<Method::kQuaternaryTree>;
      default:
        return search<Method::kBinarySearch>;
    }
  }();
  kernel<<<(threads + kThreads - 1) / kThreads, kThreads, 0, executor.stream()>>>(view, sums.data(), threads,
                                                                                  lanes);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus::bench
