#pragma once

#include "kernels/sampling_table/sampling_table_dense_chip.cuh"

// The nodes at a thread's edges, as far as they follow from three edges on each side of them.

namespace cumulus::sampling_rows {

/// What is known of the edges around a thread's cells, edge i lying between its cells i - 1 and i: bit
/// i + kAround of each, from edge -kAround on to edge kOwn + kAround - 1. The difference at an edge is that
/// of the keys there, as far as they are in one guide cell; of two edges of a tree, that with the larger one
/// is nearer to the root.
struct EdgeBits {
  static constexpr int kAround = 3;
  std::uint32_t boundary = 0;  ///< The cells' lower bounds are in different guide cells.
  std::uint32_t above = 0;     ///< No boundary, and the difference is larger than at the edge before.
  std::uint32_t tops = 0;      ///< After two such that the first is no boundary and sinks: larger than both.
  std::uint32_t third = 0;     ///< Larger than at the third edge before.
  std::uint32_t odd = 0;       ///< No node: of these, searches find out.

  CUMULUS_HOST_DEVICE static constexpr std::uint32_t bit(int i) { return 1u << (i + kAround); }
};

/// Between steps of a long row of steps, each of which has conditions: a branch that is never taken, over
/// which the compiler does not move them. It would begin all steps at once, and keep more conditions than
/// there are predicates.
__device__ inline void part_steps(std::uint32_t guide_size) {
#if defined(__CUDA_ARCH__)
  if (guide_size == 0) asm volatile("exit;");
#endif
}

/// The word of node j, both of whose children are cells, is this many times j, and as much.
inline constexpr std::uint32_t kPairStep = 0x00010001u;
inline constexpr std::uint32_t kPairBase = 0x80007FFFu;
/// What a node's word has too much where its child is a node: in the lower half, and in the upper one.
inline constexpr std::uint32_t kLeftLeaf = kLeaf;
inline constexpr std::uint32_t kRightLeaf = (kLeaf - 1) << 16;

/// Goes from edge to edge. Each step is written out for the device, since a compiler that combines the
/// conditions of all steps runs out of predicates.
struct EdgeWalk {
  std::uint32_t cell;           ///< Of the key behind the edge before.
  std::uint32_t place;          ///< Of that key in its guide cell.
  std::uint32_t first = 0;      ///< The difference at the edge before,
  std::uint32_t second = 0;     ///< at the second before, or 0 if there is a boundary between,
  std::uint32_t third[2] = {};  ///< at the second and the third before, in any case.

  __device__ explicit EdgeWalk(std::uint64_t key)
      : cell(static_cast<std::uint32_t>(key >> 32)), place(static_cast<std::uint32_t>(key)) {}

