#include "bench/baselines/sampling_table_plain.h"

#include <algorithm>
#include <cmath>

namespace cumulus::bench {

PlainTable::PlainTable(std::size_t height, std::size_t width, PlainSearch search)
    : height_(height),
      width_(width),
      search_(search),
      marginal_(height + 1),
      rows_(search == PlainSearch::kAlias ? 0 : height * (width + 1)),
      guide_(search == PlainSearch::kGuide || search == PlainSearch::kForest ? height * width : 0),
      marginal_guide_(guide_.empty() ? 0 : height),
      nodes_(search == PlainSearch::kForest ? height * width : 0),
      other_end_(search == PlainSearch::kForest ? width : 0),
      columns_(search == PlainSearch::kAlias ? height * width : 0),
      marginal_columns_(columns_.empty() ? 0 : height),
      left_(columns_.empty() ? 0 : std::max(height, width)) {
  small_.reserve(left_.size());
  large_.reserve(left_.size());
}

std::size_t PlainTable::bytes() const {
  return (marginal_.size() + rows_.size()) * sizeof(double) +
         (guide_.size() + marginal_guide_.size()) * sizeof(std::int32_t) + nodes_.size() * sizeof(Children) +
         (columns_.size() + marginal_columns_.size()) * sizeof(Column);
}

void PlainTable::build(const std::vector<float>& weights) {
  constexpr double kPi = 3.14159265358979323846;
  for (std::size_t y = 0; y < height_; ++y) {
    const float* row = &weights[y * width_];
    double sum = 0;
    if (search_ == PlainSearch::kAlias) {
      for (std::size_t x = 0; x < width_; ++x) sum += static_cast<double>(row[x]);
      build_alias(row, sum, width_, &columns_[y * width_]);
    } else {
      double* cdf = &rows_[y * (width_ + 1)];
      for (std::size_t x = 0; x < width_; ++x) cdf[x + 1] = cdf[x] + static_cast<double>(row[x]);
      sum = cdf[width_];
      for (std::size_t x = 1; x <= width_; ++x) cdf[x] = sum > 0 ? cdf[x] / sum : 1.0;
      if (!guide_.empty()) build_guide(cdf, width_, &guide_[y * width_]);
      if (search_ == PlainSearch::kForest) build_forest(cdf, &guide_[y * width_], &nodes_[y * width_]);
    }
    marginal_[y + 1] =
        marginal_[y] + sum * std::sin(kPi * (static_cast<double>(y) + 0.5) / static_cast<double>(height_));
  }
  if (search_ == PlainSearch::kAlias) {
    std::vector<double> masses(height_);
    for (std::size_t y = 0; y < height_; ++y) masses[y] = marginal_[y + 1] - marginal_[y];
    build_alias(masses.data(), marginal_[height_], height_, marginal_columns_.data());
  }
  for (std::size_t y = 1; y <= height_; ++y) marginal_[y] /= marginal_[height_];
  if (!guide_.empty()) build_guide(marginal_.data(), height_, marginal_guide_.data());
}

template <class Weight>
void PlainTable::build_alias(const Weight* weights, double sum, std::size_t count, Column* columns) {
  small_.clear();
  large_.clear();
  const double scale = sum > 0 ? static_cast<double>(count) / sum : 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    left_[i] = static_cast<double>(weights[i]) * scale;
    (left_[i] < 1.0 ? small_ : large_).push_back(static_cast<std::int32_t>(i));
  }
  while (!small_.empty() && !large_.empty()) {
    const auto below = static_cast<std::size_t>(small_.back());
    const auto above = static_cast<std::size_t>(large_.back());
    small_.pop_back();
    columns[below] = {static_cast<float>(left_[below]), static_cast<std::int32_t>(above)};
    left_[above] = left_[above] + left_[below] - 1.0;
    if (left_[above] < 1.0) {
      large_.pop_back();
      small_.push_back(static_cast<std::int32_t>(above));
    }
  }
  for (const std::vector<std::int32_t>* rest : {&small_, &large_}) {
    for (const std::int32_t i : *rest) columns[static_cast<std::size_t>(i)] = {1.0F, i};
  }
}

void PlainTable::build_guide(const double* cdf, std::size_t count, std::int32_t* guide) const {
  std::size_t cell = 0;
  for (std::size_t g = 0; g < count; ++g) {
    const double edge = static_cast<double>(g) / static_cast<double>(count);
    while (cell + 1 < count && cdf[cell + 1] <= edge) ++cell;
    guide[g] = static_cast<std::int32_t>(cell);
  }
}

