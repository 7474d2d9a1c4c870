#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/parallel.h"
#include "kernels/sampling_table/cpu/long_loop.h"
#include "kernels/sampling_table/cpu/long_rows.h"
#include "kernels/sampling_table/tuning.h"
#include "kernels/sampling_table/weights/reduction.h"

namespace cumulus::sampling_table {

/// The reduction of one row, which can go on in another slice.
template <class T>
class RowReducer {
 public:
  RowReducer(HostImage<const T> weights, const SamplingTableParams& params, std::int64_t row)
      : texels_(weights.row(row)),
        channels_(weights.channels),
        rule_(weight_rule(params, weights.channels)),
        width_(static_cast<std::uint32_t>(weights.width)),
        largest_of_(weights.width),
        sum_of_(weights.width) {}

  /// Goes on from where it was, to the end or until `slice`, if there is one, is over. Whether it has come to
  /// the end.
  bool run(const Slice* slice) {
    const auto find_largest = [this](std::int64_t first, std::int64_t end) {
      std::uint32_t largest = largest_;
      for_texels(first, end,
                 [&](const T* texel) { largest = std::max(largest, load_weight(texel, rule_).bits); });
      largest_ = largest;
    };
    if (!largest_of_.run(slice, find_largest)) return false;
    const std::uint32_t exponent = row_exponent(largest_, width_);
    return sum_of_.run(slice, [&](std::int64_t first, std::int64_t end) {
      std::uint64_t sum = sum_;
      for_texels(first, end,
                 [&](const T* texel) { sum += integer_weight(load_weight(texel, rule_).bits, exponent); });
      sum_ = sum;
    });
  }

  /// Once it has come to the end; `row` counts through all layers.
  RowReduction result(const SamplingTableParams& params, std::int64_t row) const {
    return row_reduction(sum_, largest_, params.projection, static_cast<std::uint32_t>(row % params.height),
                         static_cast<std::uint32_t>(params.height));
  }

 private:
  template <class Visit>
  void for_texels(std::int64_t first, std::int64_t end, const Visit& visit) const {
    const T* const last = texels_ + end * channels_;
    for (const T* texel = texels_ + first * channels_; texel != last; texel += channels_) visit(texel);
  }

  const T* texels_;
  std::int64_t channels_;
  WeightRule rule_;
  std::uint32_t width_;
  LongLoop largest_of_, sum_of_;
  std::uint32_t largest_ = 0;
  std::uint64_t sum_ = 0;
};

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
  const auto begin = [&](std::int64_t row) { return RowReducer<T>(weights, params, row); };
  const auto conclude = [&](std::int64_t row, const RowReducer<T>& reducer) {
    rows[static_cast<std::size_t>(row)] = reducer.result(params, row);
  };
  if (params.width >= kLongRowCells) {
    run_long_rows<RowReducer<T>>(executor, weights.height, begin, conclude);
  } else {
    const std::int64_t grain = std::max<std::int64_t>(1, kTexelsPerTask / params.width);
    parallel_ranges(executor, weights.height, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        RowReducer<T> reducer = begin(row);
        reducer.run(nullptr);
        conclude(row, reducer);
      }
    });
  }
  executor.check_interrupt();
  const auto height = static_cast<std::size_t>(params.height);
  for (std::size_t layer = 0; layer < adjustments.size(); ++layer) {
    adjustments[layer] = reduce_layer({rows.data() + layer * height, height}, params);
  }
}

}  // namespace cumulus::sampling_table
