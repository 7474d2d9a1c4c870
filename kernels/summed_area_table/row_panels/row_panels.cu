#include "kernels/summed_area_table/look_back/launch.cuh"
#include "kernels/summed_area_table/row_panels/build.cuh"

namespace cumulus::summed_area_table {
namespace {

/// Shared memory that a block can have.
std::int64_t max_shared_bytes(const CudaExecutor& executor) {
  int bytes = 0;
  CUMULUS_CUDA(
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, executor.device().ordinal()));
  return bytes;
}

template <class P, class Job>
bool launch_row_panels(CudaExecutor& executor, const Job& job) {
  const auto image = planes_of<P>(job.image.data, job.image, 0);
  const auto table = planes_of<P>(job.sums.data, job.sums, 0);
  const std::int64_t rows = divide_up(job.image.height, executor.device().multiprocessors());
  const std::int64_t panels = divide_up(job.image.height, rows);
  if (job.image.channels != 1 || !image.aligned || !table.aligned || job.image.width % 4 != 0 ||
      job.image.width > P::kColumns || rows > kPanelRows || panels > kPanelGroups * kPanelsOfThread ||
      panels * job.image.width > static_cast<std::int64_t>(CudaExecutor::kStatusWords)) {
    return false;
  }
  const std::int64_t shared_bytes = panel_shared_bytes<P>(rows, job.image.width);
  const std::int64_t max_bytes = max_shared_bytes(executor);
  const auto kernel = build_table_in_row_panels<P>;
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, kernel));
  if (compiled.ptxVersion < 80 || shared_bytes > max_bytes) return false;  // compiled without it, or too much
  // As much for every launch: another thread's, of another image, may be between this call and its own.
  CUMULUS_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(max_bytes)));
  const CudaExecutor::StatusWords tagged = executor.status_words(2);
  const PanelArguments<P> arguments{.image = image,
                                    .table = table,
                                    .height = job.image.height,
                                    .width = static_cast<std::int32_t>(job.image.width),
                                    .panel_rows = static_cast<std::int32_t>(rows),
                                    .words = tagged.words.data(),
                                    .tag = tagged.tag};
  return launch_cooperative(executor, kernel, {panels, P::kThreads, static_cast<std::size_t>(shared_bytes)},
                            arguments);
}

template <class Input, class Sum>
bool launch_narrow_or_wide(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job) {
  using Narrow = PanelTraits<Input, Sum, panel_shape(sizeof(Input), 2048)>;
  using Wide = PanelTraits<Input, Sum, panel_shape(sizeof(Input), 4096)>;
  return job.image.width <= Narrow::kColumns ? launch_row_panels<Narrow>(executor, job)
                                             : launch_row_panels<Wide>(executor, job);
}

}  // namespace

bool build_in_row_panels(CudaExecutor& executor,
                         const TableJob<std::uint8_t, std::uint32_t, Space::kDevice>& job) {
  return launch_narrow_or_wide(executor, job);
}

bool build_in_row_panels(CudaExecutor& executor, const TableJob<float, float, Space::kDevice>& job) {
  return launch_narrow_or_wide(executor, job);
}

}  // namespace cumulus::summed_area_table
