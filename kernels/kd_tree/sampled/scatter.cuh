#pragma once

// Points go down the planes of a round, into parts with room for more than they are expected to have.

#include <cstdint>

#include "kernels/kd_tree/sampled/split_part.cuh"
#include "kernels/kd_tree/threads.cuh"
#include "kernels/primitives/launch.cuh"

namespace cumulus::kd_tree {

/// The splits of the levels above the parts, node after node.
struct Planes {
  std::uint32_t* keys;  // of the point, its two lowest bits replaced by the axis
  PivotPoint* points;
};

/// The parts that a round fills.
struct Parts {
  PointRecord* records;   // [parts, capacity]
  std::uint32_t* counts;  // of points, those without room among them; every `stride`-th is a part's
  unsigned capacity;
  unsigned stride;  // 1, or so much that counters which all blocks add to are in different sectors of L2

  __device__ std::uint32_t* count(unsigned part) const { return counts + part * stride; }
};

inline constexpr int kScatterThreads = 512;
inline constexpr int kScatterItems = 4;
inline constexpr int kScatterTile = kScatterThreads * kScatterItems;

template <int D>
__device__ PointRecord load_point(const float* points, std::int64_t index) {
  const float* point = points + index * D;
  return {point[0], point[1], D == 3 ? point[2] : 0.0f, static_cast<std::uint32_t>(index)};
}

/// A point as planes see it.
struct PointKeys {
  std::uint32_t axes[kPartAxes];
  __device__ void take(const PointRecord& point) {
    axes[0] = ordered_key(point.x);
    axes[1] = ordered_key(point.y);
    axes[2] = ordered_key(point.z);
  }
  __device__ std::uint32_t at(std::uint32_t plane) const {
    const std::uint32_t axis = plane & 3u;
    return axis == 0 ? axes[0] : axis == 1 ? axes[1] : axes[2];
  }
};

/// Whether a key and a plane may be those of equal coordinates.
__device__ inline bool nearly_equal(std::uint32_t key, std::uint32_t plane) { return (key ^ plane) < 4u; }

/// A step of the way of all points into the parts at the end of the planes: `levels` levels below `above`
/// others.
struct ScatterJob {
  std::int64_t count;  // of points, where they are the input's
  bool aligned;        // these, to 16 bytes
  Planes planes;
  int above;
  int levels;
  Parts from;  // of the step before, where there is one
  Parts to;
  unsigned long long* first_nan;
};

/// The parts that kItems points come down to, step by step together.
/// `keys` are the planes of the subtree of part `number`.
template <int kItems>
__device__ void find_parts(const ScatterJob& job, const std::uint32_t* keys, unsigned number,
                           const PointRecord (&points)[kItems], unsigned (&parts)[kItems]) {
  PointKeys axes[kItems];
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    axes[item].take(points[item]);
    parts[item] = 0;
  }
  for (int level = 0; level < job.levels; ++level) {
    bool ties = false;
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      const std::uint32_t plane = keys[parts[item]];
      const std::uint32_t key = axes[item].at(plane);
      ties |= nearly_equal(key, plane);
      parts[item] = 2 * parts[item] + (key >= plane ? 2 : 1);
    }
    if (!ties) continue;
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      const unsigned node = (parts[item] - 1) / 2;
      const std::uint32_t plane = keys[node];
      const std::uint32_t key = axes[item].at(plane);
      if (!nearly_equal(key, plane)) continue;
      const PivotPoint pivot =
          job.planes.points[(1u << (job.above + level)) - 1 + (number << level) + node + 1 - (1u << level)];
      const bool right = key > pivot.key || (key == pivot.key && points[item].index >= pivot.index);
      parts[item] = 2 * node + (right ? 2 : 1);
    }
  }
#pragma unroll
  for (int item = 0; item < kItems; ++item) parts[item] += 1 - (1u << job.levels);
}

inline constexpr int kMaxStepParts = 512;

/// The shared memory of a step's block.
struct ScatterTile {
  float4 records[kScatterTile];         // in the order of their parts
  std::uint16_t parts[kScatterTile];    // of each of these
  std::uint32_t keys[kMaxStepParts];    // of the planes
  std::uint32_t counts[kMaxStepParts];  // of the tile's points, by part
  std::uint32_t begins[kMaxStepParts];  // of the parts within the tile
  std::uint32_t shifts[kMaxStepParts];  // from places in the tile to those in the part
  std::uint32_t warp_sums[32];
};

