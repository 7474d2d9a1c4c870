#include <variant>

#include "bench/baselines/sampling_table_draws.h"
#include "bench/baselines/sampling_table_retired.cuh"
#include "kernels/sampling_table/draw/samples.cuh"
#include "kernels/sampling_table/method.h"

namespace cumulus::bench {
namespace {

using sampling::Method;
using namespace sampling_table;

constexpr unsigned number_of(Search search) { return static_cast<unsigned>(search); }

/// By number, since nvcc 13.0 writes code that does not compile where a kernel has an enumerator for an
/// argument.
template <unsigned kSearch>
struct BySearch {
  __device__ explicit BySearch(const TableView& /*table*/) {}
  __device__ sampling::detail::Located operator()(const Distribution& cells, std::uint32_t x) const {
    if (cells.count == 1) return sampling::detail::locate_in_one(x);
    return sampling::detail::locate_in_cell(cell_of_point<Search{kSearch}>(cells, x), x);
  }
};
/// The library has no kernel for this method alone.
struct ByBisection {
  __device__ explicit ByBisection(const TableView& /*table*/) {}
  __device__ sampling::detail::Located operator()(const Distribution& cells, std::uint32_t x) const {
    return sampling::detail::locate(Method::kBinarySearch, cells, x);
  }
};

/// Maps have directions, lines none. What finds columns in shared memory is the same for all methods.
template <class Locate>
void draw(CudaExecutor& executor, const DrawPlan& plan, const sampling::detail::Rows& rows,
          const DrawLaunch<GivenPoints>& launch) {
  const ConstantDraws<Locate, true, GivenPoints> map(executor, launch, rows);
  const ConstantDraws<Locate, false, GivenPoints> line(executor, launch, rows);
  const bool directions = launch.arrays.direction != nullptr;
  if (const auto* ready = std::get_if<ReadyRowsPlan>(&plan); ready != nullptr && directions) {
    return map.template draw_many<kReadyRows>(ready->shared_bytes);
  }
  if (const auto* refined = std::get_if<RefinedRowsPlan>(&plan); refined != nullptr && directions) {
    return map.template draw_many<kRefinedRows>(refined->shared_bytes, refined->guide);
  }
  if (std::holds_alternative<SingleRowPlan>(plan) && !directions)
    return line.template draw_many<kSingleRow>(0);
  draw_by<GivenPoints>(executor, plan, launch);
}

constexpr int kHashThreads = 256;

__device__ std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 31) * 0x7FB5D329728EA185u;
  return x ^ x >> 27;
}

__global__ void add_words(const float* words, std::uint64_t count, unsigned long long* sum) {
  std::uint64_t of_thread = 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kHashThreads;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kHashThreads + threadIdx.x; i < count; i += stride) {
    of_thread += mixed(i << 32 ^ __float_as_uint(words[i]));
  }
  atomicAdd(sum, static_cast<unsigned long long>(of_thread));
}

}  // namespace

void draw_by_own_kernel(CudaExecutor& executor, Search search, DeviceSpan<const std::uint32_t> nodes,
                        const DrawLaunch<GivenPoints>& launch) {
  const sampling::TableHeader& header = launch.table.header;
  const bool directions = launch.arrays.direction != nullptr;
  const DrawPlan plan = choose(DrawJob{header, launch.count, directions}, executor.device().numbers());
  const auto rows = rows_with(launch.table, search, reinterpret_cast<const std::byte*>(nodes.data()));
  switch (search) {
    case Search::kRadixForest4:
      return draw<BySearch<number_of(Search::kRadixForest4)>>(executor, plan, rows, launch);
    case Search::kQuaternaryTree:
      return draw<BySearch<number_of(Search::kQuaternaryTree)>>(executor, plan, rows, launch);
    case Search::kLinearSearch:
      return draw<BySearch<number_of(Search::kLinearSearch)>>(executor, plan, rows, launch);
    case Search::kCutpointLinear:
      return draw<BySearch<number_of(Search::kCutpointLinear)>>(executor, plan, rows, launch);
    case Search::kOfTable:
      break;
  }
  if (header.method == Method::kBinarySearch) return draw<ByBisection>(executor, plan, rows, launch);
  draw_by<GivenPoints>(executor, plan, launch);
}

std::uint64_t hash_of(CudaExecutor& executor, DeviceSpan<const float> words) {
  const DeviceMemory memory = executor.allocate(sizeof(unsigned long long));
  auto* const sum = reinterpret_cast<unsigned long long*>(memory.data());
  CUMULUS_CUDA(cudaMemsetAsync(sum, 0, sizeof(*sum), executor.stream()));
  add_words<<<1024, kHashThreads, 0, executor.stream()>>>(words.data(), words.size(), sum);
  CUMULUS_CUDA(cudaGetLastError());
  unsigned long long hash = 0;
  executor.download({memory.data(), sizeof(hash)}, {reinterpret_cast<std::byte*>(&hash), sizeof(hash)});
  executor.synchronize();
  return hash;
}

}  // namespace cumulus::bench
