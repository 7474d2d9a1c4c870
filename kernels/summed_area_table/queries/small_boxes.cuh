#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/summed_area_table/queries.h"

// Box filters of a small radius need no table: a warp goes down a few hundred columns of the image, keeps the
// sums over the box's rows of each column, and takes the boxes from their prefix sums along the row.

namespace cumulus::summed_area_table {

/// Room for the sum of a box of at most kMaxSmallRadius.
template <class Input>
using SmallBoxSum = std::conditional_t<!std::is_integral_v<Input>, double,
                                       std::conditional_t<sizeof(Input) <= 2, std::uint32_t, std::uint64_t>>;
static_assert((2 * kMaxSmallRadius + 1) * (2 * kMaxSmallRadius + 1) * std::int64_t{65535} <= 0xFFFFFFFF);

inline constexpr int kSmallBoxWarps = 4;  // of a block, each with rows of its own

template <class Input>
struct SmallBoxArguments {
  DeviceImage<const Input> image;
  float* means;
  BoxShape box;
  int strip_elements;  // that a warp writes of each row
  int segment_rows;    // rows that a warp writes
};

/// The position within the axis that is seen at `at`; -1: zero.
__device__ inline int seen_at(int at, int extent, Boundary boundary) {
  if (at >= 0 && at < extent) return at;
  switch (boundary) {
    case Boundary::kExact:
    case Boundary::kZero:
      return -1;
    case Boundary::kClamp:
      return at < 0 ? 0 : extent - 1;
    case Boundary::kRepeat:
      return (at % extent + extent) % extent;
    case Boundary::kReflect:
      break;
  }
  const int period = 2 * extent;
  const int rest = (at % period + period) % period;
  return rest < extent ? rest : period - 1 - rest;
}

/// Of the 2 * radius + 1 positions around `center`, those that count.
__device__ inline int positions_around(int center, int radius, int extent, Boundary boundary) {
  if (boundary != Boundary::kExact) return 2 * radius + 1;
  const int first = center < radius ? 0 : center - radius;
  const int last = center + radius < extent ? center + radius : extent - 1;
  return last - first + 1;
}

/// The quotient, rounded as IEEE 754 has it, by means of the divisor's reciprocal (P. Markstein, "Computation
/// of elementary functions on the IBM RISC System/6000 processor", 1990): 3 operations instead of 30.
__device__ inline double divide_by(double sum, double pixels, double reciprocal) {
  const double quotient = sum * reciprocal;
  const double rest = fma(-quotient, pixels, sum);
  return isfinite(sum) ? fma(rest, reciprocal, quotient) : quotient;
}

/// One warp's columns and rows. Element e of a lane is element e * 32 + lane_index() of its columns.
template <class Input, int kChannels>
class SmallBoxWarp {
 public:
  using Sum = SmallBoxSum<Input>;
  static constexpr int kLaneElements = kChannels == 3 ? 12 : 8;
  static constexpr int kElements = 32 * kLaneElements;
  /// Of the prefix sums in shared memory, padded so that lanes read 16 bytes of their own without conflicts.
  static constexpr int kLaneStride =
      kLaneElements + (kLaneElements * sizeof(Sum) / 16 % 2 == 0 ? 16 / static_cast<int>(sizeof(Sum)) : 0);
  static constexpr int kSharedElements = 32 * kLaneStride;

  __device__ SmallBoxWarp(const SmallBoxArguments<Input>& a, Sum* shared, int strip)
      : a_(a),
        shared_(shared),
        first_(strip * a.strip_elements),
        radius_y_(static_cast<int>(a.box.radius_y)),
        radius_x_(static_cast<int>(a.box.radius_x)),
        height_(static_cast<int>(a.image.height)),
        width_(static_cast<int>(a.image.width)),
        halo_(radius_x_ * kChannels) {
    const int first_seen = first_ / kChannels - radius_x_;
#pragma unroll
    for (int e = 0; e < kLaneElements; ++e) {
      const int element = e * 32 + lane_index();
      const int column = seen_at(first_seen + element / kChannels, width_, a.box.boundary_x);
      column_[e] = column < 0 || !inside(element - 2 * halo_) ? -1 : column * kChannels + element % kChannels;
    }
  }

  __device__ void filter(int top) {
    const int end = min(top + a_.segment_rows, height_);
#pragma unroll 4
    for (int y = top - radius_y_; y < top + radius_y_; ++y) add(read_row(y));
    // The rows of the next step are on their way while this one's boxes are summed.
    Row entering = read_row(top + radius_y_);
    Row leaving{};
#pragma unroll 1
    for (int y = top; y < end; ++y) {
      subtract(leaving);
      add(entering);
      leaving = read_row(y - radius_y_);
      if (y + 1 < end) entering = read_row(y + 1 + radius_y_);
      scan_columns();
      write_row(y);
    }
  }

 private:
  /// Whether the image goes as far as the element, counted from the first that the warp writes.
  __device__ bool inside(int element) const { return first_ + element < width_ * kChannels; }
  __device__ static int place(int element) {
    return element / kLaneElements * kLaneStride + element % kLaneElements;
  }

