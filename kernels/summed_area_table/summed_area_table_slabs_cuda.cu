#include "kernels/summed_area_table/slab_build.cuh"
#include "kernels/summed_area_table/table_launch.cuh"

namespace cumulus::summed_area_table {
namespace {

template <class P, class Job>
bool launch_slabs(CudaExecutor& executor, const Job& job) {
  constexpr int kSharedBytes = sizeof(SlabMemory<P>);
  const auto image = planes_of<P>(job.image.data, job.image, 0);
  const auto table = planes_of<P>(reinterpret_cast<typename P::Sum*>(job.sums.data), job.sums, 0);
  const std::int64_t rows = divide_up(job.image.height, executor.device().multiprocessors());
  const std::int64_t slabs = divide_up(job.image.height, rows);
  if (job.image.channels != 1 || !image.aligned || !table.aligned || job.image.width % 4 != 0 ||
      job.image.width > P::kColumns || rows > P::kRows || slabs > P::kMostSlabs ||
      slabs * job.image.width > static_cast<std::int64_t>(CudaExecutor::kTaggedWords)) {
    return false;
  }
  const auto kernel = build_table_in_slabs<P>;
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, kernel));
  if (compiled.ptxVersion < 90) return false;  // compiled without it
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes) !=
      cudaSuccess) {
    (void)cudaGetLastError();  // this GPU has less
    return false;
  }
  const CudaExecutor::TaggedWords tagged = executor.tagged_words(2);
  const SlabArguments<P> arguments{.image = image,
                                   .table = table,
                                   .height = job.image.height,
                                   .width = job.image.width,
                                   .slab_rows = static_cast<std::int32_t>(rows),
                                   .words = {tagged.words.data(), tagged.tag, job.image.width}};
  return launch_together(executor, kernel, slabs, P::kThreads, kSharedBytes, arguments);
}

template <class Input, class Sum, int kSegments>
using SlabsOf = SlabPlan<Input, Sum, slab_shape(sizeof(Input), kSegments)>;

}  // namespace

template <class Input, class Sum>
bool build_in_slabs(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job) {
  if constexpr (kInStripsAndSlabs<Input, Sum>) {
    using Narrow = SlabsOf<Input, Sum, 1>;
    return job.image.width <= Narrow::kColumns ? launch_slabs<Narrow>(executor, job)
                                               : launch_slabs<SlabsOf<Input, Sum, 2>>(executor, job);
  }
  return false;
}

#define CUMULUS_IN_SLABS(Input, Sum) \
  template bool build_in_slabs(CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&)
CUMULUS_SUMMED_AREA_TABLE_BYTE_PAIRS(CUMULUS_IN_SLABS);
CUMULUS_SUMMED_AREA_TABLE_FLOAT_PAIRS(CUMULUS_IN_SLABS);

}  // namespace cumulus::summed_area_table
