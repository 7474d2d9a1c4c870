#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"
#include "kernels/recursive_filter/check.h"
#include "kernels/recursive_filter/gpu/elements.cuh"
#include "kernels/recursive_filter/recursive_filter.h"
#include "kernels/recursive_filter/tuning.h"

namespace cumulus {
namespace {

using namespace recursive_filter;

/// Owns: a thread one element. Reads: it and its addend. Writes: it.
/// Waits for: nothing of other threads, so that it cannot deadlock. Source: none, a map.
template <class Real>
__global__ void __launch_bounds__(kAddThreads)
    add_elements(SourceElements addend, Real weight, TargetElements values, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kAddThreads + threadIdx.x;
  if (i >= count) return;
  const Real value = read_only(values).template load<Real>(i);
  values.store(i, addend.template load<Real>(i) + weight * value);
}

}  // namespace

template <class T>
void add_scaled(CudaExecutor& executor, DeviceSpan<const T> addend, double weight, DeviceSpan<T> values) {
  check_addend(addend, values);
  executor.check_interrupt();
  executor.bind_thread();
  const auto count = static_cast<std::int64_t>(values.size());
  if (count == 0) return;
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  add_elements<Real>
      <<<static_cast<unsigned int>(divide_up(count, kAddThreads)), kAddThreads, 0, executor.stream()>>>(
          source_elements(addend.data()), static_cast<Real>(weight), target_elements(values.data()), count);
  CUMULUS_CUDA(cudaGetLastError());
}

#define CUMULUS_INSTANTIATE(T) \
  template void add_scaled<T>(CudaExecutor&, DeviceSpan<const T>, double, DeviceSpan<T>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

}  // namespace cumulus
