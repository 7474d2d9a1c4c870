#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/summed_area_table/strip_plan.cuh"
#include "kernels/summed_area_table/tile_strips.cuh"

// The kernel of large images: a block goes down a strip of the image, from its first row to its last, and keeps
// what is above in registers. Blocks need to know of each other only what lies to the left of their strip, row
// by row, and they are told some bands before they need it: while kAhead bands are being copied to shared
// memory, kLag bands wait there for that. So every pixel is read once, every sum written once, all blocks go
// down the image side by side, and none waits where they keep pace.
//
// The sums to the left come in two steps, to keep the way short: each strip tells the totals of its rows; the
// strips of a group of kStripsOfGroup add up those of the strips before them, and the last one tells the group's
// totals; each strip adds up those of the groups before.
//
// A block waits only for strips to its left, whose blocks took their tickets before it did and are running: it
// works with any number of resident blocks.

namespace cumulus::summed_area_table {

/// Where a block works.
struct Strip {
  std::uint32_t plane;
  std::uint32_t number;  // in the plane
  __device__ std::uint32_t in_group() const { return number % kStripsOfGroup; }
  __device__ std::uint32_t group() const { return number / kStripsOfGroup; }
};

/// Waits until `count` bands are told of.
__device__ inline void await_bands(const std::uint32_t* told, std::uint32_t count) {
  std::uint32_t bands = 0;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(bands) : "l"(told) : "memory");
  } while (bands < count);
}

/// After the warp has stored the totals of the band before `count`.
__device__ inline void tell_bands(std::uint32_t* told, std::uint32_t count) {
  __syncwarp();
  if (lane_index() != 0) return;
  __threadfence();
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(told), "r"(count) : "memory");
}

/// Waits for the block's summing warps.
template <class P>
__device__ void sync_summing_warps() {
  asm volatile("bar.sync 1, %0;" ::"n"(P::kSummingThreads) : "memory");
}

/// A lane's words of a band's totals, neighbours in memory.
template <class P>
struct LaneWords {
  static constexpr int kCount = P::kLaneWords;
  typename P::Sum v[kCount];

  __device__ static int first() { return lane_index() * kCount; }
  /// From where other blocks have written: not from the L1 cache.
  __device__ void read(const typename P::Sum* words) {
    constexpr int kWordSums = 16 / static_cast<int>(sizeof(typename P::Sum));
    if constexpr (kCount % kWordSums == 0) {
      auto* to = reinterpret_cast<uint4*>(v);
#pragma unroll
      for (int i = 0; i < kCount / kWordSums; ++i)
        to[i] = __ldcg(reinterpret_cast<const uint4*>(words + first()) + i);
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) v[i] = __ldcg(words + first() + i);
    }
  }
  __device__ void load(const typename P::Sum* words) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) v[i] = words[first() + i];
  }
  __device__ void store(typename P::Sum* words) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) words[first() + i] = v[i];
  }
  __device__ void add(const LaneWords& other) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) v[i] += other.v[i];
  }
};

/// Adds up what `count` neighbours have told of a band, in their order.
template <class P>
__device__ LaneWords<P> sum_told(const std::uint32_t* told, const typename P::Sum* totals, std::int64_t stride,
                                 std::uint32_t count, std::uint32_t band) {
  constexpr int kAtOnce = P::kLaneWords * sizeof(typename P::Sum) <= 16 ? 4 : 2;
  for (std::uint32_t i = lane_index(); i < count; i += 32) await_bands(told + i, band + 1);
  __syncwarp();
  const typename P::Sum* of_band = totals + std::int64_t{band} * P::kRowWords;
  LaneWords<P> sum{};
  for (std::uint32_t first = 0; first < count; first += kAtOnce) {
    LaneWords<P> words[kAtOnce];
#pragma unroll
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      if (first + i < count) words[i].read(of_band + (first + i) * stride);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      if (first + i < count) sum.add(words[i]);
    }
  }
  return sum;
}

/// One of the three warps that talk to other blocks. Each has its own band in each step of the block.
template <class P>
class Messenger {
 public:
  using Sum = typename P::Sum;

  __device__ Messenger(const StripArguments<P>& a, StripMemory<P>& memory, Strip strip)
      : a_(a),
        memory_(memory),
        strip_(strip),
        index_(strip.plane * a.strips + strip.number),
        groups_((a.strips + kStripsOfGroup - 1) / kStripsOfGroup) {}

