#pragma once

#include <cub/block/block_reduce.cuh>

#include "kernels/core/cuda_executor.h"
#include "kernels/sampling_table/rows/texels.cuh"

// The lower bounds of rows that are too long for one block, by many: each has a tile.
namespace cumulus::sampling_lines {

using namespace sampling_rows;

inline constexpr int kTileThreads = 256;

template <class T>
struct LinesArguments {
  RowsArguments<T> rows;
  RowTile* tiles;
  std::uint32_t tiles_of_row;
};

/// A block's tile, whose weights are staged.
template <class T>
class OwnTile {
 public:
  __device__ explicit OwnTile(const LinesArguments<T>& arguments)
      : arguments_(arguments),
        row(blockIdx.x / arguments.tiles_of_row),
        index(blockIdx.x % arguments.tiles_of_row),
        count(min(kTileCells, arguments.rows.header.width - first_cell())),
        of_row(arguments.tiles + std::size_t{row} * arguments.tiles_of_row) {}

  __device__ std::uint32_t first_cell() const { return index * kTileCells; }
  __device__ RowTile& own() const { return of_row[index]; }

  /// Stages the weights, and returns the largest of this thread's.
  __device__ std::uint32_t stage(std::uint32_t* cells) const {
    return TexelRun<T>(arguments_.rows, row, first_cell(), count).template stage<kTileThreads>(cells);
  }

  /// The block meets here.
  __device__ std::uint32_t exponent_of_row() const {
    std::uint32_t largest = 0;
    for (std::uint32_t i = threadIdx.x; i < arguments_.tiles_of_row; i += kTileThreads) {
      largest = max(largest, of_row[i].largest);
    }
    return row_exponent(largest_of_block<kTileThreads / 32>(largest), arguments_.rows.header.width);
  }

 private:
  const LinesArguments<T>& arguments_;

 public:
  const std::uint32_t row;
  const std::uint32_t index;  ///< In the row.
  const std::uint32_t count;  ///< Cells.
  RowTile* const of_row;
};

template <class T>
__global__ void __launch_bounds__(kTileThreads)
    find_largest(const __grid_constant__ LinesArguments<T> arguments) {
  __shared__ uint4 cells[kTileCells / kQuad];
  const OwnTile<T> tile(arguments);
  const std::uint32_t largest =
      largest_of_block<kTileThreads / 32>(tile.stage(reinterpret_cast<std::uint32_t*>(cells)));
  if (threadIdx.x == 0) tile.own().largest = largest;
}

template <class T>
__global__ void __launch_bounds__(kTileThreads) add_up(const __grid_constant__ LinesArguments<T> arguments) {
  __shared__ uint4 cells[kTileCells / kQuad];
  const OwnTile<T> tile(arguments);
  tile.stage(reinterpret_cast<std::uint32_t*>(cells));
  const std::uint32_t exponent = tile.exponent_of_row();
  const Tally all = tally_warps<kTileThreads>(reinterpret_cast<const std::uint32_t*>(cells), tile.count,
                                              WeightTally{exponent})
                        .all;
  if (threadIdx.x > 0) return;
  tile.own().sum = all.sum;
  tile.own().positive = all.positive;
}

struct JoinTallies {
  __device__ Tally operator()(const Tally& a, const Tally& b) const { return a + b; }
};

/// The tally of the first `count` tiles, to every thread.
__device__ inline Tally tally_of(const RowTile* tiles, std::uint32_t count) {
  using Join = cub::BlockReduce<Tally, kTileThreads>;
  __shared__ typename Join::TempStorage storage;
  __shared__ std::uint64_t sum;
  __shared__ std::uint32_t positive;
  Tally own;
  for (std::uint32_t i = threadIdx.x; i < count; i += kTileThreads) {
    own = own + Tally{tiles[i].sum, tiles[i].positive};
  }
  own = Join(storage).Reduce(own, JoinTallies{});
  if (threadIdx.x == 0) {
    sum = own.sum;
    positive = own.positive;
  }
  __syncthreads();
  const Tally all{sum, positive};
  __syncthreads();
  return all;
}

template <class T>
__global__ void __launch_bounds__(kTileThreads)
    write_tile_bounds(const __grid_constant__ LinesArguments<T> arguments) {
  __shared__ uint4 shared_cells[kTileCells / kQuad];
  auto* const cells = reinterpret_cast<std::uint32_t*>(shared_cells);
  const OwnTile<T> tile(arguments);
  const sampling::TableHeader& header = arguments.rows.header;
  tile.stage(cells);
  const std::uint32_t exponent = tile.exponent_of_row();
  const Tally all = tally_of(tile.of_row, arguments.tiles_of_row);
  const Tally tiles_before = tally_of(tile.of_row, tile.index);
  const WeightTally mass_of{exponent};
  const Tally warps_before = tally_warps<kTileThreads>(cells, tile.count, mass_of).before;
  std::uint32_t* const lower = sampling_layout::row_target(header, arguments.rows.table, tile.row).lower;
  write_bounds<kTileThreads>(cells, tile.count, BoundScale(all), tiles_before + warps_before, mass_of,
                             lower + tile.first_cell(),
                             [](std::uint32_t, const std::uint32_t(&)[kQuad], std::uint32_t) {});
  if (threadIdx.x == 0 && tile.index == 0) {
    arguments.rows.row_masses[tile.row] = {row_mass(all.sum, row_weight(header, tile.row % header.height)),
                                           exponent, 0};
  }
}

template <class T>
void write_lines(CudaExecutor& executor, const LinesArguments<T>& arguments) {
  const unsigned tiles = arguments.rows.header.layers * arguments.rows.header.height * arguments.tiles_of_row;
  for (const auto kernel : {find_largest<T>, add_up<T>, write_tile_bounds<T>}) {
    executor.check_interrupt();
    kernel<<<tiles, kTileThreads, 0, executor.stream()>>>(arguments);
    CUMULUS_CUDA(cudaGetLastError());
  }
}

}  // namespace cumulus::sampling_lines
