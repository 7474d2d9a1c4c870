#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/core/cuda_error.h"
#include "kernels/summed_area_table/look_back.cuh"
#include "kernels/summed_area_table/summed_area_table.h"
#include "kernels/summed_area_table/summed_area_table_check.h"
#include "kernels/summed_area_table/summed_area_table_tuning.h"

// One kernel, one tile per block, in the spirit of the single-pass scan of D. Merrill and M. Garland
// ("Single-pass parallel prefix scan with decoupled look-back", 2016), in two dimensions. Of its pixels, kept
// in registers, a block publishes the sum of each column and of each row of the tile; from what the tiles
// above and to the left have published it gathers, per column, the sum of everything above the tile
// (`above`), per row the sum of everything to its left, and per channel the sum of everything above and to
// the left of it (the corner). Then the table inside the tile needs one more scan and no further
// communication.
//
// The corner is a column of its own: tile (i, j) contributes to it the sum of the pixels to the left of tile
// (i, j) in the tile's rows.

namespace cumulus {
namespace {

using summed_area_table::check_radius;
using summed_area_table::check_views;
using summed_area_table::TileGrid;
using summed_area_table::TileShape;
using namespace summed_area_table::look_back;

/// Four neighbouring elements, moved as one word where memory allows.
template <class T>
struct alignas(sizeof(T) * 4 < 16 ? sizeof(T) * 4 : 16) Quad {
  T v[4];
};

/// A quad of the image in registers: bytes stay packed.
template <class Input>
struct InputQuad;

template <>
struct InputQuad<float> {
  float v[4] = {};
  __device__ void load(const float* from) {
    const float4 word = __ldcs(reinterpret_cast<const float4*>(from));
    v[0] = word.x;
    v[1] = word.y;
    v[2] = word.z;
    v[3] = word.w;
  }
  __device__ void set(int i, float value) { v[i] = value; }
  __device__ float operator[](int i) const { return v[i]; }
};

template <>
struct InputQuad<std::uint8_t> {
  std::uint32_t packed = 0;
  __device__ void load(const std::uint8_t* from) {
    packed = __ldcs(reinterpret_cast<const std::uint32_t*>(from));
  }
  __device__ void set(int i, std::uint8_t value) {
    packed |= std::uint32_t{value} << (8 * i);
  }  // once, from zero
  __device__ std::uint32_t operator[](int i) const { return packed >> (8 * i) & 0xFF; }
};

/// What the kernel knows at compile time.
template <class InputType, class SumType, int ChannelCount>
struct Plan {
  using Input = InputType;
  using Sum = SumType;
  static constexpr int kChannels = ChannelCount;
  static constexpr TileShape kShape = summed_area_table::tile_shape(sizeof(Input), kChannels);
  static constexpr int kWarps = kShape.warps;
  static constexpr int kRowsPerWarp = kShape.rows_per_warp;
  static constexpr int kSegments = kShape.segments;
  static constexpr int kElements = kShape.lane_elements;
  static constexpr int kQuads = kElements / 4;
  static constexpr int kRows = kShape.rows();
  static constexpr int kColumns = kShape.columns();
  static constexpr int kRowsPerLane = (kRows + 31) / 32;
  static constexpr int kBlocksPerMultiprocessor =
      summed_area_table::blocks_per_multiprocessor(sizeof(Input), sizeof(Sum), kChannels);
  static_assert(kElements % kChannels == 0 && kElements % 4 == 0,
                "a lane holds whole pixels and whole quads");

  /// Words of a tile: its columns, the corner's channels, its rows (channels interleaved).
  static constexpr int kCornerWord = kColumns;
  static constexpr int kRowWord = kColumns + kChannels;
  /// Warps' shares of publishing and looking back: one per channel of the rows, one per 32 columns.
  static constexpr int kJobs = kChannels + kColumns / 32;

