#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/summed_area_table/queries.h"
#include "kernels/summed_area_table/queries/sliding.h"

// Box filters of one radius need no table: a block goes down, or up, some columns of the image, keeps the sum
// over the box's rows of each column in registers, and takes the boxes from the prefix sums of these along
// the row.

namespace cumulus::summed_area_table {

/// Threads of a block: few wait for each other at a barrier, many have fewer columns of margins.
inline constexpr int kFewSlidingThreads = 128;
inline constexpr int kManySlidingThreads = 256;

/// How a block's threads have its columns: each kPixels neighbours, which it loads in words of 16 bytes, or
/// of 8 or 4 where that many bytes are no multiple of 16.
template <class Input, int kChannels, int kThreadCount>
struct SlidingShape {
  static constexpr int kThreads = kThreadCount;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kPixels = sliding_pixels(kChannels);
  static constexpr int kElements = kPixels * kChannels;
  static constexpr int kColumns = kThreads * kPixels;
  static constexpr int kBytes = kElements * static_cast<int>(sizeof(Input));
  using Word =
      std::conditional_t<kBytes % 16 == 0, uint4, std::conditional_t<kBytes % 8 == 0, uint2, std::uint32_t>>;
  static constexpr int kWords = kBytes / static_cast<int>(sizeof(Word));
  /// Blocks of a multiprocessor, by the registers of a thread.
  static constexpr int kBlocks = sizeof(Input) == 8 ? kManySlidingThreads / kThreads
                                 : kElements == 8 && kThreads == kFewSlidingThreads
                                     ? 5
                                     : 2 * kManySlidingThreads / kThreads;
};

template <class Input>
struct SlidingArguments {
  DeviceImage<const Input> image;
  float* means;
  BoxShape box;
  int halo;             // columns that a block has to the left of those it writes: more than the radius
  int strip_columns;    // that a block writes
  int segment_rows;     // that a block writes
  bool loads_in_words;  // rows begin at multiples of a word
};

template <class Input, int kChannels, int kThreads>
struct SlidingShared {
  using Shape = SlidingShape<Input, kChannels, kThreads>;
  using Sum = SlidingSum<Input>;
  // Of two rows by turns: one is written while the other is read.
  alignas(16) Sum prefixes[2][kThreads * Shape::kElements];
  alignas(16) Sum warp_sums[2][kChannels][Shape::kWarps];
  double reciprocals[Shape::kColumns];  // of the boxes' pixels, in strips at the image's sides
  int columns[Shape::kColumns];         // of the image, where the block's come from; -1: zeros
};

/// One block's columns and rows.
template <class Input, int kChannels, int kThreads>
class SlidingBlock {
 public:
  using Shape = SlidingShape<Input, kChannels, kThreads>;
  using Shared = SlidingShared<Input, kChannels, kThreads>;
  using Sum = SlidingSum<Input>;
  static constexpr int kElements = Shape::kElements;

  __device__ SlidingBlock(const SlidingArguments<Input>& a, Shared& shared)
      : a_(a),
        shared_(shared),
        first_(static_cast<int>(blockIdx.x) * a.strip_columns),
        radius_y_(static_cast<int>(a.box.radius_y)),
        radius_x_(static_cast<int>(a.box.radius_x)),
        height_(static_cast<int>(a.image.height)),
        width_(static_cast<int>(a.image.width)) {
    const int end = min(first_ + a.strip_columns, width_);
    written_ = (end - first_) * kChannels;
    has_edge_ = a.box.boundary_x == Boundary::kExact && (first_ < radius_x_ || end + radius_x_ > width_);
    const int left = first_ - a.halo + thread() * Shape::kPixels;
    bool whole = a.loads_in_words;
#pragma unroll
    for (int p = 0; p < Shape::kPixels; ++p) {
      const bool needed = left + p >= first_ - radius_x_ && left + p < end + radius_x_;
      const int column = needed ? seen_at(left + p, width_, a.box.boundary_x) : -1;
      shared_.columns[thread() * Shape::kPixels + p] = column;
      whole = whole && left + p >= 0 && left + p < width_;
    }
    const bool needed = left + Shape::kPixels > first_ - radius_x_ && left < end + radius_x_;
    column_ = whole && needed ? left : -1;
    upper_ = place(thread() + (a.halo + radius_x_) * kChannels);
    lower_ = place(thread() + (a.halo - radius_x_ - 1) * kChannels);
  }

