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

template <class T>
void encode_elements(CudaExecutor& executor, const EncodeRunLengthsParams& params,
                     DeviceSpan<const std::byte> elements, const EncodedRuns<Space::kDevice>& runs,
                     EncodeRunLengthsReport* report) {
  const EncodePlan plan = choose_encode(params, executor.numbers());
  static_assert(sizeof(RunWord::Bits) == 16);
  const auto scratch = executor.scratch<std::byte>(kBlockAlignment + plan.status_bytes());
  CUMULUS_CUDA(cudaMemsetAsync(scratch.data(), 0xFF, scratch.bytes(), executor.stream()));
  auto* encode_scratch = reinterpret_cast<EncodeScratch*>(scratch.data());
  // Otherwise a run may be too long for its length, which any block may find: the report stays on the device.
  const bool all_fit = params.format.length_bytes == 8 || params.elements >> 32 == 0;
  auto* view = all_fit ? static_cast<EncodeRunLengthsReport*>(executor.device_view(report)) : nullptr;
  static_assert(sizeof(WarpMemory<T>) == encode_warp_bytes(sizeof(T)));
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
                                     plan.tiles,
                                     encode_scratch,
                                     view != nullptr ? view : &encode_scratch->report,
                                     reinterpret_cast<RunWord::Bits*>(scratch.data() + kBlockAlignment)};
  const std::int64_t resident = resident_blocks(executor, encode_tiles<T>, plan.threads(), plan.shared_bytes);
  const std::int64_t blocks = std::min(plan.tiles, std::max(resident, std::int64_t{1}));
  if (!launch_cooperative(executor, encode_tiles<T>, {blocks, plan.threads(), plan.shared_bytes},
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