  /// A lane's pixels of the warp's rows.
  using Strip = InputQuad<Input>[kRowsPerWarp][kSegments][kQuads];
};

template <class P>
struct Arguments {
  const typename P::Input* image;
  typename P::Sum* sums;
  std::int64_t height;
  std::int64_t row_elements;
  std::int64_t row_stride;
  std::int64_t tile_rows;
  std::int64_t tile_columns;
  std::int64_t words_per_tile;
  unsigned int* next_ticket;
  Word<typename P::Sum>* words;
  bool quads_aligned;  // every row of both images begins at a multiple of a quad's alignment
};

template <class P>
struct TileMemory {
  using Sum = typename P::Sum;
  alignas(16)
      Sum strips[P::kWarps + 1][P::kColumns];  // column sums of the rows of the warps before; last: of all
  alignas(16) Sum above[P::kColumns];
  Sum row_sums[P::kRows * P::kChannels];
  Sum left[P::kRows * P::kChannels];  // everything left of the tile and not below the row, corner included
  TileIndex tile;
};

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x % 32); }
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x / 32); }

/// The first element of the lane's quad, counted from the tile's left edge.
template <class P>
__device__ int quad_column(int segment, int quad) {
  return (segment * 32 + lane_index()) * P::kElements + quad * 4;
}

template <class P>
__device__ void load_guarded(const Arguments<P>& a, std::int64_t y, std::int64_t x,
                             InputQuad<typename P::Input>& quad) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (y < a.height && x + i < a.row_elements) quad.set(i, __ldg(a.image + y * a.row_stride + x + i));
  }
}

template <class P>
__device__ void load_strip(const Arguments<P>& a, TileIndex tile, bool whole, typename P::Strip& strip) {
  const std::int64_t first_row = tile.row * P::kRows + warp_index() * P::kRowsPerWarp;
  const std::int64_t first_column = tile.column * P::kColumns;
#pragma unroll
  for (int r = 0; r < P::kRowsPerWarp; ++r) {
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
      for (int q = 0; q < P::kQuads; ++q) {
        const std::int64_t x = first_column + quad_column<P>(s, q);
        if (whole) {
          strip[r][s][q].load(a.image + (first_row + r) * a.row_stride + x);
        } else {
          load_guarded<P>(a, first_row + r, x, strip[r][s][q]);
        }
      }
    }
  }
}

template <class Sum>
__device__ Sum warp_sum(Sum value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

template <class Sum>
__device__ Sum warp_inclusive_scan(Sum value) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const Sum before = __shfl_up_sync(~0u, value, distance);
    if (lane_index() >= distance) value += before;
  }
  return value;
}

template <class Sum>
__device__ Sum before_lane(Sum inclusive) {
  const Sum before = __shfl_up_sync(~0u, inclusive, 1);
  return lane_index() == 0 ? Sum{0} : before;
}

/// Sums the warp's strip by columns and by rows.
template <class P>
__device__ void sum_strip(const typename P::Strip& strip, TileMemory<P>& memory) {
  using Sum = typename P::Sum;
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int q = 0; q < P::kQuads; ++q) {
      Quad<Sum> columns{};
#pragma unroll
      for (int r = 0; r < P::kRowsPerWarp; ++r) {
#pragma unroll
        for (int i = 0; i < 4; ++i) columns.v[i] += static_cast<Sum>(strip[r][s][q][i]);
      }
      *reinterpret_cast<Quad<Sum>*>(&memory.strips[warp_index()][quad_column<P>(s, q)]) = columns;
    }
  }
#pragma unroll
  for (int r = 0; r < P::kRowsPerWarp; ++r) {
    Sum totals[P::kChannels] = {};
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
      for (int e = 0; e < P::kElements; ++e) {
        totals[e % P::kChannels] += static_cast<Sum>(strip[r][s][e / 4][e % 4]);
      }
    }
#pragma unroll
    for (int channel = 0; channel < P::kChannels; ++channel) {
      const Sum total = warp_sum(totals[channel]);
      if (lane_index() == 0) {
        memory.row_sums[(warp_index() * P::kRowsPerWarp + r) * P::kChannels + channel] = total;
      }
    }
  }
}

