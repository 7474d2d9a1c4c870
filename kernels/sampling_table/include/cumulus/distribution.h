#pragma once

// One distribution of a sampling table, and its cells. cumulus/sampling.h is the header to include. C++17,
// host and CUDA device, no dependency.

#include <cstddef>
#include <cstdint>

#include "cumulus/host_device.h"
#include "cumulus/table_format.h"

namespace cumulus::sampling::detail {

struct Cell {
  std::uint32_t index = 0;
  std::uint32_t lower = 0;
  std::uint64_t mass = 0;  ///< In units of 2^-32.
};

/// A cell, and where within it the point lies: what is before it and what is after, both in (0, 1).
struct Located {
  Cell cell;
  float fraction = 0;
  float rest = 0;  ///< 1 - fraction, exact also where it is small.
};

/// One distribution of a table: a row, or a marginal. `guide` and `nodes` are null where the method has none.
struct Distribution {
  const std::uint32_t* lower = nullptr;
  std::uint32_t count = 0;
  std::uint32_t guide_size = 0;
  const unsigned char* guide = nullptr;
  const unsigned char* nodes = nullptr;
  bool quads = false;  ///< Whether the lower bounds are whole pieces of 16 bytes.
};

CUMULUS_HOST_DEVICE inline bool whole_quads(const void* lower, std::uint32_t count) {
  return count % 4 == 0 && reinterpret_cast<std::uintptr_t>(lower) % 16 == 0;
}

inline constexpr float kBelowOne = 0.99999994F;  // the largest float below 1

CUMULUS_HOST_DEVICE inline std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }

template <class T>
CUMULUS_HOST_DEVICE T element(const unsigned char* section, std::size_t i) {
  return reinterpret_cast<const T*>(section)[i];
}

/// No cell with mass begins at kEmptyTail: the last x belongs to the cell of the last but one.
CUMULUS_HOST_DEVICE inline std::uint32_t search_key(std::uint32_t x) { return smaller(x, kEmptyTail - 1); }

/// The last cell of [first, last] whose lower bound is at most x, or first.
CUMULUS_HOST_DEVICE inline std::uint32_t find_cell(const std::uint32_t* lower, std::uint32_t first,
                                                   std::uint32_t last, std::uint32_t x) {
  const std::uint32_t key = search_key(x);
  while (first < last) {
    const std::uint32_t middle = first + (last - first + 1) / 2;
    if (lower[middle] <= key) {
      first = middle;
    } else {
      last = middle - 1;
    }
  }
  return first;
}

/// The same, one cell after another.
CUMULUS_HOST_DEVICE inline std::uint32_t walk_to_cell(const std::uint32_t* lower, std::uint32_t first,
                                                      std::uint32_t last, std::uint32_t x) {
  const std::uint32_t key = search_key(x);
  while (first < last && lower[first + 1] <= key) ++first;
  return first;
}

/// The cell with this stored lower bound, whose right neighbour's is `next` (kEmptyTail: there is none).
CUMULUS_HOST_DEVICE inline Cell cell_between(std::uint32_t index, std::uint32_t lower, std::uint32_t next) {
  const std::uint64_t end = next == kEmptyTail ? kWholeMass : next;
  return {index, lower, lower != kEmptyTail && end > lower ? end - lower : 0};
}

/// The same of a cell that has mass, since a search has found it.
CUMULUS_HOST_DEVICE inline Cell found_between(std::uint32_t index, std::uint32_t lower, std::uint32_t next) {
  const std::uint32_t mass = (next == kEmptyTail ? 0 : next) - lower;
  return {index, lower, mass == 0 ? kWholeMass : mass};
}

CUMULUS_HOST_DEVICE inline Cell cell_at(const std::uint32_t* lower, std::uint32_t count,
                                        std::uint32_t index) {
  return cell_between(index, lower[index], index + 1 < count ? lower[index + 1] : kEmptyTail);
}

/// (offset + half a unit) times `inverse`, the reciprocal of an extent; both in units of 2^-32.
CUMULUS_HOST_DEVICE inline float share_of(std::uint32_t offset, float half_unit, float inverse) {
  const float fraction = (static_cast<float>(offset) + half_unit) * inverse;
  return fraction < kBelowOne ? fraction : kBelowOne;
}

