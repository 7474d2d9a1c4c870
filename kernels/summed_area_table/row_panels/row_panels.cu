#include "kernels/summed_area_table/look_back/launch.cuh"
#include "kernels/summed_area_table/row_panels/build.cuh"

namespace cumulus::summed_area_table {
namespace {

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
  constexpr std::size_t kSharedBytes = sizeof(PanelMemory<P>);
  const auto kernel = build_table_in_row_panels<P>;
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, kernel));
  if (compiled.ptxVersion < 80) return false;  // compiled without it
  const CudaExecutor::StatusWords tagged = executor.status_words(2);
  const PanelArguments<P> arguments{.image = image,
                                    .table = table,
                                    .height = job.image.height,
                                    .width = static_cast<std::int32_t>(job.image.width),
                                    .panel_rows = static_cast<std::int32_t>(rows),
                                    .words = tagged.words.data(),
                                    .tag = tagged.tag};
  return launch_cooperative(executor, kernel, {panels, P::kThreads, kSharedBytes}, arguments);
}

}  // namespace

bool build_in_row_panels(CudaExecutor& executor,
                         const TableJob<std::uint8_t, std::uint32_t, Space::kDevice>& job) {
  using Narrow = PanelTraits<kNarrowPanelShape>;
  using Wide = PanelTraits<kWidePanelShape>;
  return job.image.width <= Narrow::kColumns ? launch_row_panels<Narrow>(executor, job)
                                             : launch_row_panels<Wide>(executor, job);
}

}  // namespace cumulus::summed_area_table
