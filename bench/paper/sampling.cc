// Reproduces Table 1 and Figures 1, 7, 8, 9 and 12 of N. Binder and A. Keller, "Massively Parallel
// Construction of Radix Tree Forests for the Efficient Sampling of Discrete or Piecewise Constant Probability
// Distributions", 2020: prints the table beside the paper's, and writes the figures as SVG.
#include "cumulus/sampling.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "bench/paper/distributions.h"
#include "bench/paper/figures.h"
#include "kernels/sampling_table/sampling_table.h"

namespace cumulus::bench {
namespace {

/// Where cells begin in [0, 1], in the precision of double.
std::vector<double> bounds_of(const std::vector<double>& weights) {
  std::vector<double> bounds = {0.0};
  for (const double weight : weights) bounds.push_back(bounds.back() + weight);
  for (double& bound : bounds) bound /= bounds.back();
  bounds.back() = 1.0;
  return bounds;
}

/// How often a search takes how many loads.
class Histogram {
 public:
  void add(double probability, int loads) {
    if (probability > 0) of_[loads] += probability;
  }
  Loads loads() const {
    Loads result;
    double below = 0;
    for (const auto& [loads, probability] : of_) {
      const double up_to = below + probability;
      result.most = loads;
      result.average += probability * loads;
      result.average32 += loads * (std::pow(std::min(up_to, 1.0), 32) - std::pow(below, 32));
      below = up_to;
    }
    return result;
  }