/// A cell's stored lower bound, or kEmptyTail for what is after the last.
CUMULUS_HOST_DEVICE inline std::uint32_t bound_at(const Distribution& cells, std::uint32_t index) {
  return index < cells.count ? cells.lower[index] : kEmptyTail;
}

struct CellRange {
  std::uint32_t first;
  std::uint32_t last;
};

/// Cells after the first that are looked at side by side. Part of the format of the radix forests: where a
/// guide cell has more, a tree has them.
inline constexpr std::uint32_t kMaxFurther = 7;

#if defined(__CUDA_ARCH__)
/// Four neighbouring lower bounds.
struct BoundQuad {
  std::uint32_t at;      ///< Which four of the distribution's.
  std::uint32_t before;  ///< The bound in front of them.
  uint4 bounds;
};

/// The cell of `key`, where the quad's first bound, or that in front of it, is at most `key`, and the last,
/// or that behind it, is above it.
__device__ inline Cell cell_in_quad(const BoundQuad& quad, std::uint32_t key) {
  const bool second = key >= quad.bounds.y;
  const std::uint32_t low = second ? quad.bounds.y : quad.before;
  const std::uint32_t middle = second ? quad.bounds.z : quad.bounds.x;
  const std::uint32_t high = second ? quad.bounds.w : quad.bounds.y;
  const bool upper = key >= middle;
  const bool behind = key >= quad.bounds.w;  // the last cell of all
  const std::uint32_t lower = behind ? quad.bounds.w : upper ? middle : low;
  const std::uint32_t next = behind ? kEmptyTail : upper ? high : middle;
  const std::uint32_t index = 4 * quad.at + (second ? 2 : 0) + (upper ? 1 : 0) + (behind ? 1 : 0);
  return found_between(index > 0 ? index - 1 : 0, lower, next);
}

/// The cell of `key` among those from `first` to the one in front of `behind`, at most kMaxFurther + 1, four
/// bounds at a time. Bounds before these cells are no larger than `key`, those behind them are larger.
__device__ inline Cell cell_by_quads(const Distribution& cells, std::uint32_t first, std::uint32_t behind,
                                     std::uint32_t key) {
  const auto* const quads = reinterpret_cast<const uint4*>(cells.lower);
  const std::uint32_t last = smaller(behind, cells.count - 1) / 4;
  BoundQuad quad{first / 4, 0, quads[first / 4]};
  if (quad.at < last) {
    const uint4 following = quads[quad.at + 1];  // on its way beside the first
    if (key >= quad.bounds.w) {
      quad = {quad.at + 1, quad.bounds.w, following};
      if (key >= quad.bounds.w && quad.at < last) quad = {quad.at + 1, quad.bounds.w, quads[quad.at + 1]};
    }
  }
  return cell_in_quad(quad, key);
}
#endif

/// The cell of x among those of `range`: bisected down to few, which are looked at side by side where that
/// can be.
CUMULUS_HOST_DEVICE inline Cell cell_in_range(const Distribution& cells, const CellRange& range,
                                              std::uint32_t x) {
#if defined(__CUDA_ARCH__)
  if (cells.quads) {
    const std::uint32_t key = search_key(x);
    std::uint32_t first = range.first;
    std::uint32_t last = range.last > first ? range.last : first;
#pragma unroll 1
    while (last - first > kMaxFurther) {
      const std::uint32_t middle = first + (last - first + 1) / 2;
      if (cells.lower[middle] <= key) {
        first = middle;
      } else {
        last = middle - 1;
      }
    }
    return cell_by_quads(cells, first, last + 1, key);
  }
#endif
  const std::uint32_t index = find_cell(cells.lower, range.first, range.last, x);
  return found_between(index, cells.lower[index], bound_at(cells, index + 1));
}

/// The guide cell of x.
CUMULUS_HOST_DEVICE inline std::uint32_t guide_cell(std::uint32_t guide_size, std::uint32_t x) {
#if defined(__CUDA_ARCH__)  // one instruction, where the compiler would take an address of 64 bits apart
  std::uint32_t cell = 0;
  asm("mul.hi.u32 %0, %1, %2;" : "=r"(cell) : "r"(x), "r"(guide_size));
  return cell;
#else
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(x) * guide_size >> 32);
#endif
}

}  // namespace cumulus::sampling::detail
