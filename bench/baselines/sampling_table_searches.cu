#include "bench/baselines/sampling_table_retired.cuh"
#include "bench/baselines/sampling_table_searches.h"
#include "kernels/core/cuda_error.h"

namespace cumulus::bench {
namespace {

using sampling::Method;

constexpr unsigned number_of(Method method) { return static_cast<unsigned>(method); }
constexpr unsigned number_of(Search search) { return static_cast<unsigned>(search); }

// By number, since nvcc 13.0 writes code that does not compile where a kernel has an enumerator for an
// argument.
template <unsigned kMethod>
struct OfTable {
  __device__ static Cell find(const Distribution& cells, std::uint32_t x) {
    return sampling::detail::cell_of_point(Method{kMethod}, cells, x);
  }
};
template <unsigned kSearch>
struct Retired {
  __device__ static Cell find(const Distribution& cells, std::uint32_t x) {
    return cell_of_point<Search{kSearch}>(cells, x);
  }
};

/// owns: a thread has 64 points.
/// reads: the first row of the table.
/// writes: its sum.
/// waits for: the other lanes of its warp that search, after each search.
template <class Finder>
__global__ void search(const __grid_constant__ Distribution cells, std::uint32_t* sums, std::uint32_t threads,
                       std::uint32_t lanes) {
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= threads) return;
  if (threadIdx.x % 32 >= lanes) {
    sums[thread] = 0;
    return;
  }
  const std::uint32_t searching = lanes == 32 ? 0xFFFFFFFFu : (1u << lanes) - 1;
  std::uint32_t sum = 0;
#pragma unroll 1
  for (std::uint32_t i = 0; i < kSearchesOfThread; ++i) {
    sum += Finder::find(cells, searched_point(thread, i)).index;
    __syncwarp(searching);  // no lane runs ahead, as none does whose sample the others wait for
  }
  sums[thread] = sum;
}

using Kernel = void (*)(Distribution, std::uint32_t*, std::uint32_t, std::uint32_t);

Kernel kernel_of(Method method) {
  switch (method) {
    case Method::kRadixForest:
      return search<OfTable<number_of(Method::kRadixForest)>>;
    case Method::kBalancedForest:
      return search<OfTable<number_of(Method::kBalancedForest)>>;
    case Method::kCutpointBinary:
      return search<OfTable<number_of(Method::kCutpointBinary)>>;
    default:
      return search<OfTable<number_of(Method::kBinarySearch)>>;
  }
}

Kernel kernel_of(const SearchJob& job) {
  switch (job.search) {
    case Search::kRadixForest4:
      return search<Retired<number_of(Search::kRadixForest4)>>;
    case Search::kQuaternaryTree:
      return search<Retired<number_of(Search::kQuaternaryTree)>>;
    case Search::kLinearSearch:
      return search<Retired<number_of(Search::kLinearSearch)>>;
    case Search::kCutpointLinear:
      return search<Retired<number_of(Search::kCutpointLinear)>>;
    case Search::kOfTable:
      break;
  }
  return kernel_of(job.table.header.method);
}

}  // namespace

void search_cells(CudaExecutor& executor, const SearchJob& job, DeviceSpan<std::uint32_t> sums) {
  constexpr unsigned kThreads = 256;
  const auto threads = static_cast<std::uint32_t>(sums.size());
  const auto rows = rows_with(job.table, job.search, reinterpret_cast<const std::byte*>(job.nodes.data()));
  kernel_of(job)<<<(threads + kThreads - 1) / kThreads, kThreads, 0, executor.stream()>>>(
      rows[0], sums.data(), threads, job.lanes);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus::bench
