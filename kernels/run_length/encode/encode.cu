#include <cuda_runtime.h>

#include <algorithm>
#include <variant>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/run_length/element.h"
#include "kernels/run_length/encode/encode.h"
#include "kernels/run_length/encode/small.cuh"
#include "kernels/run_length/encode/tiles.cuh"

namespace cumulus::run_length {
namespace {

static_assert(sizeof(EncodeScratch) <= kBlockAlignment);

/// One call's job.
template <class T>
struct EncodeJob {
  const EncodeRunLengthsParams& params;
  DeviceSpan<const std::byte> elements;
  const EncodedRuns<Space::kDevice>& runs;
  EncodeRunLengthsReport* report;

  /// `scratch` has the report, then the status words. `view` is the caller's report, or null where it stays
  /// on the device.
  EncodeArguments<T> arguments(DeviceSpan<std::byte> scratch, std::int64_t tiles,
                               EncodeRunLengthsReport* view) const {
    auto* encode_scratch = reinterpret_cast<EncodeScratch*>(scratch.data());
    static_assert(sizeof(RunWord::Bits) == 16);
    return {reinterpret_cast<const T*>(elements.data()),
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
  }
  void download_report(CudaExecutor& executor, DeviceSpan<std::byte> scratch) const {
    executor.download({scratch.data(), sizeof(*report)},
                      {reinterpret_cast<std::byte*>(report), sizeof(*report)});
  }
};

template <class T>
auto small_kernel(const EncodeSmallPlan& plan) {
  constexpr int kAll = kSmallClusters;
  constexpr int kHalf = kSmallClusters / 2;
  const int clusters = plan.blocks / kSmallBlocks;
  if (clusters > kHalf)
    return plan.rows <= 1 ? encode_small<T, 1, kAll> : encode_small<T, kClusterRows, kAll>;
  if (clusters > 1) return encode_small<T, 1, kHalf>;
  return plan.rows <= 1   ? encode_small<T, 1, 1>
         : plan.rows <= 2 ? encode_small<T, 2, 1>
         : plan.rows <= 4 ? encode_small<T, 4, 1>
                          : encode_small<T, kSmallRows, 1>;
}

template <class T>
void encode_with(CudaExecutor& executor, const EncodeSmallPlan& plan, const EncodeJob<T>& job) {
  const auto scratch = executor.scratch<std::byte>(kBlockAlignment);
  auto* view = static_cast<EncodeRunLengthsReport*>(executor.device_view(job.report));
  const LaunchShape shape(std::int64_t{plan.blocks}, kSmallThreads, 0, std::min(plan.blocks, kSmallBlocks));
  launch_cluster(executor.stream(), small_kernel<T>(plan), shape, job.arguments(scratch, 0, view));
  if (view == nullptr) job.download_report(executor, scratch);
}

template <class T>
void encode_with(CudaExecutor& executor, const EncodeTilesPlan& plan, const EncodeJob<T>& job) {
  const auto scratch = executor.scratch<std::byte>(kBlockAlignment + plan.status_bytes());
  CUMULUS_CUDA(cudaMemsetAsync(scratch.data(), 0xFF, scratch.bytes(), executor.stream()));
  // Otherwise a run may be too long for its length, which any block may find: the report stays on the device.
  const bool all_fit = job.params.format.length_bytes == 8 || job.params.elements >> 32 == 0;
  auto* view = all_fit ? static_cast<EncodeRunLengthsReport*>(executor.device_view(job.report)) : nullptr;
  static_assert(sizeof(WarpMemory<T>) == encode_warp_bytes(sizeof(T)));
  const std::int64_t resident = resident_blocks(executor, encode_tiles<T>, plan.threads(), plan.shared_bytes);
  const std::int64_t blocks = std::min(plan.tiles, std::max(resident, std::int64_t{1}));
  if (!launch_cooperative(executor, encode_tiles<T>, {blocks, plan.threads(), plan.shared_bytes},
                          job.arguments(scratch, plan.tiles, view))) {
    CUMULUS_CUDA(cudaErrorCooperativeLaunchTooLarge);
  }
  if (view == nullptr) job.download_report(executor, scratch);
}

}  // namespace

void encode(CudaExecutor& executor, const EncodeRunLengthsParams& params,
            DeviceSpan<const std::byte> elements, const EncodedRuns<Space::kDevice>& runs,
            EncodeRunLengthsReport* report) {
  const EncodePlan plan = choose_encode(params, executor.numbers());
  with_element(params.format.element_bytes, [&]<class T>(T) {
    const EncodeJob<T> job{params, elements, runs, report};
    std::visit([&](const auto& method) { encode_with(executor, method, job); }, plan);
  });
}

}  // namespace cumulus::run_length
