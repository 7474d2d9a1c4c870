#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/core/cuda_error.h"
#include "kernels/summed_area_table/look_back.cuh"
#include "kernels/summed_area_table/summed_area_table.h"
#include "kernels/summed_area_table/summed_area_table_check.h"
#include "kernels/summed_area_table/summed_area_table_tuning.h"
#include "kernels/summed_area_table/table_queries.cuh"
#include "kernels/summed_area_table/tile_strips.cuh"

// One kernel, one tile per block, in the spirit of the single-pass scan of D. Merrill and M. Garland
// ("Single-pass parallel prefix scan with decoupled look-back", 2016), in two dimensions. Of its pixels, kept
// in registers, a block publishes the sum of each column and of each row of the tile; from what the tiles
// above and to the left have published it gathers, per column, the sum of everything above the tile
// (`above`), per row the sum of everything to its left, and per channel the sum of everything above and to
// the left of it (the corner). Then the table inside the tile needs one more scan and no further
// communication.
//
// The corner is a column of its own (one for each group of 32 rows): tile (i, j) contributes to it the sum of
// the pixels to the left of tile (i, j) in the tile's rows.

namespace cumulus {
namespace {

using namespace summed_area_table;

/// The row and channel that a lane of a row job looks after.
template <class P>
struct RowOfLane {
  int row;
  int channel;
  __device__ explicit RowOfLane(int job)
      : row(job / P::kChannels * 32 + lane_index()), channel(job % P::kChannels) {}
  __device__ bool exists() const { return row < P::kRows; }
  __device__ int word() const { return row * P::kChannels + channel; }
};

/// Publishes what the tile knows by itself, and turns memory.strips into sums over the strips before.
template <class P>
__device__ void publish_own_sums(TileMemory<P>& memory, TileIndex tile, Word<typename P::Sum>* words) {
  using Sum = typename P::Sum;
  for (int job = warp_index(); job < P::kJobs; job += P::kWarps) {
    if (job < P::kRowJobs) {
      const RowOfLane<P> lane(job);
      const State state = tile.column == 0 ? State::kInclusive : State::kOwn;
      if (lane.exists()) publish(words + P::kRowWord + lane.word(), state, memory.rows[lane.word()]);
    } else {
      const int column = (job - P::kRowJobs) * 32 + lane_index();
      Sum sum = 0;
#pragma unroll
      for (int warp = 0; warp < P::kWarps; ++warp) {
        const Sum own = memory.strips[warp][column];
        memory.strips[warp][column] = sum;
        sum += own;
      }
      publish(words + column, tile.row == 0 ? State::kInclusive : State::kOwn, sum);
      memory.above[column] = sum;
    }
  }
}

/// Finds one column's sum above the tile.
template <class P>
__device__ void resolve_column(const Arguments<P>& a, TileMemory<P>& memory, TileIndex tile,
                               Word<typename P::Sum>* words, int column) {
  using Sum = typename P::Sum;
  Sum above = 0;
  if (tile.row > 0) {
    above = look_back(words + column, a.tile_columns * a.words_per_tile, tile.row);
    publish(words + column, State::kInclusive, above + memory.above[column]);
  }
  memory.above[column] = above;
}

/// Finds, for one channel of a group of rows, what lies to the left of the tile in each, and above that.
template <class P>
__device__ void resolve_rows(const Arguments<P>& a, TileMemory<P>& memory, TileIndex tile,
                             Word<typename P::Sum>* words, int job) {
  using Sum = typename P::Sum;
  const RowOfLane<P> lane(job);
  Sum left = 0;
  if (tile.column > 0 && lane.exists()) {
    Word<Sum>* word = words + P::kRowWord + lane.word();
    left = look_back(word, a.words_per_tile, tile.column);
    publish(word, State::kInclusive, left + memory.rows[lane.word()]);
  }
  __syncwarp();
  const Sum through_row = warp_inclusive_scan(left);
  if (lane.exists()) memory.rows[lane.word()] = through_row;
  if (lane_index() != 31) return;

  memory.group_left[job] = through_row;
  Sum corner = 0;
  if (tile.column > 0) {
    Word<Sum>* word = words + P::kCornerWord + job;
    publish(word, tile.row == 0 ? State::kInclusive : State::kOwn, through_row);
    if (tile.row > 0) {
      corner = look_back(word, a.tile_columns * a.words_per_tile, tile.row);
      publish(word, State::kInclusive, corner + through_row);
    }
  }
  memory.group_corner[job] = corner;
}

template <class P>
__device__ void resolve(const Arguments<P>& a, TileMemory<P>& memory, TileIndex tile,
                        Word<typename P::Sum>* words) {
  for (int job = warp_index(); job < P::kJobs; job += P::kWarps) {
    if (job < P::kRowJobs) {
      resolve_rows<P>(a, memory, tile, words, job);
      __syncwarp();
    } else {
      resolve_column<P>(a, memory, tile, words, (job - P::kRowJobs) * 32 + lane_index());
    }
  }
}

constexpr int kClearThreads = 256;

/// Zeroes the tickets and the words. The kernel after it may start at once; it waits where it needs them.
__global__ void __launch_bounds__(kClearThreads) clear_scratch(uint4* scratch, std::int64_t count) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  const std::int64_t i = std::int64_t{blockIdx.x} * kClearThreads + threadIdx.x;
  if (i < count) scratch[i] = uint4{};
}

/// Blocks take tiles until there are none left; the next one's pixels come in while this one's table goes
/// out.
template <class P>
__global__ void __launch_bounds__(P::kThreads, P::kResidentBlocks) build_table(const Arguments<P> a) {
  extern __shared__ uint4 shared_memory[];
  auto& memory = *reinterpret_cast<TileMemory<P>*>(shared_memory);
  const std::uint32_t tiles = a.tile_rows * a.tile_columns;
  const auto take_ticket = [&] { return atomicAdd(a.next_ticket, 1u); };
  const auto announce = [&](std::uint32_t ticket) {
    memory.next_tile =
        ticket < tiles ? tile_of_ticket(ticket, a.tile_rows, a.tile_columns) : TileIndex{-1, -1};
  };
  const bool announcer = threadIdx.x == P::kThreads - 32;

#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();  // for clear_scratch
#endif
  if (announcer) announce(take_ticket());
  __syncthreads();
  TileIndex tile = memory.next_tile;
  if (tile.row >= 0) load_strip(a, memory, tile);
  while (tile.row >= 0) {
    Word<typename P::Sum>* words =
        a.words + (std::int64_t{tile.row} * a.tile_columns + tile.column) * a.words_per_tile;
    finish_copies();
    sum_strip(memory);
    __syncthreads();
    publish_own_sums(memory, tile, words);
    const std::uint32_t ticket = announcer ? take_ticket() : 0;
    resolve(a, memory, tile, words);
    if (announcer) announce(ticket);
    __syncthreads();
    store_strip(a, memory, tile);
    // From here to the next barrier a warp touches its own strip and rows only.
    tile = memory.next_tile;
    __syncwarp();
    if (tile.row >= 0) load_strip(a, memory, tile);
  }
}

template <class T>
bool rows_aligned(const T* data, std::int64_t row_stride) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 &&
         row_stride * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
}

