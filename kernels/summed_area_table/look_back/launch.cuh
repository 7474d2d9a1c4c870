#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/summed_area_table/look_back/arguments.cuh"
#include "kernels/summed_area_table/look_back/build.cuh"
#include "kernels/summed_area_table/look_back/look_back.h"
#include "kernels/summed_area_table/summand.h"

// The host's side of tables by look-back. A file for each few of the pairs instantiates build_by_look_back,
// so that no compilation takes long.

namespace cumulus::summed_area_table {

/// Zeroes the scratch memory. The kernel after it may start at once; it waits for that where it needs it.
void clear_before_table(CudaExecutor& executor, DeviceSpan<std::byte> scratch);

/// Starts the kernel while its scratch memory is still being cleared, where it has been compiled to wait for
/// that by itself.
template <class P>
void launch_after_clearing(CudaExecutor& executor, std::int64_t tiles, const Arguments<P>& arguments) {
  constexpr std::size_t kSharedBytes = sizeof(TileMemory<P>);
  static_assert(kSharedBytes <= 64 * 1024, "every GPU offers a block this much");
  CUMULUS_CUDA(cudaFuncSetAttribute(build_table<P>, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxShared));
  const std::int64_t resident = std::int64_t{P::kBlocks} * executor.device().multiprocessors();
  launch_dependent<build_table<P>>(executor.stream(), {std::min(tiles, resident), P::kThreads, kSharedBytes},
                                   arguments);
}

template <class P, class Job>
void launch_look_back(CudaExecutor& executor, const Job& job, const LookBackPlan& plan,
                      DeviceSpan<std::byte> scratch) {
  using Word = typename P::WordBits;
  static_assert(sizeof(Word) == (sizeof(typename P::Sum) <= 4 ? 8 : 16));
  const TileGrid& grid = plan.grid;
  clear_before_table(executor, scratch);
  auto arguments = arguments_of<P>(job, plan.planes, grid.tile_rows, grid.tile_columns);
  arguments.words_per_tile = grid.words_per_tile;
  arguments.next_ticket = reinterpret_cast<std::uint32_t*>(scratch.data());
  arguments.words = reinterpret_cast<Word*>(scratch.data() + kBlockAlignment);
  launch_after_clearing<P>(executor, plan.planes * grid.tiles_per_plane(), arguments);
}

/// Of an image whose channels are summed together, or has only one.
template <class Input, class Sum, class Job>
void launch_together(CudaExecutor& executor, const Job& job, const LookBackPlan& plan,
                     DeviceSpan<std::byte> scratch) {
  if (plan.layout == Layout::kOne)
    return launch_look_back<TileTraits<Input, Sum, 1, Terms::kValues, Layout::kOne>>(executor, job, plan,
                                                                                     scratch);
  switch (plan.channels) {
    case 2:
      return launch_look_back<TileTraits<Input, Sum, 2, Terms::kValues, Layout::kPlanes>>(executor, job, plan,
                                                                                          scratch);
    case 3:
      return launch_look_back<TileTraits<Input, Sum, 3, Terms::kValues, Layout::kPlanes>>(executor, job, plan,
                                                                                          scratch);
    case 4:
      return launch_look_back<TileTraits<Input, Sum, 4, Terms::kValues, Layout::kPlanes>>(executor, job, plan,
                                                                                          scratch);
    default:
      return launch_look_back<TileTraits<Input, Sum, 1, Terms::kValues, Layout::kPlanes>>(executor, job, plan,
                                                                                          scratch);
  }
}

template <class Input, class Sum>
void build_by_look_back(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job,
                        const LookBackPlan& plan, DeviceSpan<std::byte> scratch) {
  using Wide = Accumulator<Sum>;
  if constexpr (std::is_same_v<Sum, float>) {
    if (plan.terms == Terms::kOffsets)
      return launch_look_back<TileTraits<Input, Wide, 1, Terms::kOffsets, Layout::kStrided>>(executor, job,
                                                                                             plan, scratch);
  }
  if constexpr (kSumsSquares<Input, Sum>) {
    if (plan.terms == Terms::kValuesAndSquares)
      return launch_look_back<TileTraits<Input, Wide, 1, Terms::kValuesAndSquares, Layout::kStrided>>(
          executor, job, plan, scratch);
  }
  if constexpr (kSummedInterleaved<Input>) {
    launch_together<Input, Wide>(executor, job, plan, scratch);
  } else {
    launch_look_back<TileTraits<Input, Wide, 1, Terms::kValues, Layout::kStrided>>(executor, job, plan,
                                                                                   scratch);
  }
}

}  // namespace cumulus::summed_area_table
