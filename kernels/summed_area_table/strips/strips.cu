#include <utility>

#include "kernels/summed_area_table/look_back/launch.cuh"
#include "kernels/summed_area_table/strips/build.cuh"

namespace cumulus::summed_area_table {
namespace {

/// Bands have a tag each, and must not use up all there are.
constexpr std::int64_t kMaxBands = 1 << 24;
/// Rows below which the way to the first finished band takes too large a part of the time.
constexpr std::int64_t kMinRows = 1024;

/// Of a hundred multiprocessors, those that need to have a block, or tiles are faster.
constexpr std::int64_t min_busy_percent(std::size_t input_bytes, int columns) {
  if (input_bytes > 1) return 66;
  return columns == 64 ? 90 : 75;
}

template <class P, class Job>
bool launch_strips(CudaExecutor& executor, const Job& job) {
  constexpr int kSharedBytes = sizeof(StripMemory<P>);
  static_assert(kSharedBytes <= 227 * 1024, "what a block of compute capability 9.0 may have");
  static_assert(2 * std::int64_t{StripWords<P>::kBands} * P::kRows * P::kLaneStrips * kStripsAtOnce <=
                static_cast<std::int64_t>(CudaExecutor::kStatusWords));
  const auto image = planes_of<P>(job.image.data, job.image, 0);
  const auto table = planes_of<P>(reinterpret_cast<typename P::Sum*>(job.sums.data), job.sums, 0);
  const std::int64_t strips = divide_up(job.image.width, P::kColumns);
  const std::int64_t bands = divide_up(job.image.height, P::kRows);
  if (!image.aligned || !table.aligned || strips * P::kBlocksPerStrip > executor.device().multiprocessors() ||
      strips > P::kLaneStrips * kStripsAtOnce || bands > kMaxBands) {
    return false;
  }
  const auto kernel = build_table_in_strips<P>;
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, kernel));
  if (compiled.ptxVersion < 90) return false;  // compiled without it
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes) !=
      cudaSuccess) {
    (void)cudaGetLastError();  // this GPU has less
    return false;
  }
  const CudaExecutor::StatusWords tagged = executor.status_words(static_cast<std::uint32_t>(bands));
  const StripArguments<P> arguments{
      .image = image,
      .table = table,
      .height = job.image.height,
      .width = job.image.width,
      .bands = static_cast<std::uint32_t>(bands),
      .words = {tagged.words.data(), tagged.tag, static_cast<std::uint32_t>(strips),
                static_cast<std::uint32_t>(divide_up(strips, kStripsAtOnce))}};
  return launch_cooperative(executor, kernel,
                            {strips * P::kBlocksPerStrip, P::kThreads, kSharedBytes, P::kBlocksPerStrip},
                            arguments);
}

template <class Input, class Sum, int kColumns, int kBlocksPerStrip>
using StripsOf = StripTraits<Input, Sum, strip_shape(sizeof(Input), kColumns / 4, kBlocksPerStrip)>;

}  // namespace

template <class Input, class Sum>
bool build_in_strips_of(int columns, int blocks_per_strip, CudaExecutor& executor,
                        const TableJob<Input, Sum, Space::kDevice>& job) {
  if (job.image.channels != 1) return false;
  if constexpr (kSummedInStrips<Input, Sum>) {
    if (columns == 64 && blocks_per_strip == 2)
      return launch_strips<StripsOf<Input, Sum, 64, 2>>(executor, job);
    if (columns == 128 && blocks_per_strip == 2)
      return launch_strips<StripsOf<Input, Sum, 128, 2>>(executor, job);
    if (columns == 128 && blocks_per_strip == 1)
      return launch_strips<StripsOf<Input, Sum, 128, 1>>(executor, job);
  }
  return false;
}

template <class Input, class Sum>
bool build_in_strips(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job) {
  const std::int64_t multiprocessors = executor.device().multiprocessors();
  if (job.image.height < kMinRows) return false;
  for (const auto& [columns, blocks_per_strip] : {std::pair{64, 2}, std::pair{128, 2}, std::pair{128, 1}}) {
    const std::int64_t blocks = divide_up(job.image.width, columns) * blocks_per_strip;
    if (blocks > multiprocessors) continue;
    return blocks * 100 >= multiprocessors * min_busy_percent(sizeof(Input), columns) &&
           build_in_strips_of(columns, blocks_per_strip, executor, job);
  }
  return false;
}

#define CUMULUS_IN_STRIPS(Input, Sum)                                                        \
  template bool build_in_strips(CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&); \
  template bool build_in_strips_of(int, int, CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&)
CUMULUS_SUMMED_AREA_TABLE_BYTE_PAIRS(CUMULUS_IN_STRIPS);
CUMULUS_SUMMED_AREA_TABLE_FLOAT_PAIRS(CUMULUS_IN_STRIPS);

}  // namespace cumulus::summed_area_table