  __device__ void step(int role, std::uint32_t step) {
    // A role has band step - 1 - role, if there is one.
    const std::uint32_t band = step - 1 - static_cast<std::uint32_t>(role);
    if (band >= a_.bands) return;
    if (role == 0) tell_totals(band);
    if (role == 1) sum_in_group(band);
    if (role == 2) sum_left(band);
  }

 private:
  __device__ void tell_totals(std::uint32_t band) {
    Sum* totals = a_.totals + index_ * a_.words_of_strip() + std::int64_t{band} * P::kRowWords;
    for (int i = lane_index(); i < P::kRowWords; i += 32) totals[i] = memory_.totals[band % 4][i];
    tell_bands(a_.counters.strips_told + index_, band + 1);
  }

  __device__ void sum_in_group(std::uint32_t band) {
    const std::uint32_t first = index_ - strip_.in_group();
    auto sum = sum_told<P>(a_.counters.strips_told + first, a_.totals + first * a_.words_of_strip(),
                           a_.words_of_strip(), strip_.in_group(), band);
    sum.store(memory_.in_group[band % 4]);
    if (strip_.in_group() != kStripsOfGroup - 1) return;
    LaneWords<P> own;
    own.load(memory_.totals[band % 4]);
    sum.add(own);
    const std::uint32_t group = strip_.plane * groups_ + strip_.group();
    sum.store(a_.group_totals + group * a_.words_of_strip() + std::int64_t{band} * P::kRowWords);
    tell_bands(a_.counters.groups_told + group, band + 1);
  }

  __device__ void sum_left(std::uint32_t band) {
    const std::uint32_t first = strip_.plane * groups_;
    auto sum = sum_told<P>(a_.counters.groups_told + first, a_.group_totals + first * a_.words_of_strip(),
                           a_.words_of_strip(), strip_.group(), band);
    LaneWords<P> in_group;
    in_group.load(memory_.in_group[band % 4]);
    sum.add(in_group);
#pragma unroll
    for (int i = P::kChannels; i < P::kLaneWords; ++i) sum.v[i] += sum.v[i - P::kChannels];
#pragma unroll
    for (int channel = 0; channel < P::kChannels; ++channel) {
      const Sum through_lane = warp_inclusive_scan(sum.v[P::kLaneWords - P::kChannels + channel]);
      const Sum before = above_[channel] + before_lane(through_lane);
      above_[channel] += __shfl_sync(~0u, through_lane, 31);
#pragma unroll
      for (int i = channel; i < P::kLaneWords; i += P::kChannels) sum.v[i] += before;
    }
    sum.store(memory_.left[band % 4]);
  }

  const StripArguments<P>& a_;
  StripMemory<P>& memory_;
  const Strip strip_;
  const std::uint32_t index_;   // of all planes' strips
  const std::uint32_t groups_;  // of a plane
  Sum above_[P::kChannels] = {};  // what lies left of the strip in the rows done, by channel
};

/// Starts to copy a lane's elements of one row, or to write zeros.
template <int kBytes>
__device__ void copy_lane_async(void* to, const void* from, bool exists) {
  constexpr int kUnit = kBytes % 16 == 0 ? 16 : kBytes % 8 == 0 ? 8 : 4;
  auto* to_bytes = static_cast<char*>(to);
  const auto* from_bytes = static_cast<const char*>(from);
#pragma unroll
  for (int i = 0; i < kBytes; i += kUnit) {
    const auto shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(to_bytes + i));
#if __CUDA_ARCH__ >= 800
    if constexpr (kUnit == 16) {
      asm volatile(
          "{ .reg .b64 streaming;\n"
          "  createpolicy.fractional.L2::evict_first.b64 streaming, 1.0;\n"
          "  cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, streaming; }" ::"r"(shared),
          "l"(from_bytes + i), "r"(exists ? 16 : 0)
          : "memory");
    } else {
      asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(shared), "l"(from_bytes + i),
                   "r"(exists ? kUnit : 0), "n"(kUnit)
                   : "memory");
    }
#else
    using Unit = std::conditional_t<kUnit == 16, uint4, std::conditional_t<kUnit == 8, uint2, unsigned int>>;
    *reinterpret_cast<Unit*>(to_bytes + i) =
        exists ? __ldcs(reinterpret_cast<const Unit*>(from_bytes + i)) : Unit{};
    (void)shared;
#endif
  }
}

__device__ inline void close_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits for the thread's copies but for those of the last `kPending` calls of close_copies.
template <int kPending>
__device__ void await_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