/// Four points of each thread, one after another, read by vectors where they are whole and aligned.
template <int D>
__device__ void load_points(const ScatterJob& job, const float* points, std::int64_t first,
                            PointRecord* records) {
  const std::int64_t count = job.count;
  if (D == 3 && job.aligned && first + kScatterItems <= count) {
    const auto* fours = reinterpret_cast<const float4*>(points + first * 3);
    const float4 a = __ldcs(fours);
    const float4 b = __ldcs(fours + 1);
    const float4 c = __ldcs(fours + 2);
    const auto index = static_cast<std::uint32_t>(first);
    records[0] = {a.x, a.y, a.z, index};
    records[1] = {a.w, b.x, b.y, index + 1};
    records[2] = {b.z, b.w, c.x, index + 2};
    records[3] = {c.y, c.z, c.w, index + 3};
    return;
  }
#pragma unroll
  for (int item = 0; item < kScatterItems; ++item) {
    if (first + item < count) records[item] = load_point<D>(points, first + item);
  }
}

template <int D>
__device__ void note_nan(unsigned long long* first_nan, const PointRecord& record) {
  if (record.x == record.x && record.y == record.y && record.z == record.z) return;
  const int axis = record.x != record.x ? 0 : record.y != record.y ? 1 : 2;
  atomicMin(first_nan, static_cast<unsigned long long>(record.index) * D + axis);
}

/// Zeroes the tile's counts and takes the planes of subtree `number`.
__device__ inline void begin_tile(ScatterTile& tile, const ScatterJob& job, unsigned number) {
  for (unsigned i = threadIdx.x; i < 1u << job.levels; i += kScatterThreads) {
    tile.counts[i] = 0;
    const int level = 31 - __clz(static_cast<int>(i + 1));
    if (i + 1 < 1u << job.levels) {
      tile.keys[i] =
          job.planes.keys[(1u << (job.above + level)) - 1 + (number << level) + i + 1 - (1u << level)];
    }
  }
  __syncthreads();
}

/// Brings the block's points into their parts, each part's together. Points that are none have part ~0.
__device__ inline void store_tile(ScatterTile& tile, const ScatterJob& job, unsigned number,
                                  const PointRecord (&records)[kScatterItems],
                                  const unsigned (&parts)[kScatterItems]) {
  unsigned ranks[kScatterItems];
#pragma unroll
  for (int item = 0; item < kScatterItems; ++item) {
    if (parts[item] != ~0u) ranks[item] = atomicAdd(tile.counts + parts[item], 1u);
  }
  __syncthreads();
  const bool has = threadIdx.x < 1u << job.levels;
  const unsigned count = has ? tile.counts[threadIdx.x] : 0;
  const unsigned inclusive = warp_inclusive_sum(count);
  if (lane_index() == 31) tile.warp_sums[warp_index()] = inclusive;
  unsigned place = 0;
  const unsigned part = (number << job.levels) + threadIdx.x;
  if (has && count > 0) place = atomicAdd(job.to.count(part), count);
  __syncthreads();
  const unsigned before = warp_sum(lane_index() < warp_index() ? tile.warp_sums[lane_index()] : 0u);
  if (has) {
    tile.begins[threadIdx.x] = before + inclusive - count;
    tile.shifts[threadIdx.x] = place - (before + inclusive - count);
  }
  const unsigned all = __shfl_sync(kFullWarp, before + inclusive, 31);
  if (threadIdx.x == kScatterThreads - 1) tile.warp_sums[31] = all;
  __syncthreads();
#pragma unroll
  for (int item = 0; item < kScatterItems; ++item) {
    if (parts[item] == ~0u) continue;
    const unsigned to = tile.begins[parts[item]] + ranks[item];
    const PointRecord& record = records[item];
    tile.records[to] = {record.x, record.y, record.z, __uint_as_float(record.index)};
    tile.parts[to] = static_cast<std::uint16_t>(parts[item]);
  }
  __syncthreads();
  const unsigned points = tile.warp_sums[31];
  auto* const to = reinterpret_cast<float4*>(job.to.records);
#pragma unroll
  for (int item = 0; item < kScatterItems; ++item) {
    const unsigned i = threadIdx.x + item * kScatterThreads;
    if (i >= points) continue;
    const unsigned target = tile.parts[i];
    const unsigned at = tile.shifts[target] + i;
    if (at >= job.to.capacity) continue;
    to[static_cast<std::int64_t>((number << job.levels) + target) * job.to.capacity + at] = tile.records[i];
  }
}

/// The samples of the second step, which go the way of the points: the first blocks take them.
struct SampleScatter {
  std::int64_t tiles;
  int shift;
  Parts to;
};

