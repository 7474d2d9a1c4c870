#include <variant>

#include "bench/baselines/sampling_table_draws.h"
#include "kernels/sampling_table/draw/draw_points.cuh"
#include "kernels/sampling_table/method.h"

namespace cumulus::bench {
namespace {

using sampling::Method;
using namespace sampling_table;

/// A number, since nvcc 13.0 writes code that does not compile where a kernel has an enumerator for an
/// argument.
template <unsigned kMethod>
struct ByKnownMethod {
  __device__ explicit ByKnownMethod(const TableView& /*table*/) {}
  __device__ sampling::detail::Located operator()(const Distribution& cells, std::uint32_t x) const {
    return sampling::detail::locate(Method{kMethod}, cells, x);
  }
};

/// Maps have directions, lines none.
template <unsigned kMethod>
void draw(CudaExecutor& executor, const DrawPlan& plan, const DrawLaunch<GivenPoints>& launch) {
  using Locate = ByKnownMethod<kMethod>;
  const auto rows = sampling::detail::rows_of(launch.table, launch.table.header.method);
  const ConstantDraws<Locate, true, GivenPoints> map(executor, launch, rows);
  const ConstantDraws<Locate, false, GivenPoints> line(executor, launch, rows);
  if (launch.arrays.direction == nullptr && !std::holds_alternative<SingleRowPlan>(plan)) {
    return draw_by<GivenPoints>(executor, plan, launch);
  }
  if (const auto* ready = std::get_if<ReadyRowsPlan>(&plan)) {
    return map.template draw_many<kReadyRows>(ready->shared_bytes);
  }
  if (const auto* refined = std::get_if<RefinedRowsPlan>(&plan)) {
    return map.template draw_many<kRefinedRows>(refined->shared_bytes, refined->guide);
  }
  if (std::holds_alternative<SingleRowPlan>(plan)) return line.template draw_many<kSingleRow>(0);
  draw_by<GivenPoints>(executor, plan, launch);  // the same kernel for all methods
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

void draw_by_own_kernel(CudaExecutor& executor, const DrawLaunch<GivenPoints>& launch) {
  const sampling::TableHeader& header = launch.table.header;
  const bool directions = launch.arrays.direction != nullptr;
  const DrawPlan plan = choose(DrawJob{header, launch.count, directions}, executor.device().numbers());
  switch (header.method) {
    case Method::kRadixForest4:
      return draw<static_cast<unsigned>(Method::kRadixForest4)>(executor, plan, launch);
    case Method::kBalancedForest:
      return draw<static_cast<unsigned>(Method::kBalancedForest)>(executor, plan, launch);
    case Method::kCutpointLinear:
      return draw<static_cast<unsigned>(Method::kCutpointLinear)>(executor, plan, launch);
    case Method::kBinarySearch:
      return draw<static_cast<unsigned>(Method::kBinarySearch)>(executor, plan, launch);
    case Method::kQuaternaryTree:
      return draw<static_cast<unsigned>(Method::kQuaternaryTree)>(executor, plan, launch);
    case Method::kLinearSearch:
      return draw<static_cast<unsigned>(Method::kLinearSearch)>(executor, plan, launch);
    default:
      return draw_by<GivenPoints>(executor, plan, launch);
  }
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