/// Algorithm 1, its ranges merged one after another; keys are bounds in fixed point. A guide entry becomes
/// ~cell where one cell covers it, else the node between the cell that reaches in and those that begin in it.
void PlainTable::build_forest(const double* cdf, std::int32_t* guide, Children* nodes) {
  const auto count = static_cast<std::int32_t>(width_);
  const auto key = [cdf](std::int32_t i) { return static_cast<std::uint64_t>(std::ldexp(cdf[i], 60)); };
  const auto partition = [&](std::int32_t i) {
    return std::min(static_cast<std::int32_t>(cdf[i] * static_cast<double>(count)), count - 1);
  };
  constexpr std::uint64_t kFar = ~std::uint64_t{0};
  std::fill(other_end_.begin(), other_end_.end(), -1);
  for (std::int32_t i = 0; i < count; ++i) {
    std::int32_t node = ~i;
    std::int32_t range[2] = {i, i};
    const std::int32_t own = partition(i);
    for (;;) {
      const bool first = range[0] == 0 || partition(range[0] - 1) < own;
      const bool last = range[1] + 1 == count || partition(range[1] + 1) > own;
      const std::uint64_t below = first ? kFar : key(range[0]) ^ key(range[0] - 1);
      const std::uint64_t above = last ? kFar : key(range[1]) ^ key(range[1] + 1);
      if (first && last) {  // the root, to the right of what reaches in
        nodes[range[0]].of[0] = ~std::max(range[0] - 1, 0);
        nodes[range[0]].of[1] = node;
        break;
      }
      const int child = below > above ? 0 : 1;
      const std::int32_t parent = child == 0 ? range[1] + 1 : range[0];
      nodes[parent].of[child] = node;
      std::int32_t& other = other_end_[static_cast<std::size_t>(parent)];
      if (other < 0) {
        other = range[child];
        break;
      }
      range[1 - child] = other;
      node = parent;
    }
  }
  for (std::int32_t g = 0, cell = 0; g < count; ++g) {
    const std::int32_t reaching = guide[g];
    while (cell < count && partition(cell) < g) ++cell;
    guide[g] = cell < count && partition(cell) == g ? cell : ~reaching;
  }
}

std::size_t PlainTable::find(std::size_t y, double x) const {
  const double* cdf = &rows_[y * (width_ + 1)];
  if (guide_.empty()) {
    return static_cast<std::size_t>(std::upper_bound(cdf + 1, cdf + width_, x) - cdf) - 1;
  }
  std::int32_t at = guide_[y * width_ + static_cast<std::size_t>(x * static_cast<double>(width_))];
  if (search_ == PlainSearch::kGuide) {
    auto cell = static_cast<std::size_t>(at);
    while (cell + 1 < width_ && cdf[cell + 1] <= x) ++cell;
    return cell;
  }
  while (at >= 0) at = nodes_[y * width_ + static_cast<std::size_t>(at)].of[x < cdf[at] ? 0 : 1];
  return static_cast<std::size_t>(~at);
}

std::string PlainTable::verify_columns(const float* weights, std::size_t y) const {
  std::vector<double> shares(width_);
  double sum = 0;
  for (std::size_t x = 0; x < width_; ++x) {
    const Column& column = columns_[y * width_ + x];
    shares[x] += static_cast<double>(column.split);
    shares[static_cast<std::size_t>(column.alias)] += 1.0 - static_cast<double>(column.split);
    sum += static_cast<double>(weights[x]);
  }
  for (std::size_t x = 0; x < width_; ++x) {
    const double share = static_cast<double>(weights[x]) / sum * static_cast<double>(width_);
    if (std::abs(shares[x] - share) > 1e-5 * (1.0 + share)) return "cell " + std::to_string(x);
  }
  return "";
}

std::string PlainTable::verify_row(const float* weights, std::size_t y) const {
  constexpr std::size_t kPoints = 1000;
  const double* cdf = &rows_[y * (width_ + 1)];
  long double sum = 0;
  for (std::size_t x = 0; x < width_; ++x) sum += static_cast<long double>(weights[x]);
  long double before = 0;
  for (std::size_t x = 0; x < width_; ++x) {
    if (std::abs(before / sum - static_cast<long double>(cdf[x])) > 1e-11L)
      return "cell " + std::to_string(x);
    before += static_cast<long double>(weights[x]);
  }
  for (std::size_t i = 0; i < kPoints; ++i) {
    const double x = (static_cast<double>(i) + 0.5) / kPoints;
    const auto expected = static_cast<std::size_t>(std::upper_bound(cdf, cdf + width_, x) - cdf) - 1;
    if (find(y, x) != expected) return "point " + std::to_string(x);
  }
  return "";
}

std::string PlainTable::verify(const std::vector<float>& weights) const {
  for (std::size_t k = 0; k < 16; ++k) {
    const std::size_t y = k * (height_ - 1) / 15;
    const float* row = &weights[y * width_];
    const std::string wrong = search_ == PlainSearch::kAlias ? verify_columns(row, y) : verify_row(row, y);
    if (!wrong.empty()) return "row " + std::to_string(y) + ", " + wrong;
  }
  return "";
}

}  // namespace cumulus::bench