/// The samples of tile `tile`; which of them there are.
template <int D>
__device__ void load_samples(const ScatterJob& job, const float* points, std::int64_t tile, int shift,
                             PointRecord* records, bool* has) {
#pragma unroll
  for (int item = 0; item < kScatterItems; ++item) {
    const std::int64_t number = tile * kScatterTile + item * kScatterThreads + threadIdx.x;
    const std::int64_t index = sample_index(static_cast<std::uint32_t>(number), shift);
    has[item] = index < job.count;
    if (has[item]) records[item] = load_point<D>(points, index);
  }
}

/// The first step: the samples of the second one, and the input's points, go down the upper planes.
/// Owns: block b tile b of the samples, or of the points after these; kScatterTile of them.
/// Reads: the tile's points, and the planes.
/// Writes: the points into the parts' rooms; the parts' counters and the first NaN, by atomic operations.
/// Waits for: the kernel in front of it; nothing of other blocks.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: a multisplit as in S. Ashkiani et al., "GPU multisplit" (2016), with rooms in place of a scan.
template <int D>
__global__ void __launch_bounds__(kScatterThreads, 2)
    scatter_points(ScatterJob job, SampleScatter samples, const float* points) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& tile = *reinterpret_cast<ScatterTile*>(memory);
  PointRecord records[kScatterItems] = {};
  bool has[kScatterItems];
  wait_for_primary_kernel();
  allow_secondary_kernel();
  if (blockIdx.x < samples.tiles) {
    job.to = samples.to;
    load_samples<D>(job, points, blockIdx.x, samples.shift, records, has);
  } else {
    const std::int64_t first = (blockIdx.x - samples.tiles) * kScatterTile + threadIdx.x * kScatterItems;
    load_points<D>(job, points, first, records);
#pragma unroll
    for (int item = 0; item < kScatterItems; ++item) {
      has[item] = first + item < job.count;
      if (has[item]) note_nan<D>(job.first_nan, records[item]);
    }
  }
  begin_tile(tile, job, 0);
  unsigned parts[kScatterItems];
  find_parts(job, tile.keys, 0, records, parts);
#pragma unroll
  for (int item = 0; item < kScatterItems; ++item) {
    if (!has[item]) parts[item] = ~0u;
  }
  store_tile(tile, job, 0, records, parts);
}

/// The second step: parts' points go down the lower planes.
/// Owns: block (b, p) tile b of part p, kScatterTile points.
/// Reads: the tile's points, and the part's planes.
/// Writes: the points into the buckets' rooms; the buckets' counters, by atomic operations.
/// Waits for: the kernel in front of it; nothing of other blocks.
/// Cannot deadlock: all threads of a block reach its barriers, or none.
/// Source: as scatter_points.
static __global__ void __launch_bounds__(kScatterThreads, 2) scatter_parts(ScatterJob job) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& tile = *reinterpret_cast<ScatterTile*>(memory);
  wait_for_primary_kernel();
  allow_secondary_kernel();
  const unsigned number = blockIdx.y;
  const unsigned count = min(*job.from.count(number), job.from.capacity);
  const unsigned first = blockIdx.x * kScatterTile + threadIdx.x;
  if (blockIdx.x * kScatterTile >= count) return;
  const auto* from = reinterpret_cast<const float4*>(job.from.records) +
                     static_cast<std::int64_t>(number) * job.from.capacity;
  PointRecord records[kScatterItems] = {};
#pragma unroll
  for (int item = 0; item < kScatterItems; ++item) {
    const unsigned i = first + item * kScatterThreads;
    if (i >= count) continue;
    const float4 four = __ldcs(from + i);
    records[item] = {four.x, four.y, four.z, __float_as_uint(four.w)};
  }
  begin_tile(tile, job, number);
  unsigned parts[kScatterItems];
  find_parts(job, tile.keys, number, records, parts);
#pragma unroll
  for (int item = 0; item < kScatterItems; ++item) {
    if (first + item * kScatterThreads >= count) parts[item] = ~0u;
  }
  store_tile(tile, job, number, records, parts);
}

/// The samples of the first step, side by side, from all over the points.
/// Owns: thread i sample i.
/// Reads: the sample's point.
/// Writes: its record.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: this project's.
template <int D>
__global__ void gather_samples(const float* points, SampleSet samples, PointRecord* records) {
  allow_secondary_kernel();
  const std::int64_t sample = thread_number();
  if (sample < samples.count) records[sample] = load_point<D>(points, samples.index(sample));
}

}  // namespace cumulus::kd_tree
