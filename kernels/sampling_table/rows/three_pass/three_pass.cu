#include "kernels/sampling_table/bilinear/vertices.h"
#include "kernels/sampling_table/rows/bounds.cuh"
#include "kernels/sampling_table/rows/launch.cuh"
#include "kernels/sampling_table/rows/masses.cuh"
#include "kernels/sampling_table/rows/texels.cuh"
#include "kernels/sampling_table/rows/three_pass/three_pass.h"
#include "kernels/sampling_table/tuning.h"

namespace cumulus::sampling_table {
namespace {

constexpr int kThreads = kThreePassThreads;

/// Where the guides come from memory, later: nobody sees the bounds of a quad.
struct SeeNothing {
  __device__ void operator()(std::uint32_t, const std::uint32_t (&)[kQuad], std::uint32_t) const {}
};

/// The block turns masses into lower bounds. Cell i's mass is read for the last time before its bound is
/// written.
template <class MassOf>
__device__ Tally write_distribution(const Target& target, const MassOf& mass_of) {
  const WarpTallies tallies = tally_warps<kThreads>(NoCells{}, target.count, mass_of);
  const CellRange<NoCells> range{{}, target.count, target.lower};
  write_bounds<kThreads>(range, BoundScale(tallies.all), tallies.before, mass_of, SeeNothing{});
  return tallies.all;
}

/// Lower bounds of rows, a block a row.
/// owns: block b has row b of all layers.
/// reads: the row's texels, three times; the layer's adjustment.
/// writes: the row's lower bounds and its mass; the first invalid texel (atomicMin).
/// waits for: nothing of other blocks, so that there is no deadlock; the kernels before have ended.
/// source: a block's reductions and scan, round after round of the row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    build_three_pass_rows(const __grid_constant__ RowsArguments<T> arguments) {
  const sampling::TableHeader& header = arguments.header;
  const std::uint32_t row = blockIdx.x;
  const Target target = row_target(header, arguments.table, row);
  const TexelRun<T> texels(arguments, row, 0, header.width);
  const std::uint32_t largest = largest_of_block<kThreads / 32>(texels.template find_largest<kThreads>());
  const std::uint32_t exponent = row_exponent(largest, header.width);
  const WeightTally tally_of{exponent};
  const auto mass_of = [&](std::uint32_t, std::uint32_t x) -> Tally {
    return x < header.width ? tally_of(texels.bits(x), x) : Tally{};
  };
  const Tally all = write_distribution(target, mass_of);
  if (threadIdx.x == 0) {
    arguments.row_masses[row] = {row_mass(all.sum, row_weight(header, row % header.height)), exponent,
                                 kPublished};
  }
}

/// Waits for the masses of `count` rows; the largest mass_exponent of any, to every thread of the block.
__device__ std::uint32_t find_heaviest(const RowMass* rows, std::uint32_t count) {
  std::uint32_t largest = 0;
  for (std::uint32_t y = threadIdx.x; y < count; y += kThreads) {
    RowMass row[1];
    wait_for_masses(rows + y, row);
    largest = max(largest, mass_exponent(row[0].mass, row[0].exponent));
  }
  return largest_of_block<kThreads / 32>(largest);
}

/// The tally of a row as a cell of the marginal; of nothing after the last.
struct MarginalTally {
  const RowMass* rows;
  std::uint32_t count;
  std::uint32_t heaviest;

  __device__ Tally operator()(std::uint32_t /*word*/, std::uint32_t y) const {
    const std::uint64_t mass =
        y < count ? integer_mass(__ldcg(&rows[y].mass), __ldcg(&rows[y].exponent), heaviest) : 0;
    return {mass, mass > 0 ? 1u : 0u};
  }
};

/// Marginals, a block a layer.
/// owns: block b has the marginal of layer b.
/// reads: the masses of the layer's rows, three times.
/// writes: the marginal's lower bounds; the first layer without mass (atomicMin).
/// waits for: each mass of the layer, which the kernel of the rows publishes.
/// deadlock: none. Either that kernel has ended, or this one began when each of its blocks had; those wait
/// for nothing, and keep their places until they have published.
/// source: as the kernel of rows.
__global__ void __launch_bounds__(kThreads)
    build_three_pass_marginals(const __grid_constant__ MarginalsArguments arguments) {
  const sampling::TableHeader& header = arguments.header;
  const Target target = marginal_target(header, arguments.table, blockIdx.x);
  const RowMass* const rows = arguments.row_masses + static_cast<std::size_t>(blockIdx.x) * header.height;
  const std::uint32_t heaviest = find_heaviest(rows, header.height);
  const Tally all = write_distribution(target, MarginalTally{rows, header.height, heaviest});
  if (threadIdx.x == 0 && all.positive == 0) atomicMin(&arguments.findings->first_empty, blockIdx.x);
  wait_for_primary_kernel();
}

}  // namespace

template <class T>
void build_rows(CudaExecutor& executor, const ThreePassPlan& /*plan*/, const RowsArguments<T>& arguments) {
  const std::int64_t rows = std::int64_t{arguments.header.layers} * arguments.header.height;
  launch<build_three_pass_rows<T>>(executor, {rows, kThreads}, false, arguments);
}

void build_marginals(CudaExecutor& executor, const ThreePassPlan& /*plan*/,
                     const MarginalsArguments& arguments) {
  launch<build_three_pass_marginals>(executor, {arguments.header.layers, kThreads}, arguments.early,
                                     arguments);
}

template void build_rows(CudaExecutor&, const ThreePassPlan&, const RowsArguments<float>&);
template void build_rows(CudaExecutor&, const ThreePassPlan&, const RowsArguments<std::uint8_t>&);
template void build_rows(CudaExecutor&, const ThreePassPlan&, const RowsArguments<Float16>&);
template void build_rows(CudaExecutor&, const ThreePassPlan&, const RowsArguments<CellWeight>&);

}  // namespace cumulus::sampling_table
