#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/sampling_table/sampling_table.h"

// The arguments that both backends refuse, before anything runs.
namespace cumulus::sampling_table {

template <class T, Space S>
void check_build(const ImageView<const T, S>& weights, const SamplingTableParams& params,
                 Span<std::byte, S> table) {
  require(weights.height == params.layers * params.height && weights.width == params.width,
          "weights of " + std::to_string(weights.width) + " x " + std::to_string(weights.height) +
              " pixels for a table of " + std::to_string(params.layers) + " layers of " +
              std::to_string(params.width) + " x " + std::to_string(params.height));
  require(weights.channels >= 1 && weights.channels <= 4,
          std::to_string(weights.channels) + " channels; 1 to 4 are possible");
  require(weights.row_stride >= weights.width * weights.channels,
          "rows overlap: the row stride is " + std::to_string(weights.row_stride) + " elements");
  const LuminanceCoefficients& luminance = params.luminance;
  for (const float coefficient : {luminance.red, luminance.green, luminance.blue}) {
    require(std::isfinite(coefficient) && coefficient >= 0.0F,
            "luminance coefficients must be finite and not negative");
  }
  require(luminance.red > 0.0F || luminance.green > 0.0F || luminance.blue > 0.0F,
          "one of the luminance coefficients must be positive");
  require(table.size() == sampling_table_bytes(params),
          "the table's memory takes " + std::to_string(table.size()) + " bytes; it must take " +
              std::to_string(sampling_table_bytes(params)));
  require(reinterpret_cast<std::uintptr_t>(table.data()) % alignof(sampling::TableHeader) == 0,
          "the table's memory must begin at a multiple of 8");
}

template <Space S>
void check_table(const sampling::TableHeader& header, Span<const std::byte, S> table) {
  const sampling::TableError error = sampling::check_header(header, table.size());
  require(error == sampling::TableError::kNone, sampling::describe(error));
}

inline void check_layer(const sampling::TableHeader& header, std::uint32_t layer) {
  require(layer < header.layers,
          "layer " + std::to_string(layer) + " of a table of " + std::to_string(header.layers) + " layers");
}

template <Space S>
void check_points(const sampling::TableHeader& header, Span<const std::byte, S> table, std::size_t count,
                  std::uint32_t layer, const DrawnSamples<S>& samples) {
  check_table(header, table);
  check_layer(header, layer);
  require(samples.position.size() == 2 * count && samples.pdf.size() == count,
          "position must have 2 and pdf 1 elements a sample");
  require(samples.direction.empty() || samples.direction.size() == 3 * count,
          "direction must have 3 elements a sample, or be empty");
  require(samples.direction.empty() || sampling::on_sphere(header.projection), "a plane has no directions");
}

template <Space S>
void check_draw(const sampling::TableHeader& header, Span<const std::byte, S> table,
                const DrawParameters& parameters, const DrawnSamples<S>& samples) {
  constexpr std::int64_t kMaxPoints = std::int64_t{1} << 32;
  require(parameters.count >= 0 && parameters.first_index >= 0 && parameters.first_index <= kMaxPoints &&
              parameters.count <= kMaxPoints - parameters.first_index,
          "first_index + count must be 0 to 2^32");
  require(parameters.total >= 0 && parameters.total <= kMaxPoints, "total must be 0 to 2^32");
  require(parameters.total == 0 || parameters.total >= parameters.first_index + parameters.count,
          "total must be at least first_index + count");
  check_points(header, table, static_cast<std::size_t>(parameters.count), parameters.layer, samples);
}

template <Space S>
void check_density(const sampling::TableHeader& header, Span<const std::byte, S> table,
                   const DensityPoints<S>& points, Span<float, S> pdf) {
  check_table(header, table);
  check_layer(header, points.layer);
  require(points.dimensions == 2 || points.dimensions == 3,
          std::to_string(points.dimensions) + " coordinates a point; 2 or 3 are possible");
  require(points.dimensions == 2 || sampling::on_sphere(header.projection), "a plane has no directions");
  require(points.coordinates.size() == static_cast<std::size_t>(points.dimensions) * pdf.size(),
          "points must have " + std::to_string(points.dimensions) + " elements for each of pdf");
}

}  // namespace cumulus::sampling_table
