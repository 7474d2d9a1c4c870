#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/parallel.h"
#include "kernels/sampling_table/tuning.h"
#include "kernels/sampling_table/weights/reduction.h"

namespace cumulus::sampling_table {

template <class T>
RowReduction reduce_row(HostImage<const T> weights, const SamplingTableParams& params, std::int64_t row) {
  const WeightRule rule = weight_rule(params, weights.channels);
  const T* first = weights.row(row);
  const T* end = first + weights.width * weights.channels;
  std::uint32_t largest = 0;
  for (const T* texel = first; texel != end; texel += weights.channels)
    largest = std::max(largest, load_weight(texel, rule).bits);
  const std::uint32_t exponent = row_exponent(largest, static_cast<std::uint32_t>(weights.width));
  std::uint64_t sum = 0;
  for (const T* texel = first; texel != end; texel += weights.channels)
    sum += integer_weight(load_weight(texel, rule).bits, exponent);
  return row_reduction(sum, largest, params.projection, static_cast<std::uint32_t>(row % params.height),
                       static_cast<std::uint32_t>(params.height));
}

inline WeightAdjustment reduce_layer(HostSpan<const RowReduction> rows, const SamplingTableParams& params) {
  const auto width = static_cast<std::uint32_t>(params.width);
  std::uint32_t heaviest = 0;
  for (const RowReduction& row : rows) heaviest = std::max(heaviest, mass_exponent(row, width));
  LayerReduction layer;
  for (const RowReduction& row : rows) layer.add(row, width, heaviest);
  return adjustment_of(layer, width, heaviest, params.mis_compensation, params.uniform_if_all_zero);
}

/// Fills `adjustments`, one a layer; `rows` is scratch, one for each row of all layers.
template <class T>
void reduce_weights(CpuExecutor& executor, HostImage<const T> weights, const SamplingTableParams& params,
                    HostSpan<RowReduction> rows, HostSpan<WeightAdjustment> adjustments) {
  const std::int64_t grain = std::max<std::int64_t>(1, kTexelsPerTask / params.width);
  parallel_ranges(executor, weights.height, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row)
      rows[static_cast<std::size_t>(row)] = reduce_row(weights, params, row);
  });
  executor.check_interrupt();
  const auto height = static_cast<std::size_t>(params.height);
  for (std::size_t layer = 0; layer < adjustments.size(); ++layer) {
    adjustments[layer] = reduce_layer({rows.data() + layer * height, height}, params);
  }
}

}  // namespace cumulus::sampling_table