  /// Rows first, first + step, ... Between two barriers a row's prefix sums are completed, the next row is
  /// summed, and the row before is written.
  __device__ void filter(int first, int step, int rows) {
#pragma unroll 4
    for (int i = -radius_y_; i <= radius_y_; ++i) add(read_row<false>(first + i * step));
    Pixels leaving{};
    Pixels entering{};
    const auto load = [&](int y) {
      leaving = read_row<true>(y - radius_y_ * step);
      entering = read_row<false>(y + (radius_y_ + 1) * step);
    };
    if (rows > 1) load(first);
    scan_columns(0);
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < rows; ++i) {
      const int y = first + i * step;
      const int turn = i % 2;
      store_prefixes(turn);
      if (i + 1 < rows) {
        subtract(leaving);
        add(entering);
        // These are on their way while this row's boxes are summed.
        if (i + 2 < rows) load(y + step);
        scan_columns(1 - turn);
      }
      count_pixels(positions_around(y, radius_y_, height_, a_.box.boundary_y));
      __syncthreads();
      write_row(y, turn);
    }
  }

 private:
  /// A row's pixels as they are loaded: they are taken apart where they are used, since that waits for them.
  struct alignas(16) Pixels {
    std::uint32_t words[Shape::kBytes / 4];

    __device__ Input operator[](int element) const {
      if constexpr (sizeof(Input) == 8) {
        return __hiloint2double(static_cast<int>(words[2 * element + 1]),
                                static_cast<int>(words[2 * element]));
      } else {
        constexpr int kOfWord = 4 / static_cast<int>(sizeof(Input));
        const std::uint32_t bits = words[element / kOfWord] >> (element % kOfWord * 8 * sizeof(Input));
        return from_bits(bits);
      }
    }
    __device__ void set(int element, Input value) {
      if constexpr (sizeof(Input) == 8) {
        words[2 * element + 1] = static_cast<std::uint32_t>(__double2hiint(value));
        words[2 * element] = static_cast<std::uint32_t>(__double2loint(value));
      } else {
        constexpr int kOfWord = 4 / static_cast<int>(sizeof(Input));
        words[element / kOfWord] |= to_bits(value) << (element % kOfWord * 8 * sizeof(Input));
      }
    }

   private:
    __device__ static Input from_bits(std::uint32_t bits) {
      if constexpr (std::is_same_v<Input, Float16>) return Float16{static_cast<std::uint16_t>(bits)};
      if constexpr (std::is_same_v<Input, float>) return __uint_as_float(bits);
      if constexpr (std::is_integral_v<Input>) return static_cast<Input>(bits);
    }
    __device__ static std::uint32_t to_bits(Input value) {
      if constexpr (std::is_same_v<Input, Float16>) return value.bits;
      if constexpr (std::is_same_v<Input, float>) return __float_as_uint(value);
      if constexpr (std::is_integral_v<Input>) return static_cast<std::uint32_t>(value);
    }
  };

  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  /// Of an element's prefix sum in shared memory: 16 bytes change places within 128, so that lanes write
  /// those of their own pixels, and read those side by side, with few conflicts. What lies a multiple of
  /// kThreads further on stays so far on.
  __device__ static int place(int element) {
    constexpr int kOfChunk = 16 / static_cast<int>(sizeof(Sum));
    constexpr int kEights = kThreads / kOfChunk / 8;
    const int chunk = element / kOfChunk;
    return (chunk ^ (chunk / 8 & (kEights < 8 ? kEights - 1 : 7))) * kOfChunk + element % kOfChunk;
  }

  template <bool kLast>
  __device__ Pixels read_row(int y) const {
    Pixels pixels{};
    const int seen = seen_at(y, height_, a_.box.boundary_y);
    if (seen < 0) return pixels;
    const Input* row = a_.image.data + std::int64_t{seen} * a_.image.row_stride;
    if (column_ >= 0) {
      const auto* from = reinterpret_cast<const typename Shape::Word*>(row + column_ * kChannels);
      auto* to = reinterpret_cast<typename Shape::Word*>(pixels.words);
#pragma unroll
      for (int i = 0; i < Shape::kWords; ++i) to[i] = kLast ? __ldcs(from + i) : __ldg(from + i);
      return pixels;
    }
#pragma unroll
    for (int p = 0; p < Shape::kPixels; ++p) {
      const int column = shared_.columns[thread() * Shape::kPixels + p];
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        if (column >= 0) pixels.set(p * kChannels + c, row[column * kChannels + c]);
      }
    }
    return pixels;
  }
  __device__ void add(const Pixels& row) {
#pragma unroll
    for (int e = 0; e < kElements; ++e) sums_[e] += static_cast<Sum>(row[e]);
  }
  __device__ void subtract(const Pixels& row) {
#pragma unroll
    for (int e = 0; e < kElements; ++e) sums_[e] -= static_cast<Sum>(row[e]);
  }

  /// The prefix sums of the columns' sums within the warp, each channel by itself; the warp's sums to shared
  /// memory.
  __device__ void scan_columns(int turn) {
#pragma unroll
    for (int e = 0; e < kElements; ++e) scan_[e] = e < kChannels ? sums_[e] : scan_[e - kChannels] + sums_[e];
    Sum through[kChannels];
#pragma unroll
    for (int c = 0; c < kChannels; ++c) through[c] = scan_[kElements - kChannels + c];
    warp_inclusive_sums(through);
    if (lane_index() == 31) {
#pragma unroll
      for (int c = 0; c < kChannels; ++c) shared_.warp_sums[turn][c][warp_index()] = through[c];
    }
#pragma unroll
    for (int c = 0; c < kChannels; ++c) before_[c] = before_lane(through[c]);
  }

  /// The prefix sums along the row, to shared memory.
  __device__ void store_prefixes(int turn) {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
#pragma unroll
      for (int warp = 0; warp < Shape::kWarps - 1; ++warp) {
        const Sum sum = shared_.warp_sums[turn][c][warp];
        if (warp < warp_index()) before_[c] += sum;
      }
    }
