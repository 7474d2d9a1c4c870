#include <type_traits>

#include "kernels/sampling_table/bilinear/vertices.cuh"
#include "kernels/sampling_table/check.h"
#include "kernels/sampling_table/format/gaps.h"
#include "kernels/sampling_table/rows/launch.cuh"
#include "kernels/sampling_table/rows/masses.cuh"
#include "kernels/sampling_table/rows/register_blocked/register_blocked.cuh"
#include "kernels/sampling_table/rows/texels.cuh"
#include "kernels/sampling_table/rows/tiled/tiled.cuh"
#include "kernels/sampling_table/sampling_table.h"
#include "kernels/sampling_table/search/lookup.cuh"
#include "kernels/sampling_table/tuning.h"
#include "kernels/sampling_table/weights/reduction.cuh"

namespace cumulus::sampling_table {
namespace {

extern __shared__ uint4 shared_quads[];

/// The block's shared memory, its slots cleared where there is to be a lookup.
template <int kThreads>
__device__ BlockMemory memory_for(const Target& target, bool lookup) {
  const BlockMemory memory(reinterpret_cast<std::uint32_t*>(shared_quads), target.count);
  if (lookup) clear_slots<kThreads>(memory, target.guide_size);
  return memory;
}

/// Lower bounds of rows, a block a row; with `lookup` guides and the nodes of kRadixForest, too.
/// owns: block b has row b of all layers, whose cells are in its shared memory.
/// reads: the row's texels, once; the layer's adjustment.
/// writes: the row's section of the table; its mass; the first invalid texel (atomicMin).
/// waits for: nothing of other blocks, so that there is no deadlock; the kernels before have ended.
/// source: Binder and Keller, 2020, and Karras, 2012: see search/trees.h.
template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads)
    build_block_rows(const __grid_constant__ RowsArguments<T> arguments, bool lookup) {
  const sampling::TableHeader& header = arguments.header;
  const std::uint32_t row = blockIdx.x;
  const Target target = row_target(header, arguments.table, row);
  const BlockMemory memory = memory_for<kThreads>(target, lookup);
  const TexelRun<T> texels(arguments, row, 0, header.width);
  const std::uint32_t largest =
      largest_of_block<kThreads / 32>(texels.template stage<kThreads>(memory.cells));
  const std::uint32_t exponent = row_exponent(largest, header.width);
  const Tally all = build_distribution<kThreads>(target, memory, lookup, WeightTally{exponent});
  if (threadIdx.x == 0) {
    arguments.row_masses[row] = {row_mass(all.sum, row_weight(header, row % header.height)), exponent, 0};
  }
}

/// Marginals, a block a layer.
/// owns: block b has the marginal of layer b, whose cells are in its shared memory.
/// reads: the masses of the layer's rows.
/// writes: the marginal's section of the table; the first layer without mass (atomicMin).
/// waits for: each mass of the layer, which the kernel of the rows publishes.
/// deadlock: none. Either that kernel has ended, or this one began when each of its blocks had; those wait
/// for nothing, and keep their places until they have published.
/// source: as build_block_rows.
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    build_block_marginals(const __grid_constant__ sampling::TableHeader header, std::byte* table,
                          const RowMass* row_masses, BuildFindings* findings, bool lookup) {
  const Target target = marginal_target(header, table, blockIdx.x);
  const BlockMemory memory = memory_for<kThreads>(target, lookup);
  const RowMass* rows = row_masses + static_cast<std::size_t>(blockIdx.x) * header.height;
  std::uint32_t largest = 0;
  for (std::uint32_t y = threadIdx.x; y < header.height; y += kThreads) {
    RowMass row[1];
    wait_for_masses(rows + y, row);
    largest = max(largest, mass_exponent(row[0].mass, row[0].exponent));
  }
  const std::uint32_t heaviest = largest_of_block<kThreads / 32>(largest);
  const auto mass_of = [=](std::uint32_t, std::uint32_t y) -> Tally {
    const std::uint64_t mass =
        y < header.height ? integer_mass(__ldcg(&rows[y].mass), __ldcg(&rows[y].exponent), heaviest) : 0;
    return {mass, mass > 0 ? 1u : 0u};
  };
  const Tally all = build_distribution<kThreads>(target, memory, lookup, mass_of);
  if (threadIdx.x == 0 && all.positive == 0) atomicMin(&findings->first_empty, blockIdx.x);
  wait_for_primary_kernel();
}

/// The end of a build: header, padding and report; `height` is that of a layer of the map.
/// owns: a single block has all of it.
/// reads: the findings; the first invalid texel.
/// writes: the table's header and gaps; the report.
/// waits for: the kernel before to end, which has waited for those before it.
/// deadlock: none: no block of that kernel waits for this one.
template <class T>
__global__ void __launch_bounds__(kConcludeThreads)
    conclude(RowsArguments<T> arguments, std::uint32_t height, TableGaps gaps) {
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

/// Calls `launch` with the threads of a block for `count` cells.
template <class Launch>
void with_threads(std::uint32_t count, const Launch& launch) {
  if (count <= 2048) return launch(std::integral_constant<int, 128>{});
  if (count <= 4096) return launch(std::integral_constant<int, 256>{});
  if (count <= 12288) return launch(std::integral_constant<int, 512>{});
  return launch(std::integral_constant<int, 1024>{});
}

/// The shared memory of a block that builds a distribution.
struct Room {
  std::size_t bytes;
  bool lookup;  ///< Whether there is a guide, and it fits, too.
};

Room room_for(const CudaExecutor& executor, std::uint32_t count, std::uint32_t guide_size) {
  constexpr std::size_t kBesides = 2048;  // what the kernels have in shared memory anyhow
  const std::size_t bytes = BlockMemory::bytes(count, guide_size);
  const bool lookup = guide_size > 0 && bytes + kBesides <= max_shared_bytes(executor);
  return {lookup ? bytes : BlockMemory::bytes_of_cells(count), lookup};
}

/// Whether the marginals may begin before the rows are ready.
template <class T>
bool build_all_rows(CudaExecutor& executor, const RowsArguments<T>& arguments,
                    DeviceSpan<TileAggregate> tiles) {
  const sampling::TableHeader& header = arguments.header;
  if (!tiles.empty()) {
    write_tiled_bounds<T>(executor, {arguments, tiles.data(), tiles_of_row(header)});
    write_lookup(executor, Distributions{header, arguments.table, false}, false);
    return false;
  }
  // A bilinear table has one cell more than its map has columns, seldom a multiple of sixteen.
  if constexpr (!std::is_same_v<T, CellWeight>) {
    if (register_blocked_rows_fit(executor, header)) {
      launch_register_blocked_rows(executor, arguments);
      write_lookup(executor, Distributions{header, arguments.table, false},
                   register_blocked_lookup(header.method));
      return true;
    }
  }
  const Room room = room_for(executor, header.width, header.row_guide_size);
  with_threads(header.width, [&](auto threads) {
    launch<build_block_rows<T, decltype(threads)::value>>(
        executor, {header.layers * header.height, threads, room.bytes}, false, arguments, room.lookup);
  });
  write_lookup(executor, Distributions{header, arguments.table, false}, room.lookup);
  return false;
}

void build_all_marginals(CudaExecutor& executor, const sampling::TableHeader& header, std::byte* table,
                         const RowMass* row_masses, BuildFindings* findings, bool early) {
  const Distributions marginals{header, table, true};
  if (register_blocked_marginals_fit(executor, header)) {
    launch_register_blocked_marginals(executor, header, table, row_masses, findings, early);
    write_lookup(executor, marginals, register_blocked_lookup(header.method));
    return;
  }
  const Room room = room_for(executor, header.height, header.marginal_guide_size);
  // Often there is one block alone, which is the sooner ready the more threads it has.
  with_threads(4 * header.height, [&](auto threads) {
    launch<build_block_marginals<decltype(threads)::value>>(executor, {header.layers, threads, room.bytes},
                                                            early, header, table, row_masses, findings,
                                                            room.lookup);
  });
  write_lookup(executor, marginals, room.lookup);
}

/// Of a bilinear table: the vertices, then the rows of the cells between them. `map` has the map's weights.
template <class T>
void build_all_bilinear_rows(CudaExecutor& executor, const RowsArguments<T>& map,
                             DeviceSpan<TileAggregate> tiles) {
  const sampling::TableHeader& header = map.header;
  write_vertices_and_cells<T>(executor, {map.weights, map.rule, header, vertex_rule(header), map.table,
                                         map.adjustments, map.findings});
  executor.check_interrupt();
  const auto* cells = reinterpret_cast<const CellWeight*>(map.table + header.row_cdf_offset);
  const DeviceImage<const CellWeight> image(cells, std::int64_t{header.layers} * header.height, header.width);
  build_all_rows<CellWeight>(
      executor, {image, weight_rule({}, 1), header, map.table, map.row_masses, nullptr, map.findings}, tiles);
}

template <class T>
void build(CudaExecutor& executor, DeviceImage<const T> weights, const SamplingTableParams& params,
           DeviceSpan<std::byte> table, SamplingTableReport* report) {
  check_build(weights, params, table);
  executor.bind_thread();
  const sampling::TableHeader header = sampling_table_header(params);
  const auto findings = executor.scratch<BuildFindings>(1);
  const auto row_masses = executor.scratch<RowMass>(std::size_t{header.layers} * header.height);
  const auto tiles = executor.scratch<TileAggregate>(row_masses.size() * tiles_of_row(header));
  // Both, and what lies between them: neither any finding nor any mass yet.
  const auto* const begin = reinterpret_cast<const std::byte*>(findings.data());
  const auto* const end = reinterpret_cast<const std::byte*>(row_masses.data() + row_masses.size());
  CUMULUS_CUDA(
      cudaMemsetAsync(findings.data(), 0xFF, static_cast<std::size_t>(end - begin), executor.stream()));

  DeviceSpan<WeightAdjustment> adjustments;
  if (params.needs_reduction()) {
    const auto reductions =
        executor.scratch<RowReduction>(static_cast<std::size_t>(params.layers * params.height));
    adjustments = executor.scratch<WeightAdjustment>(static_cast<std::size_t>(params.layers));
    reduce_weights(executor, weights, params, reductions, adjustments);
    executor.check_interrupt();
  }
  const RowsArguments<T> arguments{weights,
                                   weight_rule(params, weights.channels),
                                   header,
                                   table.data(),
                                   row_masses.data(),
                                   adjustments.data(),
                                   findings.data()};
  bool early = false;
  if (header.interpolation == sampling::Interpolation::kBilinear) {
    build_all_bilinear_rows(executor, arguments, tiles);
  } else {
    early = build_all_rows(executor, arguments, tiles);
  }
  executor.check_interrupt();
  build_all_marginals(executor, header, table.data(), row_masses.data(), findings.data(), early);
  launch<conclude<T>>(executor, {1, kConcludeThreads}, true, arguments,
                      static_cast<std::uint32_t>(params.height), table_gaps(header));
  executor.download({reinterpret_cast<const std::byte*>(&findings.data()->report), sizeof(*report)},
                    {reinterpret_cast<std::byte*>(report), sizeof(*report)});
}

}  // namespace
}  // namespace cumulus::sampling_table

namespace cumulus {

void build_sampling_table(CudaExecutor& executor, DeviceImage<const float> weights,
                          const SamplingTableParams& params, DeviceSpan<std::byte> table,
                          SamplingTableReport* report) {
  sampling_table::build(executor, weights, params, table, report);
}

void build_sampling_table(CudaExecutor& executor, DeviceImage<const std::uint8_t> weights,
                          const SamplingTableParams& params, DeviceSpan<std::byte> table,
                          SamplingTableReport* report) {
  sampling_table::build(executor, weights, params, table, report);
}

void build_sampling_table(CudaExecutor& executor, DeviceImage<const Float16> weights,
                          const SamplingTableParams& params, DeviceSpan<std::byte> table,
                          SamplingTableReport* report) {
  sampling_table::build(executor, weights, params, table, report);
}

}  // namespace cumulus