/// Publishes what the tile knows by itself, and turns memory.strips into sums over the warps before.
template <class P>
__device__ void publish_own_sums(const Arguments<P>& a, TileMemory<P>& memory, Word<typename P::Sum>* words) {
  using Sum = typename P::Sum;
  for (int job = warp_index(); job < P::kJobs; job += P::kWarps) {
    if (job < P::kChannels) {
      const State state = memory.tile.column == 0 ? State::kInclusive : State::kOwn;
      for (int y = lane_index(); y < P::kRows; y += 32) {
        const int row = y * P::kChannels + job;
        publish(words + P::kRowWord + row, state, memory.row_sums[row]);
      }
    } else {
      const int column = (job - P::kChannels) * 32 + lane_index();
      Sum sum = 0;
#pragma unroll
      for (int warp = 0; warp < P::kWarps; ++warp) {
        const Sum own = memory.strips[warp][column];
        memory.strips[warp][column] = sum;
        sum += own;
      }
      memory.strips[P::kWarps][column] = sum;
      publish(words + column, memory.tile.row == 0 ? State::kInclusive : State::kOwn, sum);
    }
  }
}

/// Finds one column's sum above the tile.
template <class P>
__device__ void resolve_column(const Arguments<P>& a, TileMemory<P>& memory, Word<typename P::Sum>* words,
                               int column) {
  using Sum = typename P::Sum;
  Sum above[1] = {};
  if (memory.tile.row > 0) {
    look_back(words + column, 0, a.tile_columns * a.words_per_tile, memory.tile.row, above);
    publish(words + column, State::kInclusive, above[0] + memory.strips[P::kWarps][column]);
  }
  memory.above[column] = above[0];
}

/// Finds, for one channel, what lies to the left of the tile's rows, and the corner.
template <class P>
__device__ void resolve_rows(const Arguments<P>& a, TileMemory<P>& memory, Word<typename P::Sum>* words,
                             int channel) {
  using Sum = typename P::Sum;
  const int first = lane_index() * P::kRowsPerLane;
  const auto row_of = [first, channel](int i) { return (first + i) * P::kChannels + channel; };
  Sum left[P::kRowsPerLane] = {};
  if (memory.tile.column > 0 && first < P::kRows) {
    look_back(words + P::kRowWord + row_of(0), P::kChannels, a.words_per_tile, memory.tile.column, left);
#pragma unroll
    for (int i = 0; i < P::kRowsPerLane; ++i) {
      publish(words + P::kRowWord + row_of(i), State::kInclusive, left[i] + memory.row_sums[row_of(i)]);
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = 1; i < P::kRowsPerLane; ++i) left[i] += left[i - 1];
  const Sum through_lane = warp_inclusive_scan(left[P::kRowsPerLane - 1]);
  const Sum before = before_lane(through_lane);

  Sum corner[1] = {};
  if (memory.tile.column > 0) {
    const Sum own = __shfl_sync(~0u, through_lane, 31);
    if (lane_index() == 0) {
      Word<Sum>* word = words + P::kCornerWord + channel;
      publish(word, memory.tile.row == 0 ? State::kInclusive : State::kOwn, own);
      if (memory.tile.row > 0) {
        look_back(word, 0, a.tile_columns * a.words_per_tile, memory.tile.row, corner);
        publish(word, State::kInclusive, corner[0] + own);
      }
    }
    __syncwarp();
    corner[0] = __shfl_sync(~0u, corner[0], 0);
  }
  if (first < P::kRows) {
#pragma unroll
    for (int i = 0; i < P::kRowsPerLane; ++i) memory.left[row_of(i)] = corner[0] + (before + left[i]);
  }
}

template <class P>
__device__ void resolve(const Arguments<P>& a, TileMemory<P>& memory, Word<typename P::Sum>* words) {
  for (int job = warp_index(); job < P::kJobs; job += P::kWarps) {
    if (job < P::kChannels) {
      resolve_rows<P>(a, memory, words, job);
    } else {
      resolve_column<P>(a, memory, words, (job - P::kChannels) * 32 + lane_index());
    }
  }
}

template <class P>
__device__ void store_guarded(const Arguments<P>& a, std::int64_t y, std::int64_t x,
                              const Quad<typename P::Sum>& quad) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (y < a.height && x + i < a.row_elements) a.sums[y * a.row_elements + x + i] = quad.v[i];
  }
}

template <class Sum>
__device__ void store_quad(Sum* to, const Quad<Sum>& quad) {
  constexpr int kWords = sizeof(quad) / 16;
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    __stcs(reinterpret_cast<uint4*>(to) + i, reinterpret_cast<const uint4*>(&quad)[i]);
  }
}

