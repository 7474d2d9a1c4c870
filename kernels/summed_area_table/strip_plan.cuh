#pragma once

#include <cstdint>

#include "kernels/summed_area_table/summed_area_table_tuning.h"
#include "kernels/summed_area_table/tile_plan.cuh"

// What the kernel of strips (strip_build.cuh) knows at compile time, what it is told, and what a block keeps
// in shared memory.

namespace cumulus::summed_area_table {

/// A block goes down a strip of the image, kColumns elements wide, band by band of kRows rows.
template <class InputType, class SumType, int ChannelCount, StripShape kShape>
struct StripPlan {
  using Input = InputType;
  using Sum = SumType;
  static constexpr Layout kLayout = Layout::kPlanes;
  static constexpr int kChannels = ChannelCount;
  static constexpr int kElements = kShape.lane_elements;
  static constexpr int kRowLanes = kShape.row_lanes;
  static constexpr int kColumns = kShape.columns();
  static constexpr int kWarps = kShape.warps;  // that sum
  static constexpr int kSummingThreads = 32 * kWarps;
  static constexpr int kMessengers = kShape.messengers;  // warps that talk to other blocks
  static constexpr int kThreads = 32 * (kWarps + kMessengers);
  /// Lanes are in groups of kRowLanes, which go through kGroupRows rows together.
  static constexpr int kGroups = kShape.groups();
  static constexpr int kGroupRows = kShape.group_rows;
  static constexpr int kRows = kShape.rows();
  static constexpr int kRowWords = kRows * kChannels;  // totals of a band
  /// Messages are of kMessageRows rows, kMessages of them a band.
  static constexpr int kMessageRows = 64;
  static constexpr int kMessages = kRows / kMessageRows;
  static constexpr int kLaneWords = kMessageRows * kChannels / 32;  // of a message
  static constexpr int kStages = kShape.stages;                     // bands that shared memory holds
  static constexpr int kLag = kShape.lag;          // bands between a band's totals and its table
  static constexpr int kAhead = kStages - kLag;    // bands being copied
  static constexpr int kRing = kLag < 8 ? 8 : 16;  // bands whose totals are under way, at most
  static_assert(kElements % kChannels == 0 && kElements % 4 == 0,
                "a lane holds whole pixels and whole quads");
  static_assert(kGroups <= 32 && kRows % kMessageRows == 0 && kAhead >= 1 && kLag < kRing);
};

template <class P>
struct StripArguments {
  Planes<const typename P::Input, P::kLayout> image;
  Planes<typename P::Sum, P::kLayout> table;
  std::int64_t height;
  std::int64_t row_elements;
  std::uint32_t strips;  // of a plane
  std::uint32_t bands;
  std::uint32_t* next_ticket;
  Word<typename P::Sum>* words;  // totals of every row: of each strip, then of each group of strips

  __device__ std::int64_t words_of_strip() const { return std::int64_t{bands} * P::kRowWords; }
  __device__ std::int64_t first_strip(std::uint32_t plane) const {
    return std::int64_t{plane} * (strips + (strips + kStripsOfGroup - 1) / kStripsOfGroup);
  }
  __device__ std::int64_t first_group(std::uint32_t plane) const { return first_strip(plane) + strips; }
};

/// A barrier in shared memory that warps arrive at and others wait for, of one use after the other.
class SharedBarrier {
 public:
  __device__ void init(int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  /// Of a whole warp.
  __device__ void arrive() {
    __syncwarp();
    if (lane_index() == 0)
      asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address())
                   : "memory");
  }
  /// For the end of use number `use`.
  __device__ void wait(std::uint32_t use) {
    std::uint32_t over = 0;
    while (over == 0) {
      asm volatile(
          "{ .reg .pred over; mbarrier.try_wait.parity.shared.b64 over, [%1], %2; selp.u32 %0, 1, 0, over; }"
          : "=r"(over)
          : "r"(address()), "r"(use % 2)
          : "memory");
    }
  }

 private:
  __device__ std::uint32_t address() const {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(&state_));
  }

  std::uint64_t state_;
};

/// A block's shared memory.
template <class P>
struct StripMemory {
  using Sum = typename P::Sum;
  alignas(16) typename P::Input pixels[P::kStages][P::kRows][P::kColumns];
  /// The groups' sums by column of a band; then of all above each group. Padded against bank conflicts.
  alignas(16) Sum groups[2][P::kGroups][P::kColumns + 16 / sizeof(Sum)];
  Sum totals[P::kRing][P::kRowWords];               // of the strip's rows
  Sum left[P::kRing][P::kRowWords];                 // what lies left of the strip in a row and all above
  Sum above[P::kRing][P::kMessages][P::kChannels];  // likewise, in the last row of a message
  SharedBarrier totals_ready[P::kRing];
  SharedBarrier above_ready[P::kRing][P::kMessages];
  SharedBarrier left_ready[P::kRing][P::kMessages];
  std::uint32_t ticket;
};

}  // namespace cumulus::summed_area_table
