#include "kernels/summed_area_table/slab_build.cuh"
#include "kernels/summed_area_table/table_launch.cuh"

namespace cumulus::summed_area_table {
namespace {

template <class P>
bool launch_slabs(CudaExecutor& executor, const TableJob<std::uint8_t, std::uint32_t, Space::kDevice>& job) {
  constexpr int kSharedBytes = sizeof(SlabMemory<P>);
  const auto image = planes_of<P>(job.image.data, job.image, 0);
  const auto table = planes_of<P>(job.sums.data, job.sums, 0);
  const std::int64_t rows = divide_up(job.image.height, executor.device().multiprocessors());
  const std::int64_t slabs = divide_up(job.image.height, rows);
  if (job.image.channels != 1 || !image.aligned || !table.aligned || job.image.width % 4 != 0 ||
      job.image.width > P::kColumns || rows > kSlabRows || slabs > kSlabGroups * kSlabsOfThread ||
      slabs * job.image.width > static_cast<std::int64_t>(CudaExecutor::kTaggedWords)) {
    return false;
  }
  const auto kernel = build_table_in_slabs<P>;
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, kernel));
  if (compiled.ptxVersion < 80) return false;  // compiled without it
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes) !=
      cudaSuccess) {
    (void)cudaGetLastError();  // this GPU has less
    return false;
  }
  const CudaExecutor::TaggedWords tagged = executor.tagged_words(2);
  const SlabArguments<P> arguments{.image = image,
                                   .table = table,
                                   .height = job.image.height,
                                   .width = static_cast<std::int32_t>(job.image.width),
                                   .slab_rows = static_cast<std::int32_t>(rows),
                                   .words = tagged.words.data(),
                                   .tag = tagged.tag};
  return launch_together(executor, kernel, slabs, P::kThreads, kSharedBytes, arguments);
}

}  // namespace

bool build_in_slabs(CudaExecutor& executor,
                    const TableJob<std::uint8_t, std::uint32_t, Space::kDevice>& job) {
  return job.image.width <= SlabPlan<1>::kColumns ? launch_slabs<SlabPlan<1>>(executor, job)
                                                  : launch_slabs<SlabPlan<2>>(executor, job);
}

}  // namespace cumulus::summed_area_table