/// Starts the kernel while clear_scratch still runs, where it has been compiled to wait for that by itself.
template <class P>
void launch_after_clearing(CudaExecutor& executor, std::int64_t tiles, const Arguments<P>& arguments) {
  constexpr int kSharedBytes = sizeof(TileMemory<P>);
  static_assert(kSharedBytes <= 64 * 1024, "every GPU offers a block this much");
  CUMULUS_CUDA(
      cudaFuncSetAttribute(build_table<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  CUMULUS_CUDA(cudaFuncSetAttribute(build_table<P>, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxShared));
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, build_table<P>));

  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  const std::int64_t resident = std::int64_t{P::kBlocks} * executor.device().multiprocessors();
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned int>(std::min(tiles, resident));
  config.blockDim = P::kThreads;
  config.dynamicSmemBytes = kSharedBytes;
  config.stream = executor.stream();
  config.attrs = &early;
  config.numAttrs = compiled.ptxVersion >= 90 ? 1 : 0;
  CUMULUS_CUDA(cudaLaunchKernelEx(&config, build_table<P>, arguments));
}

template <class P>
void launch(CudaExecutor& executor, const DeviceImage<const typename P::Input>& image,
            const DeviceImage<typename P::Sum>& sums) {
  using Sum = typename P::Sum;
  const TileGrid grid =
      tile_grid(sizeof(typename P::Input), sizeof(Sum), image.height, image.width, image.channels);
  static_assert(sizeof(Word<Sum>) == (sizeof(Sum) <= 4 ? 8 : 16));
  const auto scratch = executor.scratch<std::byte>(grid.scratch_bytes());
  executor.bind_thread();
  const auto scratch_words = static_cast<std::int64_t>(scratch.size() / sizeof(uint4));
  clear_scratch<<<static_cast<unsigned int>(divide_up(scratch_words, kClearThreads)), kClearThreads, 0,
                  executor.stream()>>>(reinterpret_cast<uint4*>(scratch.data()), scratch_words);
  CUMULUS_CUDA(cudaGetLastError());

  const Arguments<P> arguments{.image = image.data,
                               .sums = sums.data,
                               .height = image.height,
                               .row_elements = image.width * image.channels,
                               .row_stride = image.row_stride,
                               .tile_rows = static_cast<std::uint32_t>(grid.tile_rows),
                               .tile_columns = static_cast<std::uint32_t>(grid.tile_columns),
                               .words_per_tile = grid.words_per_tile,
                               .next_ticket = reinterpret_cast<std::uint32_t*>(scratch.data()),
                               .words = reinterpret_cast<Word<Sum>*>(scratch.data() + kBlockAlignment),
                               .image_aligned = rows_aligned(image.data, image.row_stride),
                               .sums_aligned = rows_aligned(sums.data, sums.row_stride)};
  launch_after_clearing<P>(executor, grid.tiles(), arguments);
}