/// Sums over the first lanes of each group of kWidth, this lane's value included.
template <int kWidth, class Sum>
__device__ Sum scan_lanes(Sum value) {
#pragma unroll
  for (int distance = 1; distance < kWidth; distance *= 2) {
    const Sum before = __shfl_up_sync(~0u, value, distance, kWidth);
    if (lane_index() % kWidth >= distance) value += before;
  }
  return value;
}
template <int kWidth, class Sum>
__device__ Sum before_lanes(Sum inclusive) {
  const Sum before = __shfl_up_sync(~0u, inclusive, 1, kWidth);
  return lane_index() % kWidth == 0 ? Sum{0} : before;
}

/// A thread that sums: the same kElements columns and kGroupRows rows of every band. It copies, reads and writes
/// its own elements only, so that copies need no barrier.
template <class P>
class Summer {
 public:
  using Input = typename P::Input;
  using Sum = typename P::Sum;

  __device__ Summer(const StripArguments<P>& a, StripMemory<P>& memory, Strip strip)
      : a_(a),
        memory_(memory),
        lane_(lane_index() % P::kRowLanes),
        group_(static_cast<int>(threadIdx.x) / P::kRowLanes) {
    const std::int64_t column = std::int64_t{strip.number} * P::kColumns + lane_ * P::kElements;
    exists_ = column < a.row_elements;
    const std::int64_t row = group_ * P::kGroupRows;
    from_ = a.image.plane(strip.plane) + row * a.image.row_stride + column;
    to_ = a.table.plane(strip.plane) + row * a.table.row_stride + column;
  }

  __device__ void copy(std::uint32_t band) {
    if (band < a_.bands) {
      const std::int64_t top = std::int64_t{band} * P::kRows;
      const Input* from = from_ + top * a_.image.row_stride;
#pragma unroll
      for (int r = 0; r < P::kGroupRows; ++r) {
        const bool exists = exists_ && top + group_ * P::kGroupRows + r < a_.height;
        copy_lane_async<P::kElements * sizeof(Input)>(
            elements(band, r), exists ? from + r * a_.image.row_stride : a_.image.data, exists);
      }
    }
    close_copies();
  }

  /// The totals of the group's rows.
  __device__ void sum_rows(std::uint32_t band) {
    await_copies<P::kAhead - 1>();
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) {
      Sum totals[P::kChannels] = {};
      const Input* pixels = elements(band, r);
#pragma unroll
      for (int q = 0; q < P::kElements; q += 4) {
        const auto quad = quad_at(pixels + q);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          totals[(q + i) % P::kChannels] += summand<Term::kValue, Sum>(quad.v[i], Sum{0});
      }
#pragma unroll
      for (int channel = 0; channel < P::kChannels; ++channel) {
        Sum total = totals[channel];
#pragma unroll
        for (int distance = P::kRowLanes / 2; distance > 0; distance /= 2)
          total += __shfl_xor_sync(~0u, total, distance);
        if (lane_ == 0)
          memory_.totals[band % 4][(group_ * P::kGroupRows + r) * P::kChannels + channel] = total;
      }
    }
  }

  __device__ void finish(std::uint32_t band) {
    Sum rows[P::kGroupRows][P::kElements];
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) scan_row(elements(band, r), rows[r]);
    auto& groups = memory_.groups[band % 2];
    Sum* own = &groups[group_][lane_ * P::kElements];
#pragma unroll
    for (int q = 0; q < P::kElements; q += 4) {
      Quad<Sum> sums{};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int r = 0; r < P::kGroupRows; ++r) sums.v[i] += rows[r][q + i];
      }
      quad_at(own + q) = sums;
    }
    sync_summing_warps<P>();
    scan_groups(groups);
    sync_summing_warps<P>();
    Sum above[P::kElements];
