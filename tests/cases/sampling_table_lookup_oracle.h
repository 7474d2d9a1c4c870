#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

// What a sampling table keeps of one distribution beside its lower bounds, the slow way, after
// docs/operations/sampling_table_format.md alone: guide cell after guide cell, trees from their roots down,
// the alias table by a serial sweep. It shares no code with the kernels or with cumulus/sampling.h.

namespace cumulus::testing {

__extension__ typedef unsigned __int128 WideInteger;

/// One inverted distribution: where each cell begins in [0, 2^32], and where it ends.
struct OracleCells {
  std::vector<std::uint64_t> begin;
  std::vector<std::uint64_t> end;

  std::size_t count() const { return begin.size(); }
  std::uint64_t mass(std::size_t i) const { return end[i] - begin[i]; }
  bool has_mass() const { return end.back() > 0; }

  /// The cell of x, by walking.
  std::size_t find(std::uint64_t x) const {
    for (std::size_t i = 0; i < count(); ++i) {
      if (begin[i] <= x && x < end[i]) return i;
    }
    return 0;  // there is no mass
  }

  /// As the table stores it: cells behind the last mass are marked.
  std::uint32_t stored(std::size_t i) const {
    return !has_mass() || begin[i] == std::uint64_t{1} << 32 ? 0xFFFFFFFFu
                                                             : static_cast<std::uint32_t>(begin[i]);
  }
};

inline void oracle_put(std::vector<unsigned char>& blob, std::size_t offset, std::size_t bytes,
                       std::uint64_t value) {
  for (std::size_t i = 0; i < bytes; ++i) blob[offset + i] = static_cast<unsigned char>(value >> (8 * i));
}
inline void oracle_append(std::vector<unsigned char>& blob, std::size_t bytes, std::uint64_t value) {
  blob.resize(blob.size() + bytes);
  oracle_put(blob, blob.size() - bytes, bytes, value);
}

/// The alias table of a serial sweep: the heavy cell at hand fills light columns until what is left of it
/// fits its own.
struct OracleAliasTable {
  std::vector<std::uint64_t> split;
  std::vector<std::uint64_t> alias;
};
inline OracleAliasTable oracle_alias_table(const OracleCells& cells) {
  const std::size_t n = cells.count();
  const auto column = [n](std::size_t k) { return ((std::uint64_t{k} << 32) + n - 1) / n; };
  const auto capacity = [&](std::size_t k) { return column(k + 1) - column(k); };
  OracleAliasTable table{std::vector<std::uint64_t>(n), std::vector<std::uint64_t>(n)};
  auto& [split, alias] = table;
  if (!cells.has_mass()) return table;
  for (std::size_t i = 0; i < n; ++i) {
    split[i] = column(i);
    alias[i] = i;
  }
  const auto next_heavy = [&](std::size_t i) {
    while (i < n && cells.mass(i) <= capacity(i)) ++i;
    return i;
  };
  std::size_t heavy = next_heavy(0);
  std::uint64_t left = heavy < n ? cells.mass(heavy) : 0;
  for (std::size_t light = 0; light < n; ++light) {
    if (cells.mass(light) >= capacity(light)) continue;
    split[light] = column(light) + cells.mass(light);
    alias[light] = heavy;
    left -= capacity(light) - cells.mass(light);
    while (left < capacity(heavy)) {  // its column has room now, which the next one fills
      split[heavy] = column(heavy) + left;
      const std::uint64_t room = capacity(heavy) - left;
      alias[heavy] = next_heavy(heavy + 1);
      heavy = alias[heavy];
      left = cells.mass(heavy) - room;
    }
    if (left == capacity(heavy)) {
      heavy = next_heavy(heavy + 1);
      left = heavy < n ? cells.mass(heavy) : 0;
    }
  }
  return table;
}

class OracleLookup {
 public:
  struct Bytes {
    std::vector<unsigned char> lower;
    std::vector<unsigned char> guide;
    std::vector<unsigned char> nodes;

    Bytes& operator+=(const Bytes& other) {
      lower.insert(lower.end(), other.lower.begin(), other.lower.end());
      guide.insert(guide.end(), other.guide.begin(), other.guide.end());
      nodes.insert(nodes.end(), other.nodes.begin(), other.nodes.end());
      return *this;
    }
  };

  /// Methods by the numbers of the .cst layout.
  static bool has_guide(int method) { return method == 1 || method == 5 || method == 6; }

  /// With `early_forest` a radix forest is one of versions 2 and 3.
  OracleLookup(const OracleCells& cells, int method, std::uint32_t guide_size, bool early_forest)
      : cells_(&cells),
        method_(method),
        guide_size_(guide_size),
        early_forest_(early_forest),
        number_bytes_(cells.count() <= 32768 ? 2 : 4) {}

  Bytes bytes() const {
    Bytes all;
    for (std::size_t i = 0; i < cells_->count(); ++i) oracle_append(all.lower, 4, cells_->stored(i));
    if (method_ == 6) {
      append_forest(all);
    } else if (has_guide(method_)) {
      append_guide(all.guide);
    } else if (method_ == 9) {
      append_alias(all.nodes);
    }
    return all;
  }