template <class Input, class Sum>
void build(CudaExecutor& executor, const DeviceImage<const Input>& image, const DeviceImage<Sum>& sums) {
  check_views(image, sums);
  executor.check_interrupt();
  switch (image.channels) {
    case 1:
      return launch<Plan<Input, Sum, 1>>(executor, image, sums);
    case 2:
      return launch<Plan<Input, Sum, 2>>(executor, image, sums);
    case 3:
      return launch<Plan<Input, Sum, 3>>(executor, image, sums);
    default:
      return launch<Plan<Input, Sum, 4>>(executor, image, sums);
  }
}

template <class Sum, class Input>
void filter_with_table_of(CudaExecutor& executor, const DeviceImage<const Input>& image, std::int64_t radius,
                          const DeviceImage<float>& filtered) {
  const auto storage = executor.scratch<Sum>(static_cast<std::size_t>(image.elements()));
  const DeviceImage<Sum> sums(storage.data(), image.height, image.width, image.channels);
  build_summed_area_table(executor, image, sums);
  executor.check_interrupt();
  const std::int64_t stretches = divide_up(image.width * image.channels, kQueryThreads);
  const FilterArguments<Sum> arguments{sums.data, image.height, image.width,  image.channels,
                                       radius,    stretches,    filtered.data};
  const std::int64_t blocks = std::min(image.height * stretches, kMostQueryBlocks);
  filter_from_table<<<static_cast<unsigned int>(blocks), kQueryThreads, 0, executor.stream()>>>(arguments);
  CUMULUS_CUDA(cudaGetLastError());
}

