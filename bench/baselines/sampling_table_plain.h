#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cumulus::bench {

/// What a plain table is searched by.
enum class PlainSearch {
  kSums,    ///< Cumulative sums alone.
  kGuide,   ///< And a guide table of as many entries as columns.
  kForest,  ///< And Binder and Keller's forest, by their Algorithm 1.
  kAlias,   ///< No sums, but Walker's alias table, by Vose's two stacks.
};

/// A sampling table as one writes it down, for comparison: one thread, doubles, a row after the other.
class PlainTable {
 public:
  PlainTable(std::size_t height, std::size_t width, PlainSearch search);

  /// Of a lat-long map of `height` * `width` weights.
  void build(const std::vector<float>& weights);

  std::size_t bytes() const;
  /// Empty where the cumulative sums of some rows end and grow as those of the weights, and guide and forest
  /// lead to the cell of each of some points; where the columns of an alias table have the cells' shares.
  std::string verify(const std::vector<float>& weights) const;

 private:
  struct Children {
    std::int32_t of[2] = {0, 0};  // a node, or ~cell
  };

  struct Column {
    float split = 0;  // the share of the column that is its own cell's
    std::int32_t alias = 0;
  };

  void build_sums(const float* weights, double* cdf) const;
  void build_guide(const double* cdf, std::size_t count, std::int32_t* guide) const;
  void build_forest(const double* cdf, std::int32_t* guide, Children* nodes);
  template <class Weight>
  void build_alias(const Weight* weights, double sum, std::size_t count, Column* columns);
  std::size_t find(std::size_t y, double x) const;
  std::string verify_row(const float* weights, std::size_t y) const;
  std::string verify_columns(const float* weights, std::size_t y) const;

  std::size_t height_;
  std::size_t width_;
  PlainSearch search_;
  std::vector<double> marginal_;     // [height + 1]
  std::vector<double> rows_;         // [height, width + 1]
  std::vector<std::int32_t> guide_;  // [height, width]: the cell of an entry's first x; of a forest its root
  std::vector<std::int32_t> marginal_guide_;
  std::vector<Children> nodes_;          // [height, width]
  std::vector<std::int32_t> other_end_;  // of a node with one child so far: the far end of its range
  std::vector<Column> columns_;          // [height, width]
  std::vector<Column> marginal_columns_;
  std::vector<double> left_;         // of a cell: what no column has yet, in columns
  std::vector<std::int32_t> small_;  // cells of less than a column, of more
  std::vector<std::int32_t> large_;
};

}  // namespace cumulus::bench
