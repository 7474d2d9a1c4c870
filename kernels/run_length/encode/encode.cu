#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/run_length/element.h"
#include "kernels/run_length/encode/encode.h"
#include "kernels/run_length/encode/tiles.cuh"

namespace cumulus::run_length {
namespace {

static_assert(sizeof(EncodeScratch) <= kBlockAlignment);

/// The encoder's launch on a device.
struct EncodeLaunch {
  int warps;  // of a block, that have chunks
  int threads;
  std::size_t memory_bytes;
  std::int64_t resident_blocks;
};

template <class T>
EncodeLaunch encode_launch(CudaExecutor& executor) {
  int device = 0;
  int max_bytes = 0;
  CUMULUS_CUDA(cudaGetDevice(&device));
  CUMULUS_CUDA(cudaDeviceGetAttribute(&max_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const auto room = (static_cast<std::size_t>(max_bytes) - sizeof(EncodeMemory)) / sizeof(WarpMemory<T>);
  EncodeLaunch launch{};
  launch.warps = std::min(kMaxEncodeWarps, static_cast<int>(room));
  launch.threads = 32 * (launch.warps + kCarryWarps);
  launch.memory_bytes = encode_memory_bytes<T>(launch.warps);
  launch.resident_blocks = resident_blocks(executor, encode_tiles<T>, launch.threads, launch.memory_bytes);
  return launch;
}

template <class T>
void encode_elements(CudaExecutor& executor, const EncodeRunLengthsParams& params,
                     DeviceSpan<const std::byte> elements, const EncodedRuns<Space::kDevice>& runs,
                     EncodeRunLengthsReport* report) {
  const EncodeLaunch launch = encode_launch<T>(executor);
  const std::int64_t tiles = divide_up(params.elements, launch.warps * WarpMemory<T>::kElements);
  const auto scratch = executor.scratch<std::byte>(encode_shared_bytes(params));
  CUMULUS_CUDA(cudaMemsetAsync(scratch.data(), 0xFF,
                               kBlockAlignment + static_cast<std::size_t>(tiles) * sizeof(RunWord::Bits),
                               executor.stream()));
  auto* encode_scratch = reinterpret_cast<EncodeScratch*>(scratch.data());
  // Otherwise a run may be too long for its length, which any block may find: the report stays on the device.
  const bool all_fit = params.format.length_bytes == 8 || params.elements >> 32 == 0;
  auto* view = all_fit ? static_cast<EncodeRunLengthsReport*>(executor.device_view(report)) : nullptr;
  const EncodeArguments<T> arguments{reinterpret_cast<const T*>(elements.data()),
                                     params.elements,
                                     effective_cut(params),
                                     reinterpret_cast<T*>(runs.symbols.data()),
                                     runs.lengths.data(),
                                     params.format.length_bytes == 8,
                                     params.format.form == RunLengthForm::kEnds,
                                     params.max_runs,
                                     runs.first_runs.data(),
                                     params.cut_elements > 0 ? params.cut_elements : params.elements,
                                     tiles,
                                     encode_scratch,
                                     view != nullptr ? view : &encode_scratch->report,
                                     reinterpret_cast<RunWord::Bits*>(scratch.data() + kBlockAlignment)};
  const std::int64_t blocks = std::min(tiles, std::max(launch.resident_blocks, std::int64_t{1}));
  if (!launch_cooperative(executor, encode_tiles<T>, {blocks, launch.threads, launch.memory_bytes},
                          arguments)) {
    CUMULUS_CUDA(cudaErrorCooperativeLaunchTooLarge);
  }
  if (view == nullptr) {
    executor.download({reinterpret_cast<const std::byte*>(&encode_scratch->report), sizeof(*report)},
                      {reinterpret_cast<std::byte*>(report), sizeof(*report)});
  }
}

}  // namespace

void encode(CudaExecutor& executor, const EncodeRunLengthsParams& params,
            DeviceSpan<const std::byte> elements, const EncodedRuns<Space::kDevice>& runs,
            EncodeRunLengthsReport* report) {
  with_element(params.format.element_bytes,
               [&]<class T>(T) { encode_elements<T>(executor, params, elements, runs, report); });
}

}  // namespace cumulus::run_length