template <bool kMean, class Sum, class Result>
void query(CudaExecutor& executor, const DeviceImage<const Sum>& table,
           const DeviceSpan<const Rectangle>& rectangles, const DeviceSpan<Result>& results) {
  check_rectangles(table, rectangles.size(), results.size());
  executor.check_interrupt();
  if (results.empty()) return;
  executor.bind_thread();
  const auto count = static_cast<std::int64_t>(results.size());
  const std::int64_t blocks = std::min(divide_up(count, kQueryThreads), kMostQueryBlocks);
  query_rectangles<kMean><<<static_cast<unsigned int>(blocks), kQueryThreads, 0, executor.stream()>>>(
      table, rectangles.data(), results.data(), count);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace

void build_summed_area_table(CudaExecutor& executor, DeviceImage<const std::uint8_t> image,
                             DeviceImage<std::uint32_t> sums) {
  build(executor, image, sums);
}
void build_summed_area_table(CudaExecutor& executor, DeviceImage<const std::uint8_t> image,
                             DeviceImage<std::uint64_t> sums) {
  build(executor, image, sums);
}
void build_summed_area_table(CudaExecutor& executor, DeviceImage<const float> image,
                             DeviceImage<double> sums) {
  build(executor, image, sums);
}
void build_summed_area_table(CudaExecutor& executor, DeviceImage<const float> image,
                             DeviceImage<float> sums) {
  build(executor, image, sums);
}

void filter_box(CudaExecutor& executor, DeviceImage<const std::uint8_t> image, std::int64_t radius,
                DeviceImage<float> filtered) {
  check_views(image, filtered);
  check_radius(radius);
  radius = std::min(radius, std::max(image.height, image.width));
  if (box_sums_fit_32_bits(image.height, image.width, radius)) {
    filter_with_table_of<std::uint32_t>(executor, image, radius, filtered);
  } else {
    filter_with_table_of<std::uint64_t>(executor, image, radius, filtered);
  }
}
void filter_box(CudaExecutor& executor, DeviceImage<const float> image, std::int64_t radius,
                DeviceImage<float> filtered) {
  check_views(image, filtered);
  check_radius(radius);
  filter_with_table_of<double>(executor, image, std::min(radius, std::max(image.height, image.width)),
                               filtered);
}

template <class Sum>
void sum_rectangles(CudaExecutor& executor, DeviceImage<const Sum> table,
                    DeviceSpan<const Rectangle> rectangles, DeviceSpan<Sum> sums) {
  query<false>(executor, table, rectangles, sums);
}
template <class Sum>
void average_rectangles(CudaExecutor& executor, DeviceImage<const Sum> table,
                        DeviceSpan<const Rectangle> rectangles, DeviceSpan<double> means) {
  query<true>(executor, table, rectangles, means);
}

template void sum_rectangles(CudaExecutor&, DeviceImage<const std::uint32_t>, DeviceSpan<const Rectangle>,
                             DeviceSpan<std::uint32_t>);
template void sum_rectangles(CudaExecutor&, DeviceImage<const std::uint64_t>, DeviceSpan<const Rectangle>,
                             DeviceSpan<std::uint64_t>);
template void sum_rectangles(CudaExecutor&, DeviceImage<const float>, DeviceSpan<const Rectangle>,
                             DeviceSpan<float>);
template void sum_rectangles(CudaExecutor&, DeviceImage<const double>, DeviceSpan<const Rectangle>,
                             DeviceSpan<double>);
template void average_rectangles(CudaExecutor&, DeviceImage<const std::uint32_t>, DeviceSpan<const Rectangle>,
                                 DeviceSpan<double>);
template void average_rectangles(CudaExecutor&, DeviceImage<const std::uint64_t>, DeviceSpan<const Rectangle>,
                                 DeviceSpan<double>);
template void average_rectangles(CudaExecutor&, DeviceImage<const float>, DeviceSpan<const Rectangle>,
                                 DeviceSpan<double>);
template void average_rectangles(CudaExecutor&, DeviceImage<const double>, DeviceSpan<const Rectangle>,
                                 DeviceSpan<double>);

}  // namespace cumulus
