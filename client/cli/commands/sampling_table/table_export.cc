#include "cli/commands/sampling_table/table_export.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "cli/commands/sampling_table/table_file.h"
#include "cli/files/npz.h"
#include "cumulus/sampling.h"

namespace cumulus::cli {
namespace {

using NamedViews = std::vector<std::pair<std::string, ArrayView>>;

/// The cumulative distribution of `count` cells with these stored lower bounds: count + 1 numbers from 0 to
/// 1, exactly; all zero where no cell has mass.
void append_cdf(const std::uint32_t* lower, std::size_t count, std::vector<double>& cdf) {
  const bool empty = lower[0] == sampling::kEmptyTail;
  for (std::size_t i = 0; i < count; ++i) {
    cdf.push_back(empty ? 0.0 : (lower[i] == sampling::kEmptyTail ? 1.0 : 0x1p-32 * lower[i]));
  }
  cdf.push_back(empty ? 0.0 : 1.0);
}

/// A table of one layer, in float64.
struct Distributions {
  std::size_t height = 0;
  std::size_t width = 0;
  std::vector<double> marginal_cdf;     // [height + 1]
  std::vector<double> conditional_cdf;  // [height, width + 1]

  Distributions(const sampling::TableHeader& header, const std::byte* table)
      : height(header.height), width(header.width) {
    append_cdf(bounds(table, header.marginal_cdf_offset), height, marginal_cdf);
    conditional_cdf.reserve(height * (width + 1));
    for (std::size_t y = 0; y < height; ++y)
      append_cdf(bounds(table, header.row_cdf_offset) + y * width, width, conditional_cdf);
  }

  double row_mass(std::size_t y) const { return marginal_cdf[y + 1] - marginal_cdf[y]; }
  double column_mass(std::size_t y, std::size_t x) const {
    const double* cdf = &conditional_cdf[y * (width + 1) + x];
    return cdf[1] - cdf[0];
  }
  /// The density over the unit square, in which the function of pbrt and of NumPy's users is measured.
  double density(std::size_t y, std::size_t x) const {
    return row_mass(y) * column_mass(y, x) * static_cast<double>(width) * static_cast<double>(height);
  }

 private:
  static const std::uint32_t* bounds(const std::byte* table, std::uint64_t offset) {
    return reinterpret_cast<const std::uint32_t*>(table + offset);
  }
};

Shape shape_of(std::initializer_list<std::size_t> extents) {
  Shape shape;
  for (const std::size_t extent : extents) shape.push_back(static_cast<std::int64_t>(extent));
  return shape;
}

/// What a texel of each row takes of the sphere, or of the unit square.
std::vector<double> texel_sizes(const sampling::TableHeader& header) {
  constexpr double kPi = 3.14159265358979323846;
  const double even = 1.0 / (static_cast<double>(header.width) * static_cast<double>(header.height));
  std::vector<double> sizes;
  for (std::uint32_t y = 0; y < header.height; ++y) {
    if (header.projection == sampling::Projection::kLatLong) {
      const double half_step = kPi / (2.0 * header.height);
      sizes.push_back(4.0 * kPi / header.width * std::sin(half_step) * std::sin((2.0 * y + 1.0) * half_step));
    } else {
      sizes.push_back(sampling::on_sphere(header.projection) ? 4.0 * kPi * even : even);
    }
  }
  return sizes;
}

absl::Status write_plain(const std::string& path, const sampling::TableHeader& header,
                         const Distributions& table) {
  const std::size_t height = table.height;
  const std::size_t width = table.width;
  std::vector<double> function;
  function.reserve(height * width);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) function.push_back(table.density(y, x));
  }
  const std::vector<double> texel_size = texel_sizes(header);
  return write_npz(path, {{"function", {function, shape_of({height, width})}},
                          {"marginal_cdf", {table.marginal_cdf, shape_of({height + 1})}},
                          {"conditional_cdf", {table.conditional_cdf, shape_of({height, width + 1})}},
                          {"texel_size", {texel_size, shape_of({height})}}});
}