  struct Row {
    Input pixels[kLaneElements];
  };
  __device__ Row read_row(int y) const {
    Row row{};
    const int seen = seen_at(y, height_, a_.box.boundary_y);
    if (seen < 0) return row;
    const Input* pixels = a_.image.data + std::int64_t{seen} * a_.image.row_stride;
#pragma unroll
    for (int e = 0; e < kLaneElements; ++e) {
      if (column_[e] >= 0) row.pixels[e] = pixels[column_[e]];
    }
    return row;
  }
  __device__ void add(const Row& row) {
#pragma unroll
    for (int e = 0; e < kLaneElements; ++e) sums_[e] += static_cast<Sum>(row.pixels[e]);
  }
  __device__ void subtract(const Row& row) {
#pragma unroll
    for (int e = 0; e < kLaneElements; ++e) sums_[e] -= static_cast<Sum>(row.pixels[e]);
  }

  /// The prefix sums of the columns' sums, each channel by itself, to shared memory.
  __device__ void scan_columns() {
#pragma unroll
    for (int e = 0; e < kLaneElements; ++e) shared_[place(e * 32 + lane_index())] = sums_[e];
    __syncwarp();
    alignas(16) Sum scan[kLaneElements];
    auto* words = reinterpret_cast<uint4*>(shared_ + lane_index() * kLaneStride);
    constexpr int kWords = kLaneElements * sizeof(Sum) / 16;
#pragma unroll
    for (int i = 0; i < kWords; ++i) reinterpret_cast<uint4*>(scan)[i] = words[i];
#pragma unroll
    for (int e = kChannels; e < kLaneElements; ++e) scan[e] += scan[e - kChannels];
#pragma unroll
    for (int channel = 0; channel < kChannels; ++channel) {
      const Sum before = before_lane(warp_inclusive_sum(scan[kLaneElements - kChannels + channel]));
#pragma unroll
      for (int e = channel; e < kLaneElements; e += kChannels) scan[e] += before;
    }
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = reinterpret_cast<uint4*>(scan)[i];
    __syncwarp();
  }

  __device__ void write_row(int y) {
    const int rows = positions_around(y, radius_y_, height_, a_.box.boundary_y);
    if (rows != rows_) count_pixels(rows);
    float* means = a_.means + std::int64_t{y} * width_ * kChannels + first_;
#pragma unroll
    for (int e = 0; e < kLaneElements; ++e) {
      const int element = e * 32 + lane_index();
      if (element >= a_.strip_elements || !inside(element)) continue;
      Sum sum = shared_[place(element + 2 * halo_)];
      if (element >= kChannels) sum -= shared_[place(element - kChannels)];
      using Signed = std::conditional_t<std::is_same_v<Input, std::int32_t>, std::int64_t, Sum>;
      means[element] = static_cast<float>(
          divide_by(static_cast<double>(static_cast<Signed>(sum)), pixels_[e], reciprocals_[e]));
    }
    __syncwarp();
  }

  __device__ void count_pixels(int rows) {
    rows_ = rows;
#pragma unroll
    for (int e = 0; e < kLaneElements; ++e) {
      const int x = (first_ + e * 32 + lane_index()) / kChannels;
      pixels_[e] = rows * positions_around(x, radius_x_, width_, a_.box.boundary_x);
      reciprocals_[e] = 1.0 / pixels_[e];
    }
  }

  const SmallBoxArguments<Input>& a_;
  Sum* shared_;
  const int first_;  // element of each row that the warp writes
  const int radius_y_;
  const int radius_x_;
  const int height_;
  const int width_;
  const int halo_;                // elements that the warp needs before and after those it writes
  int column_[kLaneElements];     // in the image's rows; -1: zeros
  Sum sums_[kLaneElements] = {};  // over the box's rows
  int rows_ = 0;                  // that these count for:
  double pixels_[kLaneElements];  // of the boxes
  double reciprocals_[kLaneElements];
};

/// Owns: a warp `strip_elements` columns of `segment_rows` rows.
/// Reads: their pixels and the boxes' margins, each row twice. Writes: the means.
/// Waits for: nothing of other blocks.
template <class Input, int kChannels>
__global__ void __launch_bounds__(32 * kSmallBoxWarps) filter_small_boxes(const SmallBoxArguments<Input> a) {
  using Warp = SmallBoxWarp<Input, kChannels>;
  __shared__ alignas(16) typename Warp::Sum shared[kSmallBoxWarps][Warp::kSharedElements];
  const int top = (static_cast<int>(blockIdx.y) * kSmallBoxWarps + warp_index()) * a.segment_rows;
  if (top >= a.image.height) return;
  Warp(a, shared[warp_index()], static_cast<int>(blockIdx.x)).filter(top);
}

template <class Input, int kChannels>
void launch_small_boxes(CudaExecutor& executor, const BoxFilterJob<Input, Space::kDevice>& job) {
  constexpr int kWhole = 24;  // elements: whole pixels, and whole sectors of the result
  const int halo = static_cast<int>(job.box.radius_x) * kChannels;
  const int strip = (SmallBoxWarp<Input, kChannels>::kElements - 2 * halo) / kWhole * kWhole;
  const std::int64_t strips = divide_up(job.image.width * kChannels, strip);
  // Short segments for more warps, long ones for fewer rows that two warps sum.
  const std::int64_t warps = std::int64_t{executor.device().multiprocessors()} * 24;
  const std::int64_t rows = std::clamp<std::int64_t>(strips * job.image.height / warps,
                                                     16 + 2 * job.box.radius_y, 64 + 2 * job.box.radius_y);
  const dim3 blocks(static_cast<unsigned int>(strips),
                    static_cast<unsigned int>(divide_up(job.image.height, rows * kSmallBoxWarps)));
  filter_small_boxes<Input, kChannels><<<blocks, 32 * kSmallBoxWarps, 0, executor.stream()>>>(
      {job.image, job.means.data, job.box, strip, static_cast<int>(rows)});
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus::summed_area_table
