#include "kernels/summed_area_table/gpu/launch_resident.cuh"
#include "kernels/summed_area_table/look_back/arguments.cuh"
#include "kernels/summed_area_table/row_panels/build.cuh"
#include "kernels/summed_area_table/row_panels/row_panels.h"

namespace cumulus::summed_area_table {
namespace {

template <PanelShape kShape, class Job>
void launch_row_panels(CudaExecutor& executor, const Job& job, const RowPanelsPlan& plan) {
  using P = PanelTraits<kShape>;
  static_assert(sizeof(PanelMemory<P>) == shared_bytes(kShape));
  const CudaExecutor::StatusWords tagged = executor.status_words(2);
  const PanelArguments<P> arguments{.image = planes_of<P>(job.image.data, job.image, 0),
                                    .table = planes_of<P>(job.sums.data, job.sums, 0),
                                    .height = job.image.height,
                                    .width = static_cast<std::int32_t>(job.image.width),
                                    .panel_rows = static_cast<std::int32_t>(plan.panel_rows),
                                    .words = tagged.words.data(),
                                    .tag = tagged.tag};
  launch_resident(executor, build_table_in_row_panels<P>, {plan.panels, P::kThreads, sizeof(PanelMemory<P>)},
                  arguments);
}

}  // namespace

void build_in_row_panels(CudaExecutor& executor,
                         const TableJob<std::uint8_t, std::uint32_t, Space::kDevice>& job,
                         const RowPanelsPlan& plan) {
  if (plan.panel.segments == kNarrowPanelShape.segments)
    return launch_row_panels<kNarrowPanelShape>(executor, job, plan);
  launch_row_panels<kWidePanelShape>(executor, job, plan);
}

}  // namespace cumulus::summed_area_table
