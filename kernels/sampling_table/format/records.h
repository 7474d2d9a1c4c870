#pragma once

// What one pass of a build writes to scratch memory for the next.

#include <cstdint>

#include "kernels/core/views.h"
#include "kernels/sampling_table/layout.h"

namespace cumulus::sampling_table {

/// What the row pass writes for the marginal: `mass` * 2^exponent in units that all rows share.
struct RowMass {
  double mass;
  std::uint32_t exponent;
  std::uint32_t padding;
};

/// What the reduction pass finds for a row.
struct RowReduction {
  double mass;            ///< As in RowMass.
  std::uint32_t largest;  ///< Bits of the largest weight.
  float share;            ///< The row's share of the sphere, as row_weight has it.
};

/// How the weights of a layer are changed by what the reduction pass found for all of them: this much is
/// taken off each, and those that are no larger become `otherwise`.
struct WeightAdjustment {
  float taken_off = 0;
  float otherwise = 0;
};

/// What a build finds out about its weights, in the executor's memory.
struct BuildFindings {
  std::uint64_t first_invalid;  ///< (row * width + x) * 4 + channel; kNoneInvalid where all are valid.
  std::uint32_t first_empty;    ///< The first layer without mass; kNoneEmpty where all have some.
  SamplingTableReport report;
};
inline constexpr std::uint64_t kNoneInvalid = ~std::uint64_t{0};
inline constexpr std::uint32_t kNoneEmpty = ~std::uint32_t{0};

/// BuildFindings::first_invalid of a channel; rows are counted through all layers.
CUMULUS_HOST_DEVICE inline std::uint64_t invalid_key(std::uint32_t x, std::uint32_t row, std::uint32_t width,
                                                     int channel) {
  return (static_cast<std::uint64_t>(row) * width + x) * 4 + static_cast<std::uint64_t>(channel);
}

/// The report on a table with these findings about `weights`, whose rows are those of all layers of `height`.
template <class T, Space S>
CUMULUS_HOST_DEVICE SamplingTableReport report_of(const BuildFindings& findings,
                                                  const ImageView<const T, S>& weights,
                                                  std::uint32_t height) {
  SamplingTableReport report;
  if (findings.first_invalid != kNoneInvalid) {
    const auto width = static_cast<std::uint64_t>(weights.width);
    const std::uint64_t texel = findings.first_invalid / 4;
    const auto channel = static_cast<std::int64_t>(findings.first_invalid % 4);
    const auto x = static_cast<std::int64_t>(texel % width);
    const auto row = static_cast<std::int64_t>(texel / width);
    report.outcome = SamplingTableReport::Outcome::kInvalidWeight;
    report.layer = static_cast<std::int32_t>(row / height);
    report.x = static_cast<std::int32_t>(x);
    report.y = static_cast<std::int32_t>(row % height);
    report.channel = static_cast<std::int32_t>(channel);
    report.value =
        static_cast<float>(weights.data[row * weights.row_stride + x * weights.channels + channel]);
  } else if (findings.first_empty != kNoneEmpty) {
    report.layer = static_cast<std::int32_t>(findings.first_empty);
  } else {
    report.outcome = SamplingTableReport::Outcome::kBuilt;
  }
  return report;
}

}  // namespace cumulus::sampling_table
