#include "kernels/summed_area_table/strip_build.cuh"
#include "kernels/summed_area_table/table_launch.cuh"

namespace cumulus::summed_area_table {
namespace {

/// Bands below which the way to the first finished one takes too large a part of the time.
constexpr std::int64_t kLeastBands = 16;

template <class P, class Job>
bool build_in_strips_of(CudaExecutor& executor, const Job& job, DeviceSpan<std::byte> scratch) {
  using Sum = typename P::Sum;
  const auto image = planes_of<P>(job.image.data, job.image, 0);
  const auto table = planes_of<P>(job.sums.data, job.sums, 0);
  const std::int64_t strips = divide_up(job.image.width, P::kColumns);
  const std::int64_t groups = divide_up(strips, kStripsOfGroup);
  const std::int64_t bands = divide_up(job.image.height, P::kRows);
  const std::int64_t multiprocessors = executor.device().multiprocessors();
  const std::size_t bytes =
      kBlockAlignment +
      static_cast<std::size_t>((strips + groups) * bands * P::kRowWords) * sizeof(Word<Sum>);
  if (!image.aligned || !table.aligned || job.image.width % P::kElements != 0 || bands < kLeastBands ||
      strips > multiprocessors || strips * 4 < multiprocessors * 3 || bytes > scratch.size()) {
    return false;
  }
  constexpr int kSharedBytes = sizeof(StripMemory<P>);
  const auto kernel = build_table_in_strips<P>;
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, kernel));
  if (compiled.ptxVersion < 90) return false;  // compiled without it
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes) !=
      cudaSuccess) {
    (void)cudaGetLastError();  // this GPU has less
    return false;
  }
  clear_before_table(executor, {scratch.data(), bytes});
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned int>(strips);
  config.blockDim = P::kThreads;
  config.dynamicSmemBytes = kSharedBytes;
  config.stream = executor.stream();
  config.attrs = &early;
  config.numAttrs = 1;
  const StripArguments<P> arguments{.image = image,
                                    .table = table,
                                    .height = job.image.height,
                                    .row_elements = job.image.width,
                                    .strips = static_cast<std::uint32_t>(strips),
                                    .bands = static_cast<std::uint32_t>(bands),
                                    .next_ticket = reinterpret_cast<std::uint32_t*>(scratch.data()),
                                    .words = reinterpret_cast<Word<Sum>*>(scratch.data() + kBlockAlignment)};
  CUMULUS_CUDA(cudaLaunchKernelEx(&config, kernel, arguments));
  return true;
}

template <class Input, class Sum, int kRowLanes>
using StripsOf = StripPlan<Input, Sum, 1, strip_shape(sizeof(Input), sizeof(Sum), kRowLanes)>;

}  // namespace

template <class Input, class Sum>
bool build_in_strips(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job,
                     DeviceSpan<std::byte> scratch) {
  if (job.image.channels != 1) return false;
  return build_in_strips_of<StripsOf<Input, Sum, 8>>(executor, job, scratch) ||
         build_in_strips_of<StripsOf<Input, Sum, 16>>(executor, job, scratch) ||
         build_in_strips_of<StripsOf<Input, Sum, 32>>(executor, job, scratch);
}

#define CUMULUS_IN_STRIPS(Input, Sum)                                                       \
  template bool build_in_strips(CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&, \
                                DeviceSpan<std::byte>)
CUMULUS_SUMMED_AREA_TABLE_BYTE_PAIRS(CUMULUS_IN_STRIPS);
CUMULUS_SUMMED_AREA_TABLE_FLOAT_PAIRS(CUMULUS_IN_STRIPS);

}  // namespace cumulus::summed_area_table
