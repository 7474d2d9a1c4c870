#include "kernels/summed_area_table/gpu/launch_resident.cuh"
#include "kernels/summed_area_table/look_back/arguments.cuh"
#include "kernels/summed_area_table/strips/build.cuh"
#include "kernels/summed_area_table/strips/strips.h"

namespace cumulus::summed_area_table {
namespace {

template <StripForm kForm, class Input, class Sum>
void launch_strips(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job,
                   const StripsPlan& plan) {
  using P = StripTraits<Input, Sum, strip_shape(sizeof(Input), kForm)>;
  static_assert(sizeof(StripMemory<P>) == shared_bytes(strip_shape(sizeof(Input), kForm), sizeof(Input)));
  static_assert(sizeof(StripMemory<P>) <= 227 * 1024, "what a block of compute capability 9.0 may have");
  static_assert(2 * std::int64_t{StripWords<P>::kBands} * P::kRows * P::kLaneStrips * kStripsAtOnce <=
                static_cast<std::int64_t>(CudaExecutor::kStatusWords));
  const CudaExecutor::StatusWords tagged = executor.status_words(static_cast<std::uint32_t>(plan.bands));
  const StripArguments<P> arguments{
      .image = planes_of<P>(job.image.data, job.image, 0),
      .table = planes_of<P>(job.sums.data, job.sums, 0),
      .height = job.image.height,
      .width = job.image.width,
      .bands = static_cast<std::uint32_t>(plan.bands),
      .words = {tagged.words.data(), tagged.tag, static_cast<std::uint32_t>(plan.strips),
                static_cast<std::uint32_t>(divide_up(plan.strips, kStripsAtOnce))}};
  launch_resident(executor, build_table_in_strips<P>,
                  {plan.blocks(), P::kThreads, sizeof(StripMemory<P>), P::kBlocksPerStrip}, arguments);
}

}  // namespace

template <class Input, class Sum>
void build_in_strips(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job,
                     const StripsPlan& plan) {
  if (plan.form == kStripForms[0]) return launch_strips<kStripForms[0]>(executor, job, plan);
  if (plan.form == kStripForms[1]) return launch_strips<kStripForms[1]>(executor, job, plan);
  launch_strips<kStripForms[2]>(executor, job, plan);
}

template void build_in_strips(CudaExecutor&, const TableJob<std::uint8_t, std::uint32_t, Space::kDevice>&,
                              const StripsPlan&);
template void build_in_strips(CudaExecutor&, const TableJob<float, float, Space::kDevice>&,
                              const StripsPlan&);

}  // namespace cumulus::summed_area_table
