#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/summed_area_table/check.h"
#include "kernels/summed_area_table/look_back/build.cuh"
#include "kernels/summed_area_table/methods.h"
#include "kernels/summed_area_table/summand.h"
#include "kernels/summed_area_table/summed_area_table.h"

// The host's side of tables by look-back, and of the choice between methods. A file for each few of the pairs
// instantiates build_summed_area_table, so that no compilation takes long.

namespace cumulus {
namespace summed_area_table {

/// Zeroes the scratch memory. The kernel after it may start at once; it waits for that where it needs it.
void clear_before_table(CudaExecutor& executor, DeviceSpan<std::byte> scratch);

/// Starts the kernel while its scratch memory is still being cleared, where it has been compiled to wait for
/// that by itself.
template <class P>
void launch_after_clearing(CudaExecutor& executor, std::int64_t tiles, const Arguments<P>& arguments) {
  constexpr int kSharedBytes = sizeof(TileMemory<P>);
  static_assert(kSharedBytes <= 64 * 1024, "every GPU offers a block this much");
  CUMULUS_CUDA(
      cudaFuncSetAttribute(build_table<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  CUMULUS_CUDA(cudaFuncSetAttribute(build_table<P>, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxShared));
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, build_table<P>));

  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  const std::int64_t resident = std::int64_t{P::kBlocks} * executor.device().multiprocessors();
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned int>(std::min(tiles, resident));
  config.blockDim = P::kThreads;
  config.dynamicSmemBytes = kSharedBytes;
  config.stream = executor.stream();
  config.attrs = &early;
  config.numAttrs = compiled.ptxVersion >= 90 ? 1 : 0;
  CUMULUS_CUDA(cudaLaunchKernelEx(&config, build_table<P>, arguments));
}

/// Describes an array; its channels are planes of their own where the kernel takes one channel at a time.
template <class P, class T, class View>
Planes<T, P::kLayout> planes_of(T* data, const View& view, std::int64_t plane_stride) {
  const std::int64_t parts = P::kChannels == view.channels ? 1 : view.channels;
  const auto bytes = [](std::int64_t elements) { return elements * static_cast<std::int64_t>(sizeof(T)); };
  const bool aligned = parts == 1 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0 &&
                       bytes(view.row_stride) % 16 == 0 && bytes(plane_stride) % 16 == 0;
  return {data, plane_stride, view.row_stride, parts, aligned};
}

/// The planes that the kernel sees.
template <class P, class Job>
std::int64_t planes_of_job(const Job& job) {
  return P::kChannels == job.image.channels ? job.planes : job.planes * job.image.channels;
}

template <class P, class Job>
TileGrid grid_of_job(const Job& job) {
  const std::int64_t tables = planes_of_job<P>(job) * (P::kTerms == Terms::kValuesAndSquares ? 2 : 1);
  static_assert(sizeof(Word<typename P::Sum>) == (sizeof(typename P::Sum) <= 4 ? 8 : 16));
  return tile_grid(P::kShape, sizeof(typename P::Sum), job.image.height, job.image.width, P::kChannels,
                   tables);
}

template <class P, class Job>
Arguments<P> arguments_of(const Job& job, const TileGrid& grid, std::uint32_t* next_ticket,
                          std::byte* words) {
  using Sum = typename P::Sum;
  const std::int64_t zeros = job.exclusive ? job.sums.row_stride + job.sums.channels : 0;
  const auto table = [&](auto* data) {
    return planes_of<P>(data == nullptr ? nullptr : reinterpret_cast<Sum*>(data) + zeros, job.sums,
                        job.sums.elements());
  };
  return {.image = planes_of<P>(job.image.data, job.image, job.plane_stride),
          .sums = table(job.sums.data),
          .squares = table(job.squares),
          .offsets = job.offsets,
          .height = job.image.height,
          .row_elements = job.image.width * P::kChannels,
          .planes = static_cast<std::uint32_t>(planes_of_job<P>(job)),
          .tile_rows = static_cast<std::uint32_t>(grid.tile_rows),
          .tile_columns = static_cast<std::uint32_t>(grid.tile_columns),
          .words_per_tile = grid.words_per_tile,
          .next_ticket = next_ticket,
          .words = reinterpret_cast<Word<Sum>*>(words),
          .exclusive = job.exclusive};
}

template <class P, class Job>
void launch(CudaExecutor& executor, const Job& job, DeviceSpan<std::byte> scratch) {
  const TileGrid grid = grid_of_job<P>(job);
  clear_before_table(executor, scratch);
  const auto arguments = arguments_of<P>(job, grid, reinterpret_cast<std::uint32_t*>(scratch.data()),
                                         scratch.data() + kBlockAlignment);
  launch_after_clearing<P>(executor, planes_of_job<P>(job) * grid.tiles_per_plane(), arguments);
}

/// Of one image, where there is a kernel that is faster than that for every image. Strips read and write at
/// the same time, row panels one after the other, but of bytes there is little to read.
template <class Input, class Sum>
bool build_faster(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job) {
  if (build_while_resident(executor, job)) return true;
  if constexpr (std::is_same_v<Input, std::uint8_t> && std::is_same_v<Sum, std::uint32_t>) {
    if (build_in_row_panels(executor, job)) return true;
  }
  return build_in_strips(executor, job);
}

/// Of an image whose channels are summed together, or has only one.
template <class Input, class Sum, class Job>
void launch_interleaved(CudaExecutor& executor, const Job& job, DeviceSpan<std::byte> scratch) {
  const bool one = job.planes == 1 && !job.exclusive;
  if constexpr (kBuiltFaster<Input>) {
    if (one && build_faster(executor, job)) return;
  }
  switch (job.image.channels) {
    case 2:
      return launch<TileTraits<Input, Sum, 2, Terms::kValues, Layout::kPlanes>>(executor, job, scratch);
    case 3:
      return launch<TileTraits<Input, Sum, 3, Terms::kValues, Layout::kPlanes>>(executor, job, scratch);
    case 4:
      return launch<TileTraits<Input, Sum, 4, Terms::kValues, Layout::kPlanes>>(executor, job, scratch);
    default:
      return one ? launch<TileTraits<Input, Sum, 1, Terms::kValues, Layout::kOne>>(executor, job, scratch)
                 : launch<TileTraits<Input, Sum, 1, Terms::kValues, Layout::kPlanes>>(executor, job, scratch);
  }
}

}  // namespace summed_area_table

template <class Input, class Sum>
void build_summed_area_table(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job) {
  using namespace summed_area_table;
  check_job(job);
  executor.check_interrupt();
  executor.bind_thread();
  const auto scratch = executor.scratch<std::byte>(build_summed_area_table_scratch_bytes(job));
  using Wide = Accumulator<Sum>;
  if constexpr (std::is_same_v<Sum, float>) {
    if (job.offsets != nullptr)
      return launch<TileTraits<Input, Wide, 1, Terms::kOffsets, Layout::kStrided>>(executor, job, scratch);
  }
  if constexpr (kSumsSquares<Input, Sum>) {
    if (job.squares != nullptr)
      return launch<TileTraits<Input, Wide, 1, Terms::kValuesAndSquares, Layout::kStrided>>(executor, job,
                                                                                            scratch);
  }
  if constexpr (kSummedInterleaved<Input>) {
    launch_interleaved<Input, Wide>(executor, job, scratch);
  } else {
    launch<TileTraits<Input, Wide, 1, Terms::kValues, Layout::kStrided>>(executor, job, scratch);
  }
}

}  // namespace cumulus