 private:
  std::map<int, double> of_;
};

/// Calls visit(first, last, edge, end) with the cells that overlap each of 100 guide cells.
template <class Visit>
void for_guide_cells(const std::vector<double>& bounds, const Visit& visit) {
  for (std::uint32_t g = 0; g < kCells; ++g) {
    const double edge = static_cast<double>(g) / kCells;
    const double end = static_cast<double>(g + 1) / kCells;
    std::size_t first = 0;
    while (bounds[first + 1] <= edge) ++first;
    std::size_t last = first;
    // The last guide cell has all cells behind, also those whose bounds round to 1.
    while (last + 1 < kCells && (bounds[last + 1] < end || g + 1 == kCells)) ++last;
    visit(first, last, edge, end);
  }
}

/// The cutpoint method as the paper counts it: one load for the guide entry, one for each bound compared.
Loads paper_binary_search(const std::vector<double>& bounds) {
  Histogram histogram;
  for_guide_cells(bounds, [&](std::size_t first, std::size_t last, double edge, double end) {
    for (std::size_t cell = first; cell <= last; ++cell) {
      int loads = 1;
      std::size_t low = first;
      std::size_t high = last;
      while (low < high) {
        const std::size_t middle = (low + high) / 2;
        ++loads;
        if (cell <= middle) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      histogram.add(std::min(bounds[cell + 1], end) - std::max(bounds[cell], edge), loads);
    }
  });
  return histogram.loads();
}

/// The numbers whose bits a radix tree halves.
enum class Keys {
  kFixedPoint,  // in units of 2^-60
  kFloat,       // a float's representation, as the paper has it
};

/// Algorithm 1: a radix tree over the bounds that lie in the guide cell, below a root that separates the cell
/// from the left, "since it in practice almost always overlaps". Guide cells end where they end.
class PaperForest {
 public:
  PaperForest(const std::vector<double>& bounds, bool always_a_root, Keys keys = Keys::kFixedPoint)
      : bounds_(bounds), always_(always_a_root), keys_(keys) {}

  Loads loads() {
    for_guide_cells(bounds_, [&](std::size_t first, std::size_t last, double edge, double end) {
      edge_ = edge;
      end_ = end;
      if (first == last) {
        leaf(first, 1);
      } else if (always_ || bounds_[first] < edge) {
        leaf(first, 2);
        descend(first + 1, last, 2);
      } else {
        descend(first, last, 1);
      }
    });
    return histogram_.loads();
  }

 private:
  std::uint64_t key(double bound) const {
    if (keys_ == Keys::kFixedPoint) return static_cast<std::uint64_t>(std::ldexp(bound, 60));
    return std::bit_cast<std::uint32_t>(static_cast<float>(bound));
  }
  void leaf(std::size_t cell, int loads) {
    histogram_.add(std::min(bounds_[cell + 1], end_) - std::max(bounds_[cell], edge_), loads);
  }
  void descend(std::size_t first, std::size_t last, int loads) {
    if (key(bounds_[first]) == key(bounds_[last])) {
      for (std::size_t cell = first; cell <= last; ++cell) leaf(cell, loads);
      return;
    }
    std::uint64_t bit = std::uint64_t{1} << 60;
    while ((key(bounds_[first]) & bit) == (key(bounds_[last]) & bit)) bit >>= 1;
    std::size_t split = first;
    while ((key(bounds_[split]) & bit) == 0) ++split;
    descend(first, split - 1, loads + 1);
    descend(split, last, loads + 1);
  }

  const std::vector<double>& bounds_;
  bool always_;
  Keys keys_;
  Histogram histogram_;
  double edge_ = 0;
  double end_ = 0;
};

/// A table of one row, built by the CPU backend.
struct RowTable {
  std::vector<std::byte> bytes;
  sampling::TableView view;
};

RowTable build_row(const std::vector<float>& weights, sampling::Method method) {
  CpuExecutor executor;
  const SamplingTableParams params{.height = 1,
                                   .width = static_cast<std::int64_t>(weights.size()),
                                   .projection = sampling::Projection::kPlane,
                                   .method = method};
  RowTable table{std::vector<std::byte>(sampling_table_bytes(params)), {sampling_table_header(params)}};
  executor.reserve_scratch(sampling_table_scratch_bytes<Space::kHost>(params));
  SamplingTableReport report;
  build_sampling_table(executor, HostImage<const float>(weights.data(), 1, params.width), params,
                       {table.bytes.data(), table.bytes.size()}, &report);
  table.view.data = reinterpret_cast<const unsigned char*>(table.bytes.data());
  return table;
}

/// Loads of a search of Cumulus's radix forest: the guide entry, and each bound compared, or each piece of
/// `bounds_a_load` bounds of which one is, where they lie beside each other.
int forest_loads(const sampling::detail::Distribution& cells, std::uint32_t x, std::uint32_t bounds_a_load) {
  using sampling::detail::RootKind;
  constexpr bool kNarrow = true;  // 100 cells
  const auto entry = sampling::detail::element<std::uint32_t>(
      cells.guide, sampling::detail::guide_cell(cells.guide_size, x));
  const auto kind = static_cast<RootKind>(entry >> sampling::detail::kRootNumberBits);
  if (kind != RootKind::kNode) {
    const sampling::detail::CellRange range = sampling::detail::cells_of_entry(entry, cells.count);
    if (range.first == range.last) return 1;
    const std::uint32_t found = sampling::detail::walk_to_cell(cells.lower, range.first, range.last, x);
    const std::uint32_t last_compared = std::min(found + 1, range.last);
    return static_cast<int>(2 + last_compared / bounds_a_load - (range.first + 1) / bounds_a_load);
  }
  const std::uint32_t leaf = sampling::detail::leaf_bit(cells.count);
  std::uint32_t node = entry & sampling::detail::kRootNumber;
  int loads = 1;
  while ((node & leaf) == 0) {
    const auto children = sampling::detail::load_pair<kNarrow>(cells, node);
    node = x < cells.lower[node] ? children.left : children.right;
    ++loads;
  }
  return loads;
}

Loads cumulus_forest(const std::vector<double>& exact, std::uint32_t bounds_a_load) {
  std::vector<float> weights;
  const double largest = *std::max_element(exact.begin(), exact.end());
  for (const double weight : exact) weights.push_back(static_cast<float>(weight / largest));
  const RowTable table = build_row(weights, sampling::Method::kRadixForest);
  const sampling::detail::Distribution cells = sampling::detail::row(table.view, 0);
  Histogram histogram;
  for (std::uint32_t i = 0; i < cells.count; ++i) {
    const sampling::detail::Cell cell = sampling::detail::cell_at(cells.lower, cells.count, i);
    const std::uint64_t end = cell.lower + cell.mass;
    for (std::uint64_t x = cell.lower; x < end;) {
      const std::uint64_t g = x * cells.guide_size >> 32;
      const std::uint64_t next = std::min(end, (((g + 1) << 32) + cells.guide_size - 1) / cells.guide_size);
      histogram.add(std::ldexp(static_cast<double>(next - x), -32),
                    forest_loads(cells, static_cast<std::uint32_t>(x), bounds_a_load));
      x = next;
    }
  }
  return histogram.loads();
}

void print_row(const char* name, const Loads& loads) {
  std::printf("  %-58s %4d %8.2f %8.2f\n", name, loads.most, loads.average, loads.average32);
}

void print_reading(const Distribution& distribution, const Reading& reading) {
  const std::vector<double> weights = weights_of(distribution, reading);
  const std::vector<double> bounds = bounds_of(weights);
  std::printf(" %s\n", reading.name);
  print_row("cutpoint + binary search, here", paper_binary_search(bounds));
  print_row("Algorithm 1, always a root for the cell from the left", PaperForest(bounds, true).loads());
  print_row("Algorithm 1, such a root where a cell reaches in", PaperForest(bounds, false).loads());
  print_row("the same with floats for keys", PaperForest(bounds, false, Keys::kFloat).loads());
  print_row("Cumulus: radix-forest", cumulus_forest(weights, 1));
  print_row("Cumulus: radix-forest, up to four bounds a load", cumulus_forest(weights, 4));
}

void print_table() {
  std::printf("Table 1 (100 cells, 100 guide cells; a load: the guide entry, and each bound compared)\n");
  std::printf("  %-58s %4s %8s %8s\n", "", "most", "average", "of 32");
  for (const Distribution& distribution : distributions()) {
    std::printf("%s\n", distribution.name);
    print_row("cutpoint + binary search, paper", distribution.paper_binary);
    print_row("cutpoint + radix forest, paper", distribution.paper_forest);
    for (const Reading& reading : kReadings) print_reading(distribution, reading);
  }
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app(
      "Table 1 and Figures 1, 7, 8, 9 and 12 of Binder and Keller's radix tree forests, and a picture of "
      "bilinear "
      "interpolation");
  std::string folder;
  int log2_samples = 22;
  app.add_option("--figures", folder,
                 "Folder for sampling_paper_fig1.svg, ..._fig7, ..._fig8, ..._fig9, ..._fig12 and "
                 "sampling_interpolations.svg");
  app.add_option("--samples", log2_samples, "Figure 9 goes up to 2^this")->check(CLI::Range(8, 30));
  CLI11_PARSE(app, argc, argv);
  cumulus::bench::print_table();
  if (!folder.empty()) cumulus::bench::write_figures(folder, log2_samples);
  return 0;
}