#pragma unroll
    for (int q = 0; q < P::kElements; q += 4) {
      const auto quad = quad_at(own + q);
#pragma unroll
      for (int i = 0; i < 4; ++i) above[q + i] = quad.v[i];
    }
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) {
      const Sum* left = &memory_.left[band % 4][(group_ * P::kGroupRows + r) * P::kChannels];
      Quad<Sum> quads[P::kElements / 4];
#pragma unroll
      for (int e = 0; e < P::kElements; ++e) {
        above[e] += rows[r][e];
        quads[e / 4].v[e % 4] = above[e] + left[e % P::kChannels];
      }
      store(band, r, quads);
    }
  }

 private:
  __device__ Input* elements(std::uint32_t band, int row) const {
    return &memory_.pixels[band % P::kStages][group_ * P::kGroupRows + row][lane_ * P::kElements];
  }

  /// Sums from the strip's left edge.
  __device__ void scan_row(const Input* pixels, Sum (&row)[P::kElements]) const {
#pragma unroll
    for (int q = 0; q < P::kElements; q += 4) {
      const auto quad = quad_at(pixels + q);
#pragma unroll
      for (int e = q; e < q + 4; ++e) {
        row[e] = summand<Term::kValue, Sum>(quad.v[e - q], Sum{0});
        if (e >= P::kChannels) row[e] += row[e - P::kChannels];
      }
    }
#pragma unroll
    for (int channel = 0; channel < P::kChannels; ++channel) {
      const Sum before =
          before_lanes<P::kRowLanes>(scan_lanes<P::kRowLanes>(row[P::kElements - P::kChannels + channel]));
#pragma unroll
      for (int e = channel; e < P::kElements; e += P::kChannels) row[e] += before;
    }
  }

  /// Turns the groups' sums into those of all rows above each group. A thread has one group and kElements
  /// columns of its own, the last lane's group being the lowest.
  template <class Groups>
  __device__ void scan_groups(Groups& groups) {
    const int group = static_cast<int>(threadIdx.x) % P::kGroups;
    const int column = static_cast<int>(threadIdx.x) / P::kGroups * P::kElements;
#pragma unroll
    for (int q = 0; q < P::kElements; q += 4) {
      auto& quad = quad_at(&groups[group][column + q]);
      auto sums = quad;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Sum through = scan_lanes<P::kGroups>(sums.v[i]);
        sums.v[i] = above_[q + i] + before_lanes<P::kGroups>(through);
        above_[q + i] += __shfl_sync(~0u, through, P::kGroups - 1, P::kGroups);
      }
      quad = sums;
    }
  }

  __device__ void store(std::uint32_t band, int row, const Quad<Sum> (&quads)[P::kElements / 4]) {
    const std::int64_t top = std::int64_t{band} * P::kRows;
    // All lanes take part in store_quads's exchange.
    const bool exists = exists_ && top + group_ * P::kGroupRows + row < a_.height;
    Sum* to = to_ + (top + row) * a_.table.row_stride;
#pragma unroll
    for (int q = 0; q < P::kElements / 4; ++q) store_quads(to + q * 4, P::kElements, quads[q], exists);
  }

  const StripArguments<P>& a_;
  StripMemory<P>& memory_;
  const int lane_;
  const int group_;
  bool exists_;
  const Input* from_;
  Sum* to_;
  Sum above_[P::kElements] = {};  // of the columns that scan_groups gives the thread: all bands done
};

/// The last block of all leaves the counters as it found them: zero.
template <class P>
__device__ void clear_counters(const StripArguments<P>& a) {
  const std::uint32_t blocks = a.planes * a.strips;
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(a.counters.done, 1u) == blocks - 1;
  }
  __syncthreads();
  if (!last) return;
  for (std::uint32_t i = threadIdx.x; i < a.counters.count; i += P::kThreads) a.counters.all[i] = 0;
}

template <class P>
__global__ void __launch_bounds__(P::kThreads) build_table_in_strips(const StripArguments<P> a) {
  extern __shared__ uint4 shared_memory[];
  auto& memory = *reinterpret_cast<StripMemory<P>*>(shared_memory);
  if (threadIdx.x == 0) memory.ticket = atomicAdd(a.counters.next_ticket, 1u);
  __syncthreads();
  const Strip strip{memory.ticket / a.strips, memory.ticket % a.strips};
  const std::uint32_t steps = a.bands + P::kLag;
  if (warp_index() < P::kWarps) {
    Summer<P> summer(a, memory, strip);
#pragma unroll 1
    for (std::uint32_t band = 0; band < P::kAhead; ++band) summer.copy(band);
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step) {
      if (step < a.bands) summer.sum_rows(step);
      if (step >= P::kLag) summer.finish(step - P::kLag);
      summer.copy(step + P::kAhead);
      __syncthreads();
    }
  } else {
    Messenger<P> messenger(a, memory, strip);
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step) {
      messenger.step(warp_index() - P::kWarps, step);
      __syncthreads();
    }
  }
  clear_counters(a);
}

}  // namespace cumulus::summed_area_table
