#include "kernels/summed_area_table/resident_build.cuh"
#include "kernels/summed_area_table/table_launch.cuh"

namespace cumulus::summed_area_table {
namespace {

template <class P, class Job>
bool build_from_tiles(CudaExecutor& executor, const Job& job, DeviceSpan<std::byte> scratch) {
  using Sum = typename P::Sum;
  const TileGrid grid = grid_of_job<P>(job);
  const std::int64_t tiles = grid.tiles_per_plane();
  if (tiles > executor.device().multiprocessors() ||
      static_cast<std::size_t>(tiles * grid.words_per_tile) * sizeof(Sum) > scratch.size()) {
    return false;
  }
  constexpr int kSharedBytes = sizeof(TileMemory<P>);
  const auto kernel = build_resident_table<P>;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes) !=
      cudaSuccess) {
    (void)cudaGetLastError();  // this GPU has less
    return false;
  }
  CUMULUS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxShared));
  const ResidentArguments<P> arguments{arguments_of<P>(job, grid, nullptr, nullptr),
                                       reinterpret_cast<Sum*>(scratch.data())};

  // The blocks wait for each other: all of them run at once, or none does.
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned int>(tiles);
  config.blockDim = P::kThreads;
  config.dynamicSmemBytes = kSharedBytes;
  config.stream = executor.stream();
  config.attrs = &together;
  config.numAttrs = 1;
  const cudaError_t launched = cudaLaunchKernelEx(&config, kernel, arguments);
  if (launched == cudaErrorCooperativeLaunchTooLarge) {
    (void)cudaGetLastError();
    return false;
  }
  CUMULUS_CUDA(launched);
  return true;
}

}  // namespace

template <class Input, class Sum>
bool build_while_resident(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job,
                          DeviceSpan<std::byte> scratch) {
  using P = Plan<Input, Sum, 1, Terms::kValues, Layout::kOne, kResidentShape>;
  return job.image.channels == 1 && build_from_tiles<P>(executor, job, scratch);
}

#define CUMULUS_WHILE_RESIDENT(Input, Sum)                                                       \
  template bool build_while_resident(CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&, \
                                     DeviceSpan<std::byte>)
CUMULUS_SUMMED_AREA_TABLE_BYTE_PAIRS(CUMULUS_WHILE_RESIDENT);
CUMULUS_SUMMED_AREA_TABLE_FLOAT_PAIRS(CUMULUS_WHILE_RESIDENT);

}  // namespace cumulus::summed_area_table
