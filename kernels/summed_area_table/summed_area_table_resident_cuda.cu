#include "kernels/summed_area_table/resident_build.cuh"
#include "kernels/summed_area_table/table_launch.cuh"

namespace cumulus::summed_area_table {
namespace {

template <class P, class Job>
bool build_from_tiles(CudaExecutor& executor, const Job& job) {
  using Sum = typename P::Sum;
  const TileGrid grid = grid_of_job<P>(job);
  const std::int64_t tiles = grid.tiles_per_plane();
  const std::int64_t words = tiles * ResidentValues<P>::kCount * kTaggedWordsOf<Sum>;
  if (tiles > std::int64_t{resident_tiles(P::kShape)} * executor.device().multiprocessors() ||
      words > static_cast<std::int64_t>(CudaExecutor::kTaggedWords)) {
    return false;
  }
  const CudaExecutor::TaggedWords tagged = executor.tagged_words();
  const ResidentArguments<P> arguments{arguments_of<P>(job, grid, nullptr, nullptr),
                                       {tagged.words.data(), tagged.tag}};

  const bool whole = arguments.table.image.aligned && arguments.table.sums.aligned &&
                     arguments.table.height % P::kRows == 0 && arguments.table.row_elements % P::kColumns == 0;
  return launch_together(executor, whole ? build_resident_table<P, true> : build_resident_table<P, false>, tiles,
                         P::kThreads, 0, arguments);
}

template <class Input, class Sum, TileShape kShape>
using ResidentPlan = Plan<Input, Sum, 1, Terms::kValues, Layout::kOne, kShape>;

}  // namespace

template <class Input, class Sum>
bool build_while_resident(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job) {
  if (job.image.channels != 1) return false;
  if (build_from_tiles<ResidentPlan<Input, Sum, kLowResidentShape>>(executor, job)) return true;
  // Two tall tiles of longer sums do not fit into a multiprocessor's registers.
  if constexpr (sizeof(Sum) == 4) {
    return build_from_tiles<ResidentPlan<Input, Sum, kTallResidentShape>>(executor, job);
  }
  return false;
}

#define CUMULUS_WHILE_RESIDENT(Input, Sum) \
  template bool build_while_resident(CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&)
CUMULUS_SUMMED_AREA_TABLE_BYTE_PAIRS(CUMULUS_WHILE_RESIDENT);
CUMULUS_SUMMED_AREA_TABLE_FLOAT_PAIRS(CUMULUS_WHILE_RESIDENT);

}  // namespace cumulus::summed_area_table