 private:
  struct Leaf {
    std::size_t cell;
    std::uint64_t key;  // in units of 2^-32 of the guide cell
  };
  struct Node {
    std::uint64_t left = 0;
    std::uint64_t right = 0;
  };
  static constexpr std::uint64_t kLeaf = std::uint64_t{1} << 62;

  /// The cells with mass that overlap guide cell g; none where there is no mass. `from` is no cell behind the
  /// first.
  std::vector<Leaf> leaves(std::uint64_t g, std::size_t& from) const {
    std::vector<Leaf> found;
    if (!cells_->has_mass()) return found;
    const std::uint64_t first =
        ((g << 32) + guide_size_ - 1) / guide_size_;  // the smallest x of the guide cell
    const std::uint64_t next = (((g + 1) << 32) + guide_size_ - 1) / guide_size_;
    while (!(first < cells_->end[from])) ++from;
    for (std::size_t i = from; i < cells_->count(); ++i) {
      if (cells_->mass(i) == 0) continue;
      if (i > from && cells_->begin[i] >= next) break;
      const std::uint64_t key = cells_->begin[i] * guide_size_;
      found.push_back({i, key > g << 32 ? key - (g << 32) : 0});
    }
    return found;
  }

  /// The cell that holds the smallest x of the guide cell behind g, of the last the last cell. `from` holds
  /// that of g.
  std::size_t first_behind(std::uint64_t g, std::size_t from) const {
    if (g + 1 == guide_size_) return cells_->count() - 1;
    const std::uint64_t x = (((g + 1) << 32) + guide_size_ - 1) / guide_size_;
    while (!(x < cells_->end[from])) ++from;
    return from;
  }

  void append_guide(std::vector<unsigned char>& guide) const {
    std::size_t from = 0;
    for (std::uint64_t g = 0; g < guide_size_; ++g) {
      const std::vector<Leaf> overlapping = leaves(g, from);
      oracle_append(guide, number_bytes_, overlapping.empty() ? 0 : overlapping.front().cell);
      if (method_ == 5)
        oracle_append(guide, number_bytes_, overlapping.empty() ? 0 : first_behind(g, from));
    }
  }

  std::size_t first_with_bound_of(std::size_t cell) const {
    while (cell > 0 && cells_->begin[cell - 1] == cells_->begin[cell]) --cell;
    return cell;
  }

  /// The tree over leaves [first, last]; returns a reference to it.
  std::uint64_t grow(const std::vector<Leaf>& all, std::size_t first, std::size_t last,
                     std::vector<Node>& nodes) const {
    if (first == last) return all[first].cell | kLeaf;
    std::uint64_t bit = std::uint64_t{1} << 31;
    while ((all[first].key & bit) == (all[last].key & bit)) bit >>= 1;
    std::size_t split = first;
    while ((all[split].key & bit) == 0) ++split;
    const std::size_t node = first_with_bound_of(all[split].cell);
    nodes[node].left = grow(all, first, split - 1, nodes);
    nodes[node].right = grow(all, split, last, nodes);
    return node;
  }

  void append_forest(Bytes& all) const {
    std::vector<Node> nodes(cells_->count());
    std::vector<bool> used(cells_->count());
    std::size_t from = 0;
    for (std::uint64_t g = 0; g < guide_size_; ++g) {
      const std::vector<Leaf> overlapping = leaves(g, from);
      std::uint64_t entry = overlapping.empty() ? 0 : overlapping.front().cell;
      const std::uint64_t further = overlapping.empty() ? 0 : first_behind(g, from) - entry;
      if (early_forest_ && overlapping.size() == 2 && overlapping[1].cell == entry + 1) {
        entry = overlapping[1].cell | std::uint64_t{1} << 30;
        grow(overlapping, 0, 1, nodes);
        used[first_with_bound_of(overlapping[1].cell)] = true;
      } else if (!early_forest_ && further <= 7) {
        entry |= further << 27;
      } else if (overlapping.size() > 1) {
        for (std::size_t i = 1; i < overlapping.size(); ++i)
          used[first_with_bound_of(overlapping[i].cell)] = true;
        entry = grow(overlapping, 0, overlapping.size() - 1, nodes) | std::uint64_t{2} << 30;
      }
      oracle_append(all.guide, 4, entry);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      oracle_append(all.nodes, number_bytes_, used[i] ? marked(nodes[i].left, 8 * number_bytes_ - 1) : 0);
      oracle_append(all.nodes, number_bytes_, used[i] ? marked(nodes[i].right, 8 * number_bytes_ - 1) : 0);
    }
  }
  static std::uint64_t marked(std::uint64_t child, std::size_t bit) {
    return (child & kLeaf) != 0 ? (child & ~kLeaf) | std::uint64_t{1} << bit : child;
  }

  void append_alias(std::vector<unsigned char>& blob) const {
    const OracleAliasTable table = oracle_alias_table(*cells_);
    for (std::size_t i = 0; i < cells_->count(); ++i) {
      oracle_append(blob, 4, table.split[i]);
      oracle_append(blob, 4, table.alias[i]);
    }
  }

  const OracleCells* cells_;
  int method_;
  std::uint32_t guide_size_;
  bool early_forest_;
  std::size_t number_bytes_;
};

}  // namespace cumulus::testing