#pragma unroll
    for (int e = 0; e < kElements; ++e) scan_[e] += before_[e % kChannels];
    constexpr int kOfChunk = 16 / static_cast<int>(sizeof(Sum));
#pragma unroll
    for (int e = 0; e < kElements; e += kOfChunk) {
      *reinterpret_cast<uint4*>(shared_.prefixes[turn] + place(thread() * kElements + e)) =
          *reinterpret_cast<const uint4*>(scan_ + e);
    }
  }

  __device__ void write_row(int y, int turn) const {
    const Sum* prefixes = shared_.prefixes[turn];
    float* means = a_.means + (std::int64_t{y} * width_ + first_) * kChannels + thread();
    // Elements that all threads of most blocks have: nothing waits for whether there is one.
    constexpr int kSure = kElements - 3;
    if (has_edge_ || written_ < kSure * kThreads) return write_from<0>(prefixes, means);
    float row[kSure];
#pragma unroll
    for (int i = 0; i < kSure; ++i) row[i] = mean(box_sum(prefixes, i), pixels_, reciprocal_);
#pragma unroll
    for (int i = 0; i < kSure; ++i) __stcs(means + i * kThreads, row[i]);
    write_from<kSure>(prefixes, means);
  }
  /// The thread's elements from number kFirst on, as far as they exist.
  template <int kFirst>
  __device__ void write_from(const Sum* prefixes, float* means) const {
#pragma unroll
    for (int i = kFirst; i < kElements; ++i) {
      const int element = i * kThreads + thread();
      if (element < written_) {
        double pixels = pixels_;
        double reciprocal = reciprocal_;
        if (has_edge_) {
          const int x = element / kChannels;
          pixels = rows_ * positions_around(first_ + x, radius_x_, width_, Boundary::kExact);
          reciprocal = shared_.reciprocals[x];
        }
        __stcs(means + i * kThreads, mean(box_sum(prefixes, i), pixels, reciprocal));
      }
    }
  }

  /// Of the thread's element number `number`.
  __device__ Sum box_sum(const Sum* prefixes, int number) const {
    return prefixes[upper_ + number * kThreads] - prefixes[lower_ + number * kThreads];
  }
  static __device__ float mean(Sum sum, double pixels, double reciprocal) {
    using Signed = std::conditional_t<std::is_same_v<Input, std::int32_t>, std::int64_t, Sum>;
    const auto value = static_cast<double>(static_cast<Signed>(sum));
    // Only of integers are the bits those of a division.
    return static_cast<float>(std::is_integral_v<Input> ? divide_by(value, pixels, reciprocal)
                                                        : value * reciprocal);
  }

  /// Of a box that has so many rows.
  __device__ void count_pixels(int rows) {
    if (rows == rows_) return;
    rows_ = rows;
    pixels_ = static_cast<double>(rows) * (2 * radius_x_ + 1);
    reciprocal_ = 1.0 / pixels_;
    if (!has_edge_) return;
    __syncthreads();  // the row before has been written
    for (int x = thread(); x < a_.strip_columns && first_ + x < width_; x += kThreads) {
      const int columns = positions_around(first_ + x, radius_x_, width_, Boundary::kExact);
      shared_.reciprocals[x] = 1.0 / (static_cast<double>(rows) * columns);
    }
  }

  const SlidingArguments<Input>& a_;
  Shared& shared_;
  const int first_;  // column that the block writes
  const int radius_y_;
  const int radius_x_;
  const int height_;
  const int width_;
  int written_;               // elements of each row
  bool has_edge_;             // some boxes have fewer columns than others
  int column_;                // of the image, where the thread's pixels are loaded in words; -1: one by one
  int upper_;                 // where the prefix sums are that thread's first box ends
  int lower_;                 // and begins after
  Sum sums_[kElements] = {};  // over the box's rows
  alignas(16) Sum scan_[kElements];
  Sum before_[kChannels];  // of the lanes before, and then of the warps before
  int rows_ = 0;           // that these count for:
  double pixels_ = 0;      // of a box that no side cuts
  double reciprocal_ = 0;
};

