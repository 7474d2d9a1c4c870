#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cumulus::bench {

/// A sampling table as one writes it down, for comparison: one thread, doubles, a row after the other, its
/// cumulative sums, a guide table of as many entries as columns, and on request Binder and Keller's forest by
/// their Algorithm 1.
class PlainTable {
 public:
  PlainTable(std::size_t height, std::size_t width, bool forest);

  /// Of a lat-long map of `height` * `width` weights.
  void build(const std::vector<float>& weights);

  std::size_t bytes() const;
  /// Empty where the cumulative sums of some rows end and grow as those of the weights, and guide and forest
  /// lead to the cell of each of some points.
  std::string verify(const std::vector<float>& weights) const;

 private:
  struct Children {
    std::int32_t of[2] = {0, 0};  // a node, or ~cell
  };

  void build_guide(const double* cdf, std::size_t count, std::int32_t* guide) const;
  void build_forest(const double* cdf, std::int32_t* guide, Children* nodes);
  std::size_t find(std::size_t y, double x) const;

  std::size_t height_;
  std::size_t width_;
  bool forest_;
  std::vector<double> marginal_;     // [height + 1]
  std::vector<double> rows_;         // [height, width + 1]
  std::vector<std::int32_t> guide_;  // [height, width]: the cell of an entry's first x; of a forest its root
  std::vector<std::int32_t> marginal_guide_;
  std::vector<Children> nodes_;          // [height, width]
  std::vector<std::int32_t> other_end_;  // of a node with one child so far: the far end of its range
};

}  // namespace cumulus::bench
