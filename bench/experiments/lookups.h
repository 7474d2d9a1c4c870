#pragma once

// Ways to find a row's cell and its two bounds: today's, and others that read fewer places. An experiment.

#include <cstdint>
#include <cstring>

#include "cumulus/sampling.h"

namespace cumulus::lookups {

using namespace sampling;
using namespace sampling::detail;

#if defined(__CUDA_ARCH__)
#define COUNT_LOAD()
#else
inline thread_local long loads = 0;
#define COUNT_LOAD() ++loads
#endif

struct alignas(16) Quad {
  std::uint32_t word[4];
};
template <class T>
CUMULUS_HOST_DEVICE T load(const void* from) {
  COUNT_LOAD();
#if defined(__CUDA_ARCH__)
  return __ldg(static_cast<const T*>(from));
#else
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
#endif
}
CUMULUS_HOST_DEVICE inline Quad load_quad(const void* from) {
  COUNT_LOAD();
#if defined(__CUDA_ARCH__)
  const uint4 v = __ldg(static_cast<const uint4*>(from));
  return {{v.x, v.y, v.z, v.w}};
#else
  Quad value;
  std::memcpy(&value, from, sizeof(value));
  return value;
#endif
}
CUMULUS_HOST_DEVICE inline std::uint32_t pick(const Quad& q, unsigned i) {
  const std::uint32_t low = i & 1 ? q.word[1] : q.word[0];
  const std::uint32_t high = i & 1 ? q.word[3] : q.word[2];
  return i & 2 ? high : low;
}

struct Row {
  Distribution cells;
  const Quad* guide16;  // of this row
  const Quad* nodes16;
  std::uint32_t x_bits;
};

CUMULUS_HOST_DEVICE inline Located located(const Cell& cell, std::uint32_t x) {
  return {cell, fraction_of(x - cell.lower, 0.5F, cell.mass)};
}

/// Cell c by one load of four bounds, or two where it is the last of them.
CUMULUS_HOST_DEVICE inline Cell pair_at(const Distribution& cells, std::uint32_t c) {
  const std::uint32_t* at = cells.lower + c;
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const unsigned offset = static_cast<unsigned>(address / 4 % 4);
  const Quad quad = load_quad(reinterpret_cast<const void*>(address & ~std::uintptr_t{15}));
  std::uint32_t next = kEmptyTail;
  if (c + 1 < cells.count) next = offset < 3 ? pick(quad, offset + 1) : load<std::uint32_t>(at + 1);
  return cell_between(c, pick(quad, offset), next);
}

/// Bounds c to c + 2, by one load or two; kEmptyTail behind the last.
struct Triple {
  std::uint32_t bound[3];
};
CUMULUS_HOST_DEVICE inline Triple triple_at(const Distribution& cells, std::uint32_t c) {
  const auto address = reinterpret_cast<std::uintptr_t>(cells.lower + c);
  const unsigned offset = static_cast<unsigned>(address / 4 % 4);
  const auto base = address & ~std::uintptr_t{15};
  const Quad a = load_quad(reinterpret_cast<const void*>(base));
  Quad b = a;
  if (offset > 1 && c + (4 - offset) < cells.count) b = load_quad(reinterpret_cast<const void*>(base + 16));
  Triple t;
  t.bound[0] = pick(a, offset);
  t.bound[1] = offset < 3 ? pick(a, offset + 1) : b.word[0];
  t.bound[2] = offset < 2 ? pick(a, offset + 2) : b.word[offset - 2];
  if (c + 1 >= cells.count) t.bound[1] = kEmptyTail;
  if (c + 2 >= cells.count) t.bound[2] = kEmptyTail;
  return t;
}

// --- today's, counted --------------------------------------------------------------------------------------

template <Method kMethod>
struct Today {
  static constexpr const char* kName = kMethod == Method::kRadixForest    ? "forest, today"
                                       : kMethod == Method::kRadixForest4 ? "forest-4, today"
                                                                          : "cutpoint, today";
  CUMULUS_HOST_DEVICE static Located locate(const Row& row, std::uint32_t x) {
#if !defined(__CUDA_ARCH__)
    count(row, x);
#endif
    return sampling::detail::locate(kMethod, row.cells, x);
  }
#if !defined(__CUDA_ARCH__)
  static void count(const Row& row, std::uint32_t x) {
    const Distribution& cells = row.cells;
    loads += 2;  // the cell's bounds
    const std::uint32_t g = guide_cell(cells.guide_size, x);
    if (kMethod == Method::kCutpointBinary) {
      loads += 2;
      const CellRange range = cutpoint_range(cells, x);
      std::uint32_t first = range.first;
      std::uint32_t last = range.last;
      while (first < last) {
        ++loads;
        const std::uint32_t middle = first + (last - first + 1) / 2;
        if (cells.lower[middle] <= search_key(x)) {
          first = middle;
        } else {
          last = middle - 1;
        }
      }
      return;
    }
    loads += 1;
    const auto entry = element<std::uint32_t>(cells.guide, g);
    if (entry >> kRootNumberBits == 1) ++loads;
    if (entry >> kRootNumberBits != 2) return;
    std::uint32_t node = entry & kRootNumber;
    for (bool leaf = false; !leaf;) {
      loads += 2;  // node and bound; of four ary ones both halves
      std::uint32_t child = 0;
      if (kMethod == Method::kRadixForest) {
        const NodePair pair = load_pair(cells, node);
        child = x < cells.lower[node] ? pair.left : pair.right;
        leaf = (child & leaf_bit(cells.count)) != 0;
        child &= leaf_bit(cells.count) - 1;
      } else {
        const auto four = element<Node4>(cells.nodes, node);
        const bool upper = x >= four.bound[1];
        child = four.child[(upper ? 2 : 0) + (x >= four.bound[upper ? 2 : 0] ? 1 : 0)];
        leaf = (child & kLeaf4) != 0;
        child &= ~kLeaf4;
      }
      node = child;
    }
  }
#endif
};

// --- today's tables, bounds four at a time -----------------------------------------------------------------

CUMULUS_HOST_DEVICE inline std::uint32_t counted_descend(const Distribution& cells, std::uint32_t root,
                                                         std::uint32_t x) {
  const std::uint32_t leaf = leaf_bit(cells.count);
  std::uint32_t node = root;
  for (;;) {
    COUNT_LOAD();
    COUNT_LOAD();
    const NodePair children = load_pair(cells, node);
    const std::uint32_t child = x < cells.lower[node] ? children.left : children.right;
    node = child & (leaf - 1);
    if ((child & leaf) != 0) return node;
  }
}

struct ForestByQuads {
  static constexpr const char* kName = "forest, bounds by quads";
  CUMULUS_HOST_DEVICE static Located locate(const Row& row, std::uint32_t x) {
    const Distribution& cells = row.cells;
    const auto entry = load<std::uint32_t>(cells.guide + 4 * std::size_t{guide_cell(cells.guide_size, x)});
    const std::uint32_t number = entry & kRootNumber;
    if (entry >> kRootNumberBits == 1) {
      const Triple t = triple_at(cells, number - 1);
      return located(x < t.bound[1] ? cell_between(number - 1, t.bound[0], t.bound[1])
                                    : cell_between(number, t.bound[1], t.bound[2]),
                     x);
    }
    return located(pair_at(cells, entry >> kRootNumberBits == 0 ? number : counted_descend(cells, number, x)), x);
  }
};

/// The cell of x in [first, last], the bounds of up to three from one triple.
CUMULUS_HOST_DEVICE inline Cell cell_in(const Distribution& cells, std::uint32_t first, std::uint32_t last,
                                        std::uint32_t x) {
  const std::uint32_t key = search_key(x);
  while (last - first > 2) {
    const std::uint32_t middle = first + (last - first + 1) / 2;
    if (load<std::uint32_t>(cells.lower + middle) <= key) {
      first = middle;
    } else {
      last = middle - 1;
    }
  }
  const Triple t = triple_at(cells, first);
  if (first == last || t.bound[1] > key) return cell_between(first, t.bound[0], t.bound[1]);
  if (first + 1 == last || t.bound[2] > key) return cell_between(first + 1, t.bound[1], t.bound[2]);
  return pair_at(cells, last);
}

struct CutpointByQuads {
  static constexpr const char* kName = "cutpoint, bounds by quads";
  CUMULUS_HOST_DEVICE static Located locate(const Row& row, std::uint32_t x) {
    const Distribution& cells = row.cells;
    const std::uint32_t g = guide_cell(cells.guide_size, x);
    const bool narrow = cells.count <= kNarrowCells;
    const unsigned char* at = cells.guide + std::size_t{g} * (narrow ? 2 : 4);
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    const Quad quad = load_quad(reinterpret_cast<const void*>(address & ~std::uintptr_t{15}));
    std::uint32_t first = 0;
    std::uint32_t last = cells.count - 1;
    if (narrow) {
      const unsigned o = static_cast<unsigned>(address / 2 % 8);
      first = pick(quad, o / 2) >> 16 * (o % 2) & 0xFFFFu;
      if (g + 1 < cells.guide_size)
        last = o < 7 ? pick(quad, (o + 1) / 2) >> 16 * ((o + 1) % 2) & 0xFFFFu : load<std::uint16_t>(at + 2);
    } else {
      const unsigned o = static_cast<unsigned>(address / 4 % 4);
      first = pick(quad, o);
      if (g + 1 < cells.guide_size) last = o < 3 ? pick(quad, o + 1) : load<std::uint32_t>(at + 4);
    }
    return located(cell_in(cells, first, last, x), x);
  }
};

// --- entries of 16 bytes -----------------------------------------------------------------------------------

struct ForestWide {
  static constexpr const char* kName = "forest, 16-byte entries";
  CUMULUS_HOST_DEVICE static Located locate(const Row& row, std::uint32_t x) {
    const Distribution& cells = row.cells;
    const Quad entry = load_quad(row.guide16 + guide_cell(cells.guide_size, x));
    const std::uint32_t number = entry.word[0] & kRootNumber;
    const std::uint32_t kind = entry.word[0] >> kRootNumberBits;
    if (kind < 2) {  // kOneCell has its bounds twice, so that no branch is needed
      const bool before = x < entry.word[2];
      return located(cell_between(before ? number - kind : number, before ? entry.word[1] : entry.word[2],
                                  before ? entry.word[2] : entry.word[3]),
                     x);
    }
    const std::uint32_t child = x < entry.word[1] ? entry.word[2] : entry.word[3];
    const std::uint32_t at = child & ~kLeaf4;
    return located(pair_at(cells, (child & kLeaf4) != 0 ? at : counted_descend(cells, at, x)), x);
  }
  CUMULUS_HOST_DEVICE static Quad entry(const Distribution& cells, std::uint32_t g) {
    const auto old = element<std::uint32_t>(cells.guide, g);
    const std::uint32_t number = old & kRootNumber;
    const auto bound = [&](std::uint32_t i) { return i < cells.count ? cells.lower[i] : kEmptyTail; };
    if (old >> kRootNumberBits == 0) return {{old, bound(number), bound(number), bound(number + 1)}};
    if (old >> kRootNumberBits == 1) return {{old, bound(number - 1), bound(number), bound(number + 1)}};
    const NodePair pair = load_pair(cells, number);
    const std::uint32_t leaf = leaf_bit(cells.count);
    const auto wide = [leaf](std::uint32_t child) {
      return (child & leaf) != 0 ? kLeaf4 | (child & (leaf - 1)) : child;
    };
    return {{old, bound(number), wide(pair.left), wide(pair.right)}};
  }
};

/// The first cell, and in 8 bits how many follow at most (255: bisect in all), and three bounds.
struct CutpointWide {
  static constexpr const char* kName = "cutpoint, 16-byte entries";
  static constexpr std::uint32_t kMore = 255;
  CUMULUS_HOST_DEVICE static Located locate(const Row& row, std::uint32_t x) {
    const Distribution& cells = row.cells;
    const Quad entry = load_quad(row.guide16 + guide_cell(cells.guide_size, x));
    const std::uint32_t first = entry.word[0] & 0xFFFFFFu;
    const std::uint32_t key = search_key(x);
    if (key < entry.word[3] || first + 2 >= cells.count) {
      const bool second = key >= entry.word[2];
      return located(cell_between(second ? first + 1 : first, entry.word[second ? 2 : 1], entry.word[second ? 3 : 2]),
                     x);
    }
    const std::uint32_t more = entry.word[0] >> 24;
    return located(cell_in(cells, first + 2, more == kMore ? cells.count - 1 : first + more, x), x);
  }
  CUMULUS_HOST_DEVICE static Quad entry(const Distribution& cells, std::uint32_t g) {
    const auto bound = [&](std::uint32_t i) { return i < cells.count ? cells.lower[i] : kEmptyTail; };
    const std::uint32_t first = cell_number(cells, g);
    const std::uint32_t last = g + 1 < cells.guide_size ? cell_number(cells, g + 1) : cells.count - 1;
    const std::uint32_t more = last - first < 2 ? 2 : last - first < kMore ? last - first : kMore;
    return {{first | more << 24, bound(first), bound(first + 1), bound(first + 2)}};
  }
};

// --- nodes of four in 16 bytes -----------------------------------------------------------------------------

/// Three bounds relative to the guide cell's smallest x, then four children, with so many bits each.
struct NodeBits {
  unsigned key;
  unsigned child;
  CUMULUS_HOST_DEVICE static NodeBits of(std::uint32_t count, std::uint32_t guide_size) {
    NodeBits bits{1, 2};
    while ((std::uint64_t{1} << bits.key) * guide_size < kWholeMass) ++bits.key;
    while (std::uint64_t{1} << (bits.child - 1) < count) ++bits.child;
    return bits;
  }
  CUMULUS_HOST_DEVICE bool fit() const { return 3 * key + 4 * child <= 128; }
};
CUMULUS_HOST_DEVICE inline std::uint32_t smallest_x(std::uint32_t g, std::uint32_t guide_size) {
  return static_cast<std::uint32_t>(((std::uint64_t{g} << 32) + guide_size - 1) / guide_size);
}
CUMULUS_HOST_DEVICE inline std::uint32_t bits_at(std::uint64_t low, std::uint64_t high, unsigned offset,
                                                 unsigned length) {
  const std::uint64_t word = offset >= 64   ? high >> (offset - 64)
                             : offset == 0 ? low
                                           : low >> offset | high << (64 - offset);
  return static_cast<std::uint32_t>(word) & ((1u << length) - 1);
}
CUMULUS_HOST_DEVICE inline std::uint32_t descend_compact(const Row& row, std::uint32_t root, std::uint32_t x) {
  const Distribution& cells = row.cells;
  const unsigned key = row.x_bits & 0xFF;
  const unsigned child_bits = row.x_bits >> 8;
  const std::uint32_t place = x - smallest_x(guide_cell(cells.guide_size, x), cells.guide_size);
  std::uint32_t node = root;
  for (;;) {
    const Quad quad = load_quad(row.nodes16 + node);
    const std::uint64_t low = quad.word[0] | std::uint64_t{quad.word[1]} << 32;
    const std::uint64_t high = quad.word[2] | std::uint64_t{quad.word[3]} << 32;
    const bool upper = place >= bits_at(low, high, key, key);
    const bool odd = place >= bits_at(low, high, upper ? 2 * key : 0, key);
    const std::uint32_t child =
        bits_at(low, high, 3 * key + ((upper ? 2 : 0) + (odd ? 1 : 0)) * child_bits, child_bits);
    const std::uint32_t leaf = 1u << (child_bits - 1);
    node = child & (leaf - 1);
    if ((child & leaf) != 0) return node;
  }
}
CUMULUS_HOST_DEVICE inline Quad compact_node(const Distribution& cells, std::uint32_t j) {
  const auto node = element<Node4>(cells.nodes, j);
  const NodeBits bits = NodeBits::of(cells.count, cells.guide_size);
  const std::uint32_t begin =
      smallest_x(guide_cell(cells.guide_size, node.bound[1]), cells.guide_size);
  std::uint64_t words[2] = {0, 0};
  unsigned offset = 0;
  const auto put = [&](std::uint64_t value, unsigned length) {
    if (offset < 64) words[0] |= value << offset;
    if (offset < 64 && offset + length > 64) words[1] |= value >> (64 - offset);
    if (offset >= 64) words[1] |= value << (offset - 64);
    offset += length;
  };
  const bool is_node = node.child[0] != 0 || node.child[3] != 0;
  if (!is_node) return {{0, 0, 0, 0}};
  for (const std::uint32_t bound : node.bound) put(bound - begin, bits.key);
  for (const std::uint32_t child : node.child)
    put((child & kLeaf4) != 0 ? (child & ~kLeaf4) | 1u << (bits.child - 1) : child, bits.child);
  return {{static_cast<std::uint32_t>(words[0]), static_cast<std::uint32_t>(words[0] >> 32),
           static_cast<std::uint32_t>(words[1]), static_cast<std::uint32_t>(words[1] >> 32)}};
}

struct FourCompact {
  static constexpr const char* kName = "forest-4, 16-byte nodes, bounds by quads";
  CUMULUS_HOST_DEVICE static Located locate(const Row& row, std::uint32_t x) {
    const Distribution& cells = row.cells;
    const auto entry = load<std::uint32_t>(cells.guide + 4 * std::size_t{guide_cell(cells.guide_size, x)});
    const std::uint32_t number = entry & kRootNumber;
    if (entry >> kRootNumberBits == 1) {
      const Triple t = triple_at(cells, number - 1);
      return located(x < t.bound[1] ? cell_between(number - 1, t.bound[0], t.bound[1])
                                    : cell_between(number, t.bound[1], t.bound[2]),
                     x);
    }
    return located(pair_at(cells, entry >> kRootNumberBits == 0 ? number : descend_compact(row, number, x)), x);
  }
};

/// Of the 16-byte entries those with the root of a larger tree name it alone.
struct FourCompactWide {
  static constexpr const char* kName = "forest-4, 16-byte nodes and entries";
  CUMULUS_HOST_DEVICE static Located locate(const Row& row, std::uint32_t x) {
    const Distribution& cells = row.cells;
    const Quad entry = load_quad(row.guide16 + guide_cell(cells.guide_size, x));
    const std::uint32_t number = entry.word[0] & kRootNumber;
    const std::uint32_t kind = entry.word[0] >> kRootNumberBits;
    if (kind < 2) {
      const bool before = x < entry.word[2];
      return located(cell_between(before ? number - kind : number, before ? entry.word[1] : entry.word[2],
                                  before ? entry.word[2] : entry.word[3]),
                     x);
    }
    return located(pair_at(cells, descend_compact(row, number, x)), x);
  }
  CUMULUS_HOST_DEVICE static Quad entry(const Distribution& cells, std::uint32_t g) {
    const auto old = element<std::uint32_t>(cells.guide, g);
    const std::uint32_t number = old & kRootNumber;
    const auto bound = [&](std::uint32_t i) { return i < cells.count ? cells.lower[i] : kEmptyTail; };
    if (old >> kRootNumberBits == 2) return {{old, 0, 0, 0}};
    return {{old, bound(number - (old >> kRootNumberBits)), bound(number), bound(number + 1)}};
  }
};

}  // namespace cumulus::lookups