  /// To the edge before `key`, at `bit`. Takes off the words of the node there and of the two nodes before
  /// what they have too much; at a boundary, stores `number` to `last`. Returns the difference.
  template <bool kNotes>
  __device__ std::uint32_t step(std::uint64_t key, std::uint32_t bit, EdgeBits& bits, std::uint32_t& own,
                                std::uint32_t& before, std::uint32_t& second_before, std::uint16_t* last,
                                std::uint32_t number) {
    const auto next_cell = static_cast<std::uint32_t>(key >> 32);
    const auto next_place = static_cast<std::uint32_t>(key);
    std::uint32_t difference = 0;
#if defined(__CUDA_ARCH__)
    if constexpr (kNotes) {
      asm volatile("{ .reg .pred boundary; setp.ne.u32 boundary, %0, %1; @boundary st.shared.u16 [%2], %3; }"
                   :
                   : "r"(next_cell), "r"(cell), "r"(static_cast<unsigned>(__cvta_generic_to_shared(last))),
                     "h"(static_cast<std::uint16_t>(number))
                   : "memory");
    }
    asm("{ .reg .pred boundary, rises, sinks, valley, top, low, high; .reg .u32 inside;\n"
        "setp.ne.u32 boundary, %9, %10;\n"
        "selp.u32 inside, 0, %11, boundary;\n"
        "xor.b32 %0, %12, inside;\n"
        "@boundary or.b32 %1, %1, %13;\n"
        "setp.lt.and.u32 rises|sinks, %14, %0, !boundary;\n"
        "@rises or.b32 %2, %2, %13;\n"
        "@rises sub.u32 %6, %6, %15;\n"
        "@sinks sub.u32 %7, %7, %16;\n"
        "setp.lt.and.u32 valley, %14, %5, rises;\n"
        "setp.lt.and.u32 top|low, %5, %0, valley;\n"
        "@top or.b32 %3, %3, %13;\n"
        "@top sub.u32 %6, %6, 1;\n"
        "@low add.u32 %8, %8, 0x10000;\n"
        "selp.u32 %5, 0, %14, boundary;\n"
        "setp.lt.u32 high, %17, %0;\n"
        "@high or.b32 %4, %4, %13; }"
        : "=&r"(difference), "+r"(bits.boundary), "+r"(bits.above), "+r"(bits.tops), "+r"(bits.third),
          "+r"(second), "+r"(own), "+r"(before), "+r"(second_before)
        : "r"(next_cell), "r"(cell), "r"(place), "r"(next_place), "r"(bit), "r"(first), "n"(kLeftLeaf),
          "n"(kRightLeaf), "r"(third[1]));
#else
    const bool boundary = next_cell != cell;
    if (kNotes && boundary) *last = static_cast<std::uint16_t>(number);
    difference = next_place ^ (boundary ? 0 : place);
    const bool rises = !boundary && first < difference;
    const bool valley = rises && first < second;
    const bool top = valley && second < difference;
    bits.boundary |= boundary ? bit : 0;
    bits.above |= rises ? bit : 0;
    bits.tops |= top ? bit : 0;
    bits.third |= third[1] < difference ? bit : 0;
    own -= (rises ? kLeftLeaf : 0) + (top ? 1 : 0);
    before -= !boundary && !rises ? kRightLeaf : 0;
    second_before += valley && !top ? 0x10000 : 0;
    second = boundary ? 0 : first;
#endif
    pass(next_cell, next_place, difference);
    return difference;
  }

  /// The same at an edge that is only looked at from others.
  __device__ std::uint32_t look(std::uint64_t key, std::uint32_t bit, EdgeBits& bits) {
    const auto next_cell = static_cast<std::uint32_t>(key >> 32);
    const auto next_place = static_cast<std::uint32_t>(key);
    const bool boundary = next_cell != cell;
    const std::uint32_t difference = next_place ^ (boundary ? 0 : place);
    if (boundary) bits.boundary |= bit;
    if (third[1] < difference) bits.third |= bit;
    second = boundary ? 0 : first;
    pass(next_cell, next_place, difference);
    return difference;
  }

 private:
  __device__ void pass(std::uint32_t next_cell, std::uint32_t next_place, std::uint32_t difference) {
    cell = next_cell;
    place = next_place;
    third[1] = third[0];
    third[0] = first;
    first = difference;
  }
};

/// Which of the nodes at a thread's edges are known from these, at the bits of their edges.
struct KnownNodes {
  std::uint32_t unknown;
  std::uint32_t roots;
  std::uint32_t pairs;  ///< Roots that part two cells.

  __device__ explicit KnownNodes(const EdgeBits& e) {
    const std::uint32_t b = e.boundary;
    const std::uint32_t below = ~(b | e.above);  // the difference is smaller than at the edge before
    const std::uint32_t left_two = e.above & ~(b << 1) & (e.above << 1 | e.tops);
    const std::uint32_t left_three = left_two & ~(b << 2) & e.third;
    const std::uint32_t left_open = b | (e.above & b << 1) | (left_two & b << 2);
    const std::uint32_t right_one = below >> 1;
    const std::uint32_t right_two = right_one & (below >> 2 | (e.above >> 2 & ~(e.tops >> 2)));
    const std::uint32_t right_three = right_two & ~(b >> 3) & ~(e.third >> 3);
    const std::uint32_t right_open = b >> 1 | (right_one & b >> 2) | (right_two & b >> 3);
    std::uint32_t near_odd = e.odd;
    near_odd |= near_odd << 1 | near_odd >> 1;
    near_odd |= near_odd << 2 | near_odd >> 2;
    unknown = (left_three | right_three | near_odd) & ~e.odd;
    roots = left_open & right_open & ~(unknown | e.odd);
    pairs = roots & ~(e.above | right_one);
  }
};

}  // namespace cumulus::sampling_rows