/// Scans the strip, on top of all that lies above and to the left of it, and stores it.
template <class P>
__device__ void store_strip(const Arguments<P>& a, const TileMemory<P>& memory, bool whole,
                            const typename P::Strip& strip) {
  using Sum = typename P::Sum;
  constexpr int kElements = P::kElements;
  const int warp_row = warp_index() * P::kRowsPerWarp;
  Sum columns[P::kSegments][kElements];
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int q = 0; q < P::kQuads; ++q) {
      const int column = quad_column<P>(s, q);
      const auto above = *reinterpret_cast<const Quad<Sum>*>(&memory.above[column]);
      const auto strips = *reinterpret_cast<const Quad<Sum>*>(&memory.strips[warp_index()][column]);
#pragma unroll
      for (int i = 0; i < 4; ++i) columns[s][q * 4 + i] = above.v[i] + strips.v[i];
    }
  }
#pragma unroll
  for (int r = 0; r < P::kRowsPerWarp; ++r) {
    const std::int64_t y = memory.tile.row * P::kRows + warp_row + r;
    Sum base[P::kChannels];
#pragma unroll
    for (int channel = 0; channel < P::kChannels; ++channel) {
      base[channel] = memory.left[(warp_row + r) * P::kChannels + channel];
    }
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      Sum scan[kElements];
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
        columns[s][e] += static_cast<Sum>(strip[r][s][e / 4][e % 4]);
        scan[e] = columns[s][e];
        if (e >= P::kChannels) scan[e] += scan[e - P::kChannels];
      }
      Sum before[P::kChannels];
#pragma unroll
      for (int channel = 0; channel < P::kChannels; ++channel) {
        const Sum through_lane = warp_inclusive_scan(scan[kElements - P::kChannels + channel]);
        before[channel] = base[channel] + before_lane(through_lane);
        base[channel] += __shfl_sync(~0u, through_lane, 31);
      }
#pragma unroll
      for (int q = 0; q < P::kQuads; ++q) {
        Quad<Sum> quad;
#pragma unroll
        for (int i = 0; i < 4; ++i) quad.v[i] = before[(q * 4 + i) % P::kChannels] + scan[q * 4 + i];
        const std::int64_t x = memory.tile.column * P::kColumns + quad_column<P>(s, q);
        if (whole) {
          store_quad(a.sums + y * a.row_elements + x, quad);
        } else {
          store_guarded<P>(a, y, x, quad);
        }
      }
    }
  }
}

template <class P>
__global__ void __launch_bounds__(P::kShape.threads(), P::kBlocksPerMultiprocessor)
    build_table(const Arguments<P> a) {
  __shared__ TileMemory<P> memory;
  if (threadIdx.x == 0)
    memory.tile = tile_of_ticket(atomicAdd(a.next_ticket, 1u), a.tile_rows, a.tile_columns);
  __syncthreads();
  const TileIndex tile = memory.tile;
  const bool whole = a.quads_aligned && (tile.row + 1) * P::kRows <= a.height &&
                     (tile.column + 1) * P::kColumns <= a.row_elements;
  Word<typename P::Sum>* words = a.words + (tile.row * a.tile_columns + tile.column) * a.words_per_tile;

  typename P::Strip strip;
  load_strip<P>(a, tile, whole, strip);
  sum_strip<P>(strip, memory);
  __syncthreads();
  publish_own_sums<P>(a, memory, words);
  resolve<P>(a, memory, words);
  __syncthreads();
  store_strip<P>(a, memory, whole, strip);
}

template <class T>
bool quads_aligned(const T* data, std::int64_t row_stride) {
  return reinterpret_cast<std::uintptr_t>(data) % alignof(Quad<T>) == 0 &&
         row_stride * static_cast<std::int64_t>(sizeof(T)) % static_cast<std::int64_t>(alignof(Quad<T>)) == 0;
}

