#include <cub/block/block_reduce.cuh>

#include "kernels/sampling_table/bilinear/vertices.h"
#include "kernels/sampling_table/rows/masses.cuh"
#include "kernels/sampling_table/rows/texels.cuh"
#include "kernels/sampling_table/rows/tiled/tiled.h"

// Tiled rows: the lower bounds of rows that are too long for one block, in three kernels that read the
// texels anew: the largest weight, the sum, the bounds.
namespace cumulus::sampling_table {

constexpr int kTileThreads = 256;

template <class T>
struct TiledArguments {
  RowsArguments<T> rows;
  TileAggregate* tiles;
  std::uint32_t tiles_of_row;
};

/// A block's tile, whose weights are staged.
template <class T>
class Tile {
 public:
  __device__ explicit Tile(const TiledArguments<T>& arguments)
      : arguments_(arguments),
        row(blockIdx.x / arguments.tiles_of_row),
        index(blockIdx.x % arguments.tiles_of_row),
        count(min(kTileCells, arguments.rows.header.width - first_cell())),
        aggregates(arguments.tiles + std::size_t{row} * arguments.tiles_of_row) {}

  __device__ std::uint32_t first_cell() const { return index * kTileCells; }
  __device__ TileAggregate& aggregate() const { return aggregates[index]; }

  /// Stages the weights, and returns the largest of this thread's.
  __device__ std::uint32_t stage(std::uint32_t* cells) const {
    return TexelRun<T>(arguments_.rows, row, first_cell(), count).template stage<kTileThreads>(cells);
  }

  /// The block meets here.
  __device__ std::uint32_t exponent_of_row() const {
    std::uint32_t largest = 0;
    for (std::uint32_t i = threadIdx.x; i < arguments_.tiles_of_row; i += kTileThreads) {
      largest = max(largest, aggregates[i].largest);
    }
    return row_exponent(largest_of_block<kTileThreads / 32>(largest), arguments_.rows.header.width);
  }

 private:
  const TiledArguments<T>& arguments_;

