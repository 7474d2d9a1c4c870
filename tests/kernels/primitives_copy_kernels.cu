#include "kernels/primitives/async_copy.cuh"
#include "kernels/primitives/mbarrier.cuh"
#include "kernels/primitives/warp.cuh"
#include "tests/kernels/primitives_kernels.h"
#include "tests/kernels/primitives_memory.cuh"

namespace cumulus::testing {
namespace {

constexpr int kSlots = 2;

struct CopyArguments {
  const float* from;
  float* to;
  int rounds;  // of 32 words
};

// owns: the block, two slots of 32 words. reads: from. writes: to.
// waits for: warp 1 for the copies of warp 0, warp 0 for slots that warp 1 has read.
// Cannot deadlock: both warps are of one block, and each arrives before it waits for the other's next phase.
__global__ void copy_through_slots(const CopyArguments a) {
#if __CUDA_ARCH__ >= 900
  __shared__ float slots[kSlots][32];
  __shared__ Mbarrier copied[kSlots];
  __shared__ Mbarrier taken[kSlots];
  if (threadIdx.x < kSlots) {
    copied[threadIdx.x].init(32);
    taken[threadIdx.x].init(32);
  }
  __syncthreads();
  const int lane = lane_index();
  for (int round = 0; round < a.rounds; ++round) {
    const int slot = round % kSlots;
    const auto phase = static_cast<std::uint32_t>(round / kSlots);
    const int word = round * 32 + lane;
    if (threadIdx.x < 32) {
      if (phase > 0) taken[slot].wait(phase - 1);
      copy_async_word_or_zero(&slots[slot][lane], a.from + word, is_word_there(word));
      copied[slot].arrive_when_copied();
    } else {
      copied[slot].wait(phase);
      // Of another lane of the copying warp: what only the own copies had waited for would be seen here.
      a.to[round * 32 + 31 - lane] = slots[slot][31 - lane];
      taken[slot].arrive();
    }
  }
#endif
}

}  // namespace

std::vector<float> copy_words_through_slots(CudaExecutor& executor, const std::vector<float>& words) {
  const DeviceMemory from = device_copy(executor, words);
  const DeviceMemory to = zeroed(executor, words.size() * sizeof(float));
  const CopyArguments arguments{data_of<float>(from), data_of<float>(to),
                                static_cast<int>(words.size() / 32)};
  copy_through_slots<<<1, 64, 0, executor.stream()>>>(arguments);
  CUMULUS_CUDA(cudaGetLastError());
  return host_copy<float>(executor, to, words.size());
}

}  // namespace cumulus::testing