/// Owns: a block `strip_columns` columns of `segment_rows` rows. Segments go up and down by turns, so that
///   two neighbours read the rows that both need at the same time.
/// Reads: their pixels and the boxes' margins, each row twice: as it enters the boxes and as it leaves them.
/// Writes: the means.
/// Waits for: nothing of other blocks, so that it cannot deadlock.
/// Source: M. McDonnell, "Box-filtering techniques", 1981: sums by column that slide down, and boxes of them.
template <class Input, int kChannels, int kThreads>
__global__ void __launch_bounds__(kThreads, (SlidingShape<Input, kChannels, kThreads>::kBlocks))
    filter_sliding_boxes(const SlidingArguments<Input> a) {
  extern __shared__ uint4 shared_memory[];
  auto& shared = *reinterpret_cast<SlidingShared<Input, kChannels, kThreads>*>(shared_memory);
  const int top = static_cast<int>(blockIdx.y) * a.segment_rows;
  const int rows = min(a.segment_rows, static_cast<int>(a.image.height) - top);
  const bool up = blockIdx.y % 2 == 0;
  SlidingBlock<Input, kChannels, kThreads>(a, shared).filter(up ? top + rows - 1 : top, up ? -1 : 1, rows);
}

template <class Input, int kChannels, int kThreads>
void launch_sliding_boxes_by(CudaExecutor& executor, const BoxFilterJob<Input, Space::kDevice>& job) {
  using Shape = SlidingShape<Input, kChannels, kThreads>;
  constexpr std::int64_t kPixels = Shape::kPixels;
  constexpr std::int64_t kMinSegmentRows = 4;
  const std::int64_t radius = job.box.radius_x;
  const std::int64_t halo = divide_up(radius + 1, kPixels) * kPixels;
  const std::int64_t room = (Shape::kColumns - halo - radius) / kPixels * kPixels;
  const std::int64_t strips = divide_up(job.image.width, room);
  const std::int64_t strip_columns = divide_up(divide_up(job.image.width, strips), kPixels) * kPixels;
  // All blocks at once.
  const std::int64_t blocks = std::int64_t{executor.device().multiprocessors()} * Shape::kBlocks;
  const std::int64_t segments = std::max<std::int64_t>(blocks / strips, 1);
  const std::int64_t rows = std::max(divide_up(job.image.height, segments), kMinSegmentRows);
  const auto address = reinterpret_cast<std::uintptr_t>(job.image.data);
  const auto row_bytes = static_cast<std::uintptr_t>(job.image.row_stride) * sizeof(Input);
  const bool in_words = (address | row_bytes) % sizeof(typename Shape::Word) == 0;
  const dim3 grid(static_cast<unsigned int>(divide_up(job.image.width, strip_columns)),
                  static_cast<unsigned int>(divide_up(job.image.height, rows)));
  using Shared = SlidingShared<Input, kChannels, kThreads>;
  static_assert(sizeof(Shared) <= 64 * 1024, "what every GPU offers a block");
  const SlidingArguments<Input> arguments{job.image,
                                          job.means.data,
                                          job.box,
                                          static_cast<int>(halo),
                                          static_cast<int>(strip_columns),
                                          static_cast<int>(rows),
                                          in_words};
  launch(executor.stream(), filter_sliding_boxes<Input, kChannels, kThreads>,
         {grid, kThreads, sizeof(Shared)}, arguments);
}

template <class Input, int kChannels>
void launch_sliding_boxes(CudaExecutor& executor, const BoxFilterJob<Input, Space::kDevice>& job) {
  /// A quarter of few threads' columns are margins then.
  constexpr std::int64_t kMaxRadius = kFewSlidingThreads / 8 * sliding_pixels(kChannels);
  if (job.box.radius_x <= kMaxRadius)
    return launch_sliding_boxes_by<Input, kChannels, kFewSlidingThreads>(executor, job);
  launch_sliding_boxes_by<Input, kChannels, kManySlidingThreads>(executor, job);
}

}  // namespace cumulus::summed_area_table
