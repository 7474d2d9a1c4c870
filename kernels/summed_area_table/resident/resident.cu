#include "kernels/summed_area_table/gpu/launch_resident.cuh"
#include "kernels/summed_area_table/look_back/arguments.cuh"
#include "kernels/summed_area_table/resident/build.cuh"
#include "kernels/summed_area_table/resident/resident.h"

namespace cumulus::summed_area_table {
namespace {

template <class P, class Job>
void launch_tiles(CudaExecutor& executor, const Job& job, const ResidentPlan& plan) {
  const CudaExecutor::StatusWords tagged = executor.status_words();
  const ResidentArguments<P> arguments{arguments_of<P>(job, 1, plan.tile_rows, plan.tile_columns),
                                       {tagged.words.data(), tagged.tag}};
  const auto kernel = plan.whole ? build_resident_table<P, true> : build_resident_table<P, false>;
  launch_resident(executor, kernel, {plan.tiles(), P::kThreads}, arguments);
}

template <class Input, class Sum, TileShape kShape>
using ResidentTraits = TileTraits<Input, Sum, 1, Terms::kValues, Layout::kOne, kShape>;

}  // namespace

template <class Input, class Sum>
void build_resident(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job,
                    const ResidentPlan& plan) {
  if constexpr (sizeof(Sum) == 4) {
    if (plan.tall()) return launch_tiles<ResidentTraits<Input, Sum, kTallResidentShape>>(executor, job, plan);
  }
  launch_tiles<ResidentTraits<Input, Sum, kLowResidentShape>>(executor, job, plan);
}

#define CUMULUS_RESIDENT(Input, Sum)                                                       \
  template void build_resident(CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&, \
                               const ResidentPlan&)
CUMULUS_SUMMED_AREA_TABLE_BYTE_PAIRS(CUMULUS_RESIDENT);
CUMULUS_SUMMED_AREA_TABLE_SHORT_PAIRS(CUMULUS_RESIDENT);
CUMULUS_SUMMED_AREA_TABLE_HALF_PAIRS(CUMULUS_RESIDENT);
CUMULUS_SUMMED_AREA_TABLE_FLOAT_PAIRS(CUMULUS_RESIDENT);

}  // namespace cumulus::summed_area_table