absl::Status write_pbrt(const std::string& path, const Distributions& table) {
  const std::size_t height = table.height;
  const std::size_t width = table.width;
  std::vector<float> func;
  std::vector<float> cdf;
  std::vector<float> func_int;
  func.reserve(height * width);
  cdf.reserve(height * (width + 1));
  for (std::size_t y = 0; y < height; ++y) {
    const double row_mass = table.row_mass(y) * static_cast<double>(height);
    func_int.push_back(static_cast<float>(row_mass));
    for (std::size_t x = 0; x < width; ++x) func.push_back(static_cast<float>(table.density(y, x)));
    for (std::size_t x = 0; x <= width; ++x) {
      // pbrt's cdf of a function that is zero everywhere is even.
      const double even = static_cast<double>(x) / static_cast<double>(width);
      cdf.push_back(static_cast<float>(row_mass > 0 ? table.conditional_cdf[y * (width + 1) + x] : even));
    }
  }
  const std::vector<float> marginal_cdf(table.marginal_cdf.begin(), table.marginal_cdf.end());
  const std::vector<float> whole = {1.0F};
  const std::vector<float> domain = {0.0F, 0.0F, 1.0F, 1.0F};
  return write_npz(path, {{"domain", {domain, {2, 2}}},
                          {"conditional_func", {func, shape_of({height, width})}},
                          {"conditional_cdf", {cdf, shape_of({height, width + 1})}},
                          {"conditional_func_int", {func_int, shape_of({height})}},
                          {"marginal_func", {func_int, shape_of({height})}},
                          {"marginal_cdf", {marginal_cdf, shape_of({height + 1})}},
                          {"marginal_func_int", {whole, {1}}}});
}

absl::Status write_mitsuba(const std::string& path, const Distributions& table) {
  std::vector<float> pdf;
  pdf.reserve(table.height * table.width);
  for (std::size_t y = 0; y < table.height; ++y) {
    for (std::size_t x = 0; x < table.width; ++x) pdf.push_back(static_cast<float>(table.density(y, x)));
  }
  return write_npz(path, {{"pdf", {pdf, shape_of({table.height, table.width})}}});
}

/// Where the cells of a bilinear table end along one side: from 0 to 1.
std::vector<double> cell_edges(std::uint32_t cells) {
  const sampling::detail::CellAxis axis{cells};
  std::vector<double> edges;
  for (std::uint32_t k = 0; k <= cells; ++k)
    edges.push_back(static_cast<double>(axis.edge(k)) / axis.units());
  return edges;
}

absl::Status write_bilinear(const std::string& path, const sampling::TableHeader& header,
                            const std::byte* table, const Distributions& cells) {
  const auto* first = reinterpret_cast<const float*>(table + header.vertices_offset);
  const std::size_t rows = sampling::vertex_rows(header);
  const std::vector<float> vertices(first, first + rows * (cells.width + 1));
  const std::vector<double> column_edges = cell_edges(header.width);
  const std::vector<double> row_edges = cell_edges(header.height);
  return write_npz(path,
                   {{"vertices", {vertices, shape_of({rows, cells.width + 1})}},
                    {"column_edges", {column_edges, shape_of({cells.width + 1})}},
                    {"row_edges", {row_edges, shape_of({cells.height + 1})}},
                    {"marginal_cdf", {cells.marginal_cdf, shape_of({cells.height + 1})}},
                    {"conditional_cdf", {cells.conditional_cdf, shape_of({cells.height, cells.width + 1})}}});
}

}  // namespace

absl::Status export_table(const std::string& path, const ArrayView& table, TableFormat format) {
  if (format == TableFormat::kCst) return write_table(path, table);
  const absl::StatusOr<sampling::TableHeader> header = table_header(table);
  if (!header.ok()) return header.status();
  if (header->layers != 1) {
    return absl::UnimplementedError(
        absl::StrCat("a table of ", header->layers, " layers cannot be exported; build one of each layer"));
  }
  const Distributions distributions(*header, table.bytes().data());
  if (header->interpolation != sampling::Interpolation::kConstant) {
    if (format == TableFormat::kNpz)
      return write_bilinear(path, *header, table.bytes().data(), distributions);
    return absl::UnimplementedError(
        "a bilinear table cannot be exported for pbrt or Mitsuba, whose classes are constant over each "
        "texel; "
        "use --export npz, or build one with --interpolation constant");
  }
  if (format == TableFormat::kPbrt) return write_pbrt(path, distributions);
  if (format == TableFormat::kMitsuba) return write_mitsuba(path, distributions);
  return write_plain(path, *header, distributions);
}

}  // namespace cumulus::cli
