#pragma once

// The planes of the upper levels, from samples.

#include <cstdint>

#include "kernels/kd_tree/sampled/scatter.cuh"
#include "kernels/kd_tree/tuning.h"

namespace cumulus::kd_tree {

/// What a block writes of its part's splits.
template <int kThreads, int kItems>
struct StorePlanes {
  const Part<kThreads, kItems>& part;
  const Planes& planes;
  int above;  // levels above the part
  unsigned number;
  __device__ void operator()(int level, unsigned node, unsigned axis, unsigned place) const {
    const unsigned to = (1u << (above + level)) - 1 + (number << level) + node;
    PivotPoint pivot{0, 0};
    if (place < part.count) pivot = {ordered_key(part.at(axis, place)), part.indices[place]};
    planes.keys[to] = (pivot.key & ~3u) | axis;
    planes.points[to] = pivot;
  }
};

struct PlaneJob {
  unsigned capacity;  // of a part
  Planes planes;
  int above;   // levels above the parts
  int levels;  // of theirs
};

template <int kThreads, int kItems>
__device__ Part<kThreads, kItems> begin_part(unsigned char* memory, unsigned capacity, int levels) {
  Part<kThreads, kItems> part(memory, capacity, 1u << levels);
  if (threadIdx.x == 0) clear_box(part.boxes);
  __syncthreads();
  return part;
}

/// Loads part `number` and bounds it.
template <int kThreads, int kItems>
__device__ void load_part(Part<kThreads, kItems>& part, const Parts& parts, unsigned number, unsigned count) {
  part.count = count;
  ThreadBox box;
  const auto* records =
      reinterpret_cast<const float4*>(parts.records + static_cast<std::int64_t>(number) * parts.capacity);
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < count; i += kThreads) {
    const float4 four = __ldcs(records + i);
    put_point(part, i, {four.x, four.y, four.z, __float_as_uint(four.w)});
    box.include(four.x, four.y, four.z);
  }
  bound_part(part, box);
}

/// The planes of the first step.
/// Owns: one block has all samples.
/// Reads: the samples.
/// Writes: the planes.
/// Waits for: the kernel in front of it; nothing of other blocks.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: medians of samples, as in W. Frazer and A. McKellar, "Samplesort" (1970).
static __global__ void __launch_bounds__(kSampleThreads)
    split_samples(PlaneJob job, const PointRecord* samples, unsigned count) {
  extern __shared__ __align__(16) unsigned char memory[];
  wait_for_primary_kernel();
  allow_secondary_kernel();
  Part<kSampleThreads, kSampleItems> part =
      begin_part<kSampleThreads, kSampleItems>(memory, job.capacity, job.levels);
  const Parts parts{const_cast<PointRecord*>(samples), nullptr, count, 1};
  load_part(part, parts, 0, count);
  split_part(part, job.levels, StorePlanes<kSampleThreads, kSampleItems>{part, job.planes, job.above, 0});
}

/// The planes of the second step.
/// Owns: block b part b of the first step.
/// Reads: the part's samples.
/// Writes: its planes.
/// Waits for: the kernel in front of it; nothing of other blocks.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: as split_samples.
static __global__ void __launch_bounds__(kSampleThreads) split_parts(PlaneJob job, Parts parts) {
  extern __shared__ __align__(16) unsigned char memory[];
  wait_for_primary_kernel();
  allow_secondary_kernel();
  Part<kSampleThreads, kSampleItems> part =
      begin_part<kSampleThreads, kSampleItems>(memory, job.capacity, job.levels);
  load_part(part, parts, blockIdx.x, min(*parts.count(blockIdx.x), parts.capacity));
  split_part(part, job.levels,
             StorePlanes<kSampleThreads, kSampleItems>{part, job.planes, job.above, blockIdx.x});
}

}  // namespace cumulus::kd_tree
