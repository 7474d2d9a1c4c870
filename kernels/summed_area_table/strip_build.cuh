#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/summed_area_table/strip_messages.cuh"
#include "kernels/summed_area_table/tile_strips.cuh"

// The kernel of large images: a block goes down a strip of the image, from its first row to its last, and
// keeps what is above in registers. Blocks need to know of each other only what lies to the left of their
// strip, row by row, and they learn it some bands before they need it: kLag bands wait in shared memory for
// that while kAhead more are being copied there. So every pixel is read once, every sum written once, all
// blocks go down the image side by side, and none waits where they keep pace.
//
// The sums to the left come in two steps, to keep the way short: each strip publishes the totals of its rows;
// the strips of a group of kStripsOfGroup add up those of the strips before them, and the last one publishes
// the group's totals; each strip adds up those of the groups before.
//
// A block waits only for strips to its left, whose blocks took their tickets before it did and are running:
// it works with any number of resident blocks.

namespace cumulus::summed_area_table {

/// Waits for the block's summing warps.
template <class P>
__device__ void sync_summing_warps() {
  asm volatile("bar.sync 1, %0;" ::"n"(P::kSummingThreads) : "memory");
}

/// Starts to copy a lane's elements of one row, or to write zeros.
template <int kBytes>
__device__ void copy_lane_async(void* to, const void* from, bool exists) {
  constexpr int kUnit = kBytes % 16 == 0 ? 16 : kBytes % 8 == 0 ? 8 : 4;
  auto* to_bytes = static_cast<char*>(to);
  const auto* from_bytes = static_cast<const char*>(from);
#pragma unroll
  for (int i = 0; i < kBytes; i += kUnit) {
    const auto shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(to_bytes + i));
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
  }
}

__device__ inline void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits for the thread's copies but for those of the last `kPending` calls of close_copies.
template <int kPending>
__device__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
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

/// A thread that sums: the same kElements columns and kGroupRows rows of every band. It copies, reads and
/// writes its own elements only, so that copies need no barrier.
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
          memory_.totals[band % P::kRing][(group_ * P::kGroupRows + r) * P::kChannels + channel] = total;
      }
    }
    memory_.totals_ready[band % P::kRing].arrive();
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
    for (auto& ready : memory_.left_ready[band % P::kRing]) ready.wait(band / P::kRing);
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) {
      const Sum* left = &memory_.left[band % P::kRing][(group_ * P::kGroupRows + r) * P::kChannels];
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

template <class P>
__global__ void __launch_bounds__(P::kThreads) build_table_in_strips(const StripArguments<P> a) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ uint4 shared_memory[];
  auto& memory = *reinterpret_cast<StripMemory<P>*>(shared_memory);
  cudaGridDependencySynchronize();  // for clear_scratch
  if (threadIdx.x == 0) {
    memory.ticket = atomicAdd(a.next_ticket, 1u);
    for (int i = 0; i < P::kRing; ++i) {
      memory.totals_ready[i].init(P::kWarps);
      for (auto& ready : memory.above_ready[i]) ready.init(1);
      for (auto& ready : memory.left_ready[i]) ready.init(1);
    }
  }
  __syncthreads();
  const Strip strip{memory.ticket / a.strips, memory.ticket % a.strips};
  if (warp_index() >= P::kWarps) {
    Messenger<P>(a, memory, strip).run(static_cast<std::uint32_t>(warp_index() - P::kWarps));
    return;
  }
  Summer<P> summer(a, memory, strip);
#pragma unroll 1
  for (std::uint32_t band = 0; band < P::kAhead; ++band) summer.copy(band);
#pragma unroll 1
  for (std::uint32_t step = 0; step < a.bands + P::kLag; ++step) {
    if (step < a.bands) summer.sum_rows(step);
    if (step >= P::kLag) summer.finish(step - P::kLag);
    summer.copy(step + P::kAhead);
  }
#endif
}

}  // namespace cumulus::summed_area_table
