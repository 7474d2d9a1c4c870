#include "kernels/sampling_table/format/conclude.h"
#include "kernels/sampling_table/format/gaps.h"
#include "kernels/sampling_table/rows/launch.cuh"
#include "kernels/sampling_table/tuning.h"

namespace cumulus::sampling_table {
namespace {

/// The end of a build: header, padding and report; `height` is that of a layer of the map.
/// owns: a single block has all of it.
/// reads: the findings; the first invalid texel.
/// writes: the table's header and gaps; the report.
/// waits for: the kernel before to end, which has waited for those before it.
/// deadlock: none: no block of that kernel waits for this one.
/// source: this project.
template <class T>
__global__ void __launch_bounds__(kConcludeThreads)
    write_frame(RowsArguments<T> arguments, std::uint32_t height, TableGaps gaps) {
  for (const TableGap& gap : gaps.gaps) {
    for (std::uint64_t i = gap.begin + threadIdx.x; i < gap.end; i += blockDim.x) {
      arguments.table[i] = std::byte{0};
    }
  }
  if (threadIdx.x > 0) return;
  *reinterpret_cast<sampling::TableHeader*>(arguments.table) = arguments.header;
  wait_for_primary_kernel();
  arguments.findings->report = report_of(*arguments.findings, arguments.weights, height);
}

}  // namespace

template <class T>
void conclude(CudaExecutor& executor, const RowsArguments<T>& arguments, std::uint32_t height) {
  launch<write_frame<T>>(executor, {1, kConcludeThreads}, true, arguments, height,
                         table_gaps(arguments.header));
}

template void conclude(CudaExecutor&, const RowsArguments<float>&, std::uint32_t);
template void conclude(CudaExecutor&, const RowsArguments<std::uint8_t>&, std::uint32_t);
template void conclude(CudaExecutor&, const RowsArguments<Float16>&, std::uint32_t);

}  // namespace cumulus::sampling_table