template <class P>
void launch(CudaExecutor& executor, const DeviceImage<const typename P::Input>& image,
            const DeviceImage<typename P::Sum>& sums) {
  using Sum = typename P::Sum;
  const TileGrid grid = summed_area_table::tile_grid(sizeof(typename P::Input), sizeof(Sum), image.height,
                                                     image.width, image.channels);
  static_assert(sizeof(Word<Sum>) == (sizeof(Sum) <= 4 ? 8 : 16));
  const auto scratch = executor.scratch<std::byte>(grid.scratch_bytes());
  executor.bind_thread();
  CUMULUS_CUDA(cudaMemsetAsync(scratch.data(), 0, scratch.size(), executor.stream()));

  const Arguments<P> arguments{
      image.data,
      sums.data,
      image.height,
      image.width * image.channels,
      image.row_stride,
      grid.tile_rows,
      grid.tile_columns,
      grid.words_per_tile,
      reinterpret_cast<unsigned int*>(scratch.data()),
      reinterpret_cast<Word<Sum>*>(scratch.data() + kBlockAlignment),
      quads_aligned(image.data, image.row_stride) && quads_aligned(sums.data, sums.row_stride)};
  build_table<P>
      <<<static_cast<unsigned int>(grid.tiles()), P::kShape.threads(), 0, executor.stream()>>>(arguments);
  CUMULUS_CUDA(cudaGetLastError());
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

constexpr int kFilterThreads = 256;
constexpr std::int64_t kMostFilterBlocks = std::int64_t{1} << 30;

template <class Sum>
struct FilterArguments {
  const Sum* sums;
  std::int64_t height;
  std::int64_t width;
  std::int64_t channels;
  std::int64_t radius;
  std::int64_t stretches_per_row;  // of kFilterThreads elements
  float* filtered;
};

template <class Sum>
__device__ void filter_element(const FilterArguments<Sum>& a, std::int64_t y, std::int64_t element) {
  const std::int64_t row_elements = a.width * a.channels;
  const std::int64_t x = element / a.channels;
  const std::int64_t channel = element % a.channels;
  const std::int64_t last_row = min(y + a.radius, a.height - 1);
  const std::int64_t last_column = min(x + a.radius, a.width - 1);
  const std::int64_t row_before = max(y - a.radius, std::int64_t{0}) - 1;
  const std::int64_t column_before = max(x - a.radius, std::int64_t{0}) - 1;
  const auto strip = [&](std::int64_t column) -> Sum {
    const Sum* top_of_column = a.sums + column * a.channels + channel;
    const Sum bottom = __ldg(top_of_column + last_row * row_elements);
    return row_before < 0 ? bottom : bottom - __ldg(top_of_column + row_before * row_elements);
  };
  const Sum to_last = strip(last_column);
  const Sum sum = column_before < 0 ? to_last : to_last - strip(column_before);
  const auto pixels = static_cast<double>((last_row - row_before) * (last_column - column_before));
  a.filtered[y * row_elements + element] = static_cast<float>(static_cast<double>(sum) / pixels);
}

template <class Sum>
__global__ void __launch_bounds__(kFilterThreads) filter_from_table(const FilterArguments<Sum> a) {
  for (std::int64_t stretch = blockIdx.x; stretch < a.height * a.stretches_per_row; stretch += gridDim.x) {
    const std::int64_t element = stretch % a.stretches_per_row * kFilterThreads + threadIdx.x;
    if (element < a.width * a.channels) filter_element(a, stretch / a.stretches_per_row, element);
  }
}

template <class Sum, class Input>
void filter_with_table_of(CudaExecutor& executor, const DeviceImage<const Input>& image, std::int64_t radius,
                          const DeviceImage<float>& filtered) {
  const auto storage = executor.scratch<Sum>(static_cast<std::size_t>(image.elements()));
  const DeviceImage<Sum> sums(storage.data(), image.height, image.width, image.channels);
  build_summed_area_table(executor, image, sums);
  executor.check_interrupt();
  const std::int64_t stretches = summed_area_table::divide_up(image.width * image.channels, kFilterThreads);
  const FilterArguments<Sum> arguments{sums.data, image.height, image.width,  image.channels,
                                       radius,    stretches,    filtered.data};
  const std::int64_t blocks = std::min(image.height * stretches, kMostFilterBlocks);
  filter_from_table<<<static_cast<unsigned int>(blocks), kFilterThreads, 0, executor.stream()>>>(arguments);
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
  if (summed_area_table::box_sums_fit_32_bits(image.height, image.width, radius)) {
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

}  // namespace cumulus