 public:
  const std::uint32_t row;
  const std::uint32_t index;  ///< In the row.
  const std::uint32_t count;  ///< Cells.
  TileAggregate* const aggregates;
};

/// Step 1: the largest weight of each tile.
/// owns: block b has tile b of all rows, kTileCells cells of one row.
/// reads: the tile's texels; the layer's adjustment.
/// writes: `largest` of the tile's aggregate; the first invalid texel (atomicMin).
/// waits for: nothing of other blocks, so that there is no deadlock; the kernels before have ended.
/// source: reduce-then-scan (Merrill and Garland 2016), its first reduction.
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    reduce_tile_maxima(const __grid_constant__ TiledArguments<T> arguments) {
  __shared__ uint4 cells[kTileCells / kQuad];
  const Tile<T> tile(arguments);
  const std::uint32_t largest =
      largest_of_block<kTileThreads / 32>(tile.stage(reinterpret_cast<std::uint32_t*>(cells)));
  if (threadIdx.x == 0) tile.aggregate().largest = largest;
}

/// Step 2: the sum of each tile's integer weights.
/// owns: block b has tile b of all rows.
/// reads: the tile's texels; `largest` of all aggregates of the row, which give its exponent.
/// writes: `sum` and `positive` of the tile's aggregate.
/// waits for: nothing of other blocks, so that there is no deadlock; step 1 has ended.
/// source: as step 1, its second reduction.
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    reduce_tile_sums(const __grid_constant__ TiledArguments<T> arguments) {
  __shared__ uint4 cells[kTileCells / kQuad];
  const Tile<T> tile(arguments);
  tile.stage(reinterpret_cast<std::uint32_t*>(cells));
  const std::uint32_t exponent = tile.exponent_of_row();
  const Tally all = tally_warps<kTileThreads>(SharedCells{reinterpret_cast<std::uint32_t*>(cells)},
                                              tile.count, WeightTally{exponent})
                        .all;
  if (threadIdx.x > 0) return;
  tile.aggregate().sum = all.sum;
  tile.aggregate().positive = all.positive;
}

struct SumTallies {
  __device__ Tally operator()(const Tally& a, const Tally& b) const { return a + b; }
};

/// The tally of the first `count` tiles, to every thread.
__device__ Tally tally_of_tiles(const TileAggregate* tiles, std::uint32_t count) {
  using Join = cub::BlockReduce<Tally, kTileThreads>;
  __shared__ typename Join::TempStorage storage;
  __shared__ std::uint64_t sum;
  __shared__ std::uint32_t positive;
  Tally own;
  for (std::uint32_t i = threadIdx.x; i < count; i += kTileThreads) {
    own = own + Tally{tiles[i].sum, tiles[i].positive};
  }
  own = Join(storage).Reduce(own, SumTallies{});
  if (threadIdx.x == 0) {
    sum = own.sum;
    positive = own.positive;
  }
  __syncthreads();
  const Tally all{sum, positive};
  __syncthreads();
  return all;
}

/// Step 3: the lower bounds of each tile.
/// owns: block b has tile b of all rows.
/// reads: the tile's texels; the row's aggregates, whose sum before the tile is its exclusive prefix.
/// writes: the tile's lower bounds; the row's mass, by its first block.
/// waits for: nothing of other blocks, so that there is no deadlock; step 2 has ended.
/// source: as step 1, its scan.
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    write_tile_bounds(const __grid_constant__ TiledArguments<T> arguments) {
  __shared__ uint4 shared_cells[kTileCells / kQuad];
  auto* const cells = reinterpret_cast<std::uint32_t*>(shared_cells);
  const Tile<T> tile(arguments);
  const sampling::TableHeader& header = arguments.rows.header;
  tile.stage(cells);
  const std::uint32_t exponent = tile.exponent_of_row();
  const Tally all = tally_of_tiles(tile.aggregates, arguments.tiles_of_row);
  const Tally tiles_before = tally_of_tiles(tile.aggregates, tile.index);
  const WeightTally mass_of{exponent};
  const Tally warps_before = tally_warps<kTileThreads>(SharedCells{cells}, tile.count, mass_of).before;
  std::uint32_t* const lower = row_target(header, arguments.rows.table, tile.row).lower;
  const CellRange<SharedCells> range{{cells}, tile.count, lower + tile.first_cell()};
  write_bounds<kTileThreads>(range, BoundScale(all), tiles_before + warps_before, mass_of,
                             [](std::uint32_t, const std::uint32_t(&)[kQuad], std::uint32_t) {});
  if (threadIdx.x == 0 && tile.index == 0) {
    arguments.rows.row_masses[tile.row] = {row_mass(all.sum, row_weight(header, tile.row % header.height)),
                                           exponent, kPublished};
  }
}

template <class T>
void build_rows(CudaExecutor& executor, const TiledPlan& plan, const RowsArguments<T>& rows) {
  const TiledArguments<T> arguments{rows, executor.scratch<TileAggregate>(plan.aggregates).data(),
                                    plan.row_tiles};
  for (const auto kernel : {reduce_tile_maxima<T>, reduce_tile_sums<T>, write_tile_bounds<T>}) {
    executor.check_interrupt();
    kernel<<<static_cast<unsigned>(plan.aggregates), kTileThreads, 0, executor.stream()>>>(arguments);
    CUMULUS_CUDA(cudaGetLastError());
  }
}

template void build_rows(CudaExecutor&, const TiledPlan&, const RowsArguments<float>&);
template void build_rows(CudaExecutor&, const TiledPlan&, const RowsArguments<std::uint8_t>&);
template void build_rows(CudaExecutor&, const TiledPlan&, const RowsArguments<Float16>&);
template void build_rows(CudaExecutor&, const TiledPlan&, const RowsArguments<CellWeight>&);

}  // namespace cumulus::sampling_table
