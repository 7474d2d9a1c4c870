#include "kernels/summed_area_table/look_back/launch.cuh"
#include "kernels/summed_area_table/resident/build.cuh"

namespace cumulus::summed_area_table {
namespace {

/// Whether all tiles are on the device at once, and what lies above and to the left of one are no more than
/// its threads.
template <class P>
bool is_small(const CudaExecutor& executor, const TileGrid& grid) {
  const std::int64_t tiles = grid.tiles_per_plane();
  const std::int64_t words = tiles * ResidentValues<P>::kCount * kTaggedWordsOf<typename P::Sum>;
  return tiles <= std::int64_t{resident_tiles(P::kShape)} * executor.device().multiprocessors() &&
         words <= static_cast<std::int64_t>(CudaExecutor::kStatusWords) &&
         (grid.tile_rows - 1) * (grid.tile_columns - 1) <= P::kThreads;
}

template <class P>
bool all_tiles_are_whole(const Arguments<P>& table) {
  return table.image.aligned && table.sums.aligned && table.height % P::kRows == 0 &&
         table.row_elements % P::kColumns == 0;
}

template <class P, class Job>
bool build_from_tiles(CudaExecutor& executor, const Job& job) {
  const TileGrid grid = grid_of_job<P>(job);
  if (!is_small<P>(executor, grid)) return false;
  const CudaExecutor::StatusWords tagged = executor.status_words();
  const ResidentArguments<P> arguments{arguments_of<P>(job, grid, nullptr, nullptr),
                                       {tagged.words.data(), tagged.tag}};
  const auto kernel =
      all_tiles_are_whole(arguments.table) ? build_resident_table<P, true> : build_resident_table<P, false>;
  return launch_cooperative(executor, kernel, {grid.tiles_per_plane(), P::kThreads}, arguments);
}

template <class Input, class Sum, TileShape kShape>
using ResidentTraits = TileTraits<Input, Sum, 1, Terms::kValues, Layout::kOne, kShape>;

}  // namespace

template <class Input, class Sum>
bool build_while_resident(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job) {
  if (job.image.channels != 1) return false;
  if (build_from_tiles<ResidentTraits<Input, Sum, kLowResidentShape>>(executor, job)) return true;
  // Two tall tiles of longer sums do not fit into a multiprocessor's registers.
  if constexpr (sizeof(Sum) == 4) {
    return build_from_tiles<ResidentTraits<Input, Sum, kTallResidentShape>>(executor, job);
  }
  return false;
}

#define CUMULUS_WHILE_RESIDENT(Input, Sum) \
  template bool build_while_resident(CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&)
CUMULUS_SUMMED_AREA_TABLE_BYTE_PAIRS(CUMULUS_WHILE_RESIDENT);
CUMULUS_SUMMED_AREA_TABLE_FLOAT_PAIRS(CUMULUS_WHILE_RESIDENT);

}  // namespace cumulus::summed_area_table
