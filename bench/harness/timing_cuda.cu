#include <cuda_runtime.h>

#include "bench/harness/timing.h"
#include "kernels/core/cuda_error.h"

namespace cumulus::bench {
namespace {

/// Waits until the host writes to `released`, at most 50 ms: a run that waits for the device would never come
/// back.
__global__ void hold(const volatile int* released) {
  constexpr long long kMostNanoseconds = 50'000'000;
  long long begin = 0;
  long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    __nanosleep(200);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (*released == 0 && now - begin < kMostNanoseconds);
}

/// While it lives, what is put on the executor's stream does not start. Its end waits for the stream.
class StreamHold {
 public:
  explicit StreamHold(CudaExecutor& executor) : executor_(executor), flag_(allocate_pinned(sizeof(int))) {
    *released() = 0;
    hold<<<1, 1, 0, executor.stream()>>>(released());
    CUMULUS_CUDA(cudaGetLastError());
  }
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;
  ~StreamHold() {
    *released() = 1;
    (void)cudaStreamSynchronize(executor_.stream());  // an error here is reported by the next call
  }

 private:
  volatile int* released() const { return flag_.as<volatile int>(1).data(); }

  CudaExecutor& executor_;
  HostMemory flag_;
};

__global__ void copy_words(const uint4* __restrict__ from, uint4* __restrict__ to, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i];
}

__global__ void compare_bytes(const std::byte* a, const std::byte* b, std::size_t count, int* differ) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count && a[i] != b[i]) *differ = 1;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

double time_runs(CudaExecutor& executor, int count, const std::function<void()>& run) {
  executor.bind_thread();
  CudaEvent begin;
  CudaEvent end;
  {
    const StreamHold held(executor);
    begin.record(executor.stream());
    for (int i = 0; i < count; ++i) run();
    end.record(executor.stream());
  }
  executor.synchronize();
  return static_cast<double>(end.milliseconds_since(begin)) * 1e-3;
}

void copy(CudaExecutor& executor, DeviceSpan<const std::byte> from, DeviceSpan<std::byte> to) {
  constexpr unsigned int kThreads = 256;
  const std::size_t words = from.size() / sizeof(uint4);
  copy_words<<<static_cast<unsigned int>((words + kThreads - 1) / kThreads), kThreads, 0,
               executor.stream()>>>(reinterpret_cast<const uint4*>(from.data()),
                                    reinterpret_cast<uint4*>(to.data()), words);
  CUMULUS_CUDA(cudaGetLastError());
}

bool equal_bytes(CudaExecutor& executor, DeviceSpan<const std::byte> a, DeviceSpan<const std::byte> b) {
  constexpr unsigned int kThreads = 256;
  if (a.size() != b.size()) return false;
  if (a.empty()) return true;
  const HostMemory memory = allocate_pinned(sizeof(int));
  int* differ = memory.as<int>(1).data();
  *differ = 0;
  compare_bytes<<<static_cast<unsigned int>((a.size() + kThreads - 1) / kThreads), kThreads, 0,
                  executor.stream()>>>(a.data(), b.data(), a.size(), differ);
  CUMULUS_CUDA(cudaGetLastError());
  executor.synchronize();
  return *differ == 0;
}

std::string describe(const CudaExecutor& executor) {
  int driver = 0;
  int runtime = 0;
  CUMULUS_CUDA(cudaDriverGetVersion(&driver));
  CUMULUS_CUDA(cudaRuntimeGetVersion(&runtime));
  return "cuda: " + executor.device().model() + ", driver for CUDA " + version_text(driver) + ", runtime " +
         version_text(runtime);
}

}  // namespace cumulus::bench
