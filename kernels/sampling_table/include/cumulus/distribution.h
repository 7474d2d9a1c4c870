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
