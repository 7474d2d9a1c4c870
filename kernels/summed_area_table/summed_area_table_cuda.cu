#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/core/cuda_error.h"
#include "kernels/summed_area_table/look_back.cuh"
#include "kernels/summed_area_table/summed_area_table.h"
#include "kernels/summed_area_table/summed_area_table_check.h"
#include "kernels/summed_area_table/summed_area_table_tuning.h"
#include "kernels/summed_area_table/summed_area_table_types.h"
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
__device__ void publish_own_sums(TileMemory<P>& memory, Tile tile, Word<typename P::Sum>* words) {
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

/// Finds a column's sum above the tile for each lane.
template <class P>
__device__ void resolve_column(const Arguments<P>& a, TileMemory<P>& memory, Tile tile,
                               Word<typename P::Sum>* words, int column) {
  using Sum = typename P::Sum;
  Sum above = 0;
  if (tile.row > 0) {
    above = look_back(words + column, a.tile_columns * a.words_per_tile, tile.row, true);
    publish(words + column, State::kInclusive, above + memory.above[column]);
  }
  memory.above[column] = above;
}

/// The corner's share of one channel of a group of rows: what lies left of the tiles above, in such groups.
/// `left` is what lies left of this tile in the group's rows.
template <class P>
__device__ typename P::Sum resolve_corner(const Arguments<P>& a, Tile tile, Word<typename P::Sum>* word,
                                          typename P::Sum left) {
  using Sum = typename P::Sum;
  if (tile.column == 0) return Sum{0};
  const bool publisher = lane_index() == 31;
  if (publisher) publish(word, tile.row == 0 ? State::kInclusive : State::kOwn, left);
  if (tile.row == 0) return Sum{0};
  const Sum corner = look_back_wide(word, a.tile_columns * a.words_per_tile, tile.row);
  if (publisher) publish(word, State::kInclusive, corner + left);
  return corner;
}

/// Finds, for one channel of a group of rows, what lies to the left of the tile in each, and above that.
template <class P>
__device__ void resolve_rows(const Arguments<P>& a, TileMemory<P>& memory, Tile tile,
                             Word<typename P::Sum>* words, int job) {
  using Sum = typename P::Sum;
  const RowOfLane<P> lane(job);
  Sum left = 0;
  if (tile.column > 0) {
    Word<Sum>* word = words + P::kRowWord + (lane.exists() ? lane.word() : 0);
    const Sum found = look_back(word, a.words_per_tile, tile.column, lane.exists());
    if (lane.exists()) {
      left = found;
      publish(word, State::kInclusive, left + memory.rows[lane.word()]);
    }
  }
  const Sum through_row = warp_inclusive_scan(left);
  if (lane.exists()) memory.rows[lane.word()] = through_row;
  const Sum corner = resolve_corner<P>(a, tile, words + P::kCornerWord + job, through_row);
  if (lane_index() != 31) return;
  memory.group_left[job] = through_row;
  memory.group_corner[job] = corner;
}

template <class P>
__device__ void resolve(const Arguments<P>& a, TileMemory<P>& memory, Tile tile,
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

/// Hands out the tiles. One thread of the block takes its tickets.
template <class P>
struct Tickets {
  const Arguments<P>& a;
  TileMemory<P>& memory;

  __device__ bool taker() const { return threadIdx.x == P::kThreads - 32; }
  __device__ std::uint32_t take() const { return taker() ? atomicAdd(a.next_ticket, 1u) : 0; }
  /// Into memory.next_tile; to be read after a barrier.
  __device__ void announce(std::uint32_t ticket) const {
    if (!taker()) return;
    const std::uint32_t tickets = a.planes * a.tile_rows * a.tile_columns;
    memory.next_tile =
        ticket < tickets ? tile_of_ticket(ticket, a.tile_rows, a.tile_columns) : Tile{-1, -1, 0};
  }
};

/// Everything of one table's tile but its loading: from its pixels in shared memory to its sums in the table.
/// The next tile is announced on the way, while its ticket is awaited anyway, if this is the pixels'
/// `kLastUse`.
template <class P, Term kTerm, bool kLastUse>
__device__ void build_tile(const Arguments<P>& a, const Planes<typename P::Sum>& table, TileMemory<P>& memory,
                           Tile tile, Word<typename P::Sum>* words) {
  const Tickets<P> tickets{a, memory};
  const Offsets<P> offsets(a, tile);
  sum_strip<P, kTerm>(a, memory, tile, offsets);
  __syncthreads();
  publish_own_sums(memory, tile, words);
  const std::uint32_t ticket = kLastUse ? tickets.take() : 0;
  resolve(a, memory, tile, words);
  if (kLastUse) tickets.announce(ticket);
  __syncthreads();
  store_strip<P, kTerm>(a, table, memory, tile, offsets);
  if (a.exclusive) store_zeros<P>(a, table, tile);
}

/// Blocks take tiles until there are none left; the next one's pixels come in while this one's table goes
/// out.
template <class P>
__global__ void __launch_bounds__(P::kThreads, P::kResidentBlocks) build_table(const Arguments<P> a) {
  extern __shared__ uint4 shared_memory[];
  auto& memory = *reinterpret_cast<TileMemory<P>*>(shared_memory);
  const Tickets<P> tickets{a, memory};
  const std::int64_t words_of_plane = std::int64_t{a.tile_rows} * a.tile_columns * a.words_per_tile;

#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();  // for clear_scratch
#endif
  tickets.announce(tickets.take());
  __syncthreads();
  Tile tile = memory.next_tile;
  if (tile.row >= 0) load_strip(a, memory, tile);
  while (tile.row >= 0) {
    Word<typename P::Sum>* words = a.words + tile.plane * words_of_plane +
                                   (std::int64_t{tile.row} * a.tile_columns + tile.column) * a.words_per_tile;
    finish_copies();
    if constexpr (P::kTerms == Terms::kValuesAndSquares) {
      build_tile<P, Term::kValue, false>(a, a.sums, memory, tile, words);
      __syncthreads();
      build_tile<P, Term::kSquare, true>(a, a.squares, memory, tile, words + a.planes * words_of_plane);
    } else {
      build_tile<P, P::kFirstTerm, true>(a, a.sums, memory, tile, words);
    }
    // From here to the next barrier a warp touches its own strip and rows only.
    tile = memory.next_tile;
    __syncwarp();
    if (tile.row >= 0) load_strip(a, memory, tile);
  }
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

/// Describes an array; its channels are planes of their own where the kernel takes one channel at a time.
template <class P, class T, class View>
Planes<T> planes_of(T* data, const View& view, std::int64_t plane_stride) {
  const std::int64_t element_stride = P::kChannels == view.channels ? 1 : view.channels;
  const auto bytes = [](std::int64_t elements) { return elements * static_cast<std::int64_t>(sizeof(T)); };
  const bool aligned = element_stride == 1 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0 &&
                       bytes(view.row_stride) % 16 == 0 && bytes(plane_stride) % 16 == 0;
  return {data, plane_stride, view.row_stride, element_stride, aligned};
}

template <class P, class Job>
void launch(CudaExecutor& executor, const Job& job) {
  using Sum = typename P::Sum;
  const DeviceImage<const typename P::Input>& image = job.image;
  const std::int64_t planes = P::kChannels == image.channels ? job.planes : job.planes * image.channels;
  const std::int64_t tables = P::kTerms == Terms::kValuesAndSquares ? 2 * planes : planes;
  const TileGrid grid =
      tile_grid(sizeof(typename P::Input), sizeof(Sum), image.height, image.width, P::kChannels, tables);
  static_assert(sizeof(Word<Sum>) == (sizeof(Sum) <= 4 ? 8 : 16));
  const auto scratch = executor.scratch<std::byte>(grid.scratch_bytes());
  executor.bind_thread();
  const auto scratch_words = static_cast<std::int64_t>(scratch.size() / sizeof(uint4));
  clear_scratch<<<static_cast<unsigned int>(divide_up(scratch_words, kClearThreads)), kClearThreads, 0,
                  executor.stream()>>>(reinterpret_cast<uint4*>(scratch.data()), scratch_words);
  CUMULUS_CUDA(cudaGetLastError());

  const std::int64_t zeros = job.exclusive ? job.sums.row_stride + job.sums.channels : 0;
  const auto table = [&](auto* data) {
    return planes_of<P>(data == nullptr ? nullptr : reinterpret_cast<Sum*>(data) + zeros, job.sums,
                        job.sums.elements());
  };
  const Arguments<P> arguments{.image = planes_of<P>(image.data, image, job.plane_stride),
                               .sums = table(job.sums.data),
                               .squares = table(job.squares),
                               .offsets = job.offsets,
                               .height = image.height,
                               .row_elements = image.width * P::kChannels,
                               .planes = static_cast<std::uint32_t>(planes),
                               .tile_rows = static_cast<std::uint32_t>(grid.tile_rows),
                               .tile_columns = static_cast<std::uint32_t>(grid.tile_columns),
                               .words_per_tile = grid.words_per_tile,
                               .next_ticket = reinterpret_cast<std::uint32_t*>(scratch.data()),
                               .words = reinterpret_cast<Word<Sum>*>(scratch.data() + kBlockAlignment),
                               .exclusive = job.exclusive};
  launch_after_clearing<P>(executor, planes * grid.tiles_per_plane(), arguments);
}

constexpr int kAverageThreads = 256;

/// Sums the block's values in a fixed order; the result is thread 0's.
__device__ double block_sum(double value) {
  __shared__ double of_warps[kAverageThreads / 32];
  value = warp_sum(value);
  if (lane_index() == 0) of_warps[warp_index()] = value;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0) {
    for (const double of_warp : of_warps) sum += of_warp;
  }
  __syncthreads();
  return sum;
}

/// A block for each row of each plane: its sum, channel by channel.
template <class Input>
__global__ void __launch_bounds__(kAverageThreads)
    sum_rows(DeviceImage<const Input> image, std::int64_t plane_stride, double* row_sums) {
  const std::int64_t row = blockIdx.x;
  const Input* pixels =
      image.data + row / image.height * plane_stride + row % image.height * image.row_stride;
  for (std::int64_t channel = 0; channel < image.channels; ++channel) {
    double sum = 0;
    for (std::int64_t x = threadIdx.x; x < image.width; x += kAverageThreads)
      sum += static_cast<double>(pixels[x * image.channels + channel]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) row_sums[row * image.channels + channel] = sum;
  }
}

/// A block for each channel of each plane.
__global__ void __launch_bounds__(kAverageThreads)
    average_rows(const double* row_sums, std::int64_t height, std::int64_t width, std::int64_t channels,
                 float* means) {
  const std::int64_t plane = blockIdx.x / channels;
  const std::int64_t channel = blockIdx.x % channels;
  double sum = 0;
  for (std::int64_t y = threadIdx.x; y < height; y += kAverageThreads)
    sum += row_sums[(plane * height + y) * channels + channel];
  sum = block_sum(sum);
  if (threadIdx.x == 0) means[blockIdx.x] = static_cast<float>(sum / (static_cast<double>(height) * width));
}

}  // namespace

template <class Input>
void average_image(CudaExecutor& executor, const TableJob<Input, float, Space::kDevice>& job,
                   DeviceSpan<float> means) {
  check_image("summed_area_table", job.image);
  executor.check_interrupt();
  executor.bind_thread();
  const std::int64_t rows = job.planes * job.image.height;
  const auto row_sums = executor.scratch<double>(static_cast<std::size_t>(rows * job.image.channels));
  sum_rows<<<static_cast<unsigned int>(rows), kAverageThreads, 0, executor.stream()>>>(
      job.image, job.plane_stride, row_sums.data());
  CUMULUS_CUDA(cudaGetLastError());
  average_rows<<<static_cast<unsigned int>(job.planes * job.image.channels), kAverageThreads, 0,
                 executor.stream()>>>(row_sums.data(), job.image.height, job.image.width, job.image.channels,
                                      means.data());
  CUMULUS_CUDA(cudaGetLastError());
}
template void average_image(CudaExecutor&, const TableJob<Float16, float, Space::kDevice>&,
                            DeviceSpan<float>);
template void average_image(CudaExecutor&, const TableJob<float, float, Space::kDevice>&, DeviceSpan<float>);

template <class Input, class Sum>
void build_summed_area_table(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job) {
  check_job(job);
  executor.check_interrupt();
  using Wide = Accumulator<Sum>;
  if constexpr (std::is_same_v<Sum, float>) {
    if (job.offsets != nullptr) return launch<Plan<Input, Wide, 1, Terms::kOffsets>>(executor, job);
  }
  if constexpr (kSumsSquares<Input, Sum>) {
    if (job.squares != nullptr) return launch<Plan<Input, Wide, 1, Terms::kValuesAndSquares>>(executor, job);
  }
  if constexpr (kSummedInterleaved<Input>) {
    switch (job.image.channels) {
      case 2:
        return launch<Plan<Input, Wide, 2, Terms::kValues>>(executor, job);
      case 3:
        return launch<Plan<Input, Wide, 3, Terms::kValues>>(executor, job);
      case 4:
        return launch<Plan<Input, Wide, 4, Terms::kValues>>(executor, job);
      default:
        break;
    }
  }
  launch<Plan<Input, Wide, 1, Terms::kValues>>(executor, job);
}

#define CUMULUS_ON_CUDA(Input, Sum) \
  template void build_summed_area_table(CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&)
CUMULUS_SUMMED_AREA_TABLE_PAIRS(CUMULUS_ON_CUDA);

}  // namespace cumulus
