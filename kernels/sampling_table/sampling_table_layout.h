#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "cumulus/point_sequences.h"
#include "cumulus/table_format.h"
#include "kernels/core/scratch_arena.h"

namespace cumulus {

/// What becomes of weights that are NaN, infinite or negative.
enum class InvalidWeights : std::uint32_t {
  kRefuse,  ///< The table is not usable; the report names the first.
  kClamp,   ///< In every channel that counts, NaN and negative values count as 0, infinity as the largest
            ///< float.
};

/// The weight of a texel of three or four channels. Finite, not negative, not all zero. Rec. 709 by default.
struct LuminanceCoefficients {
  float red = 0.2126F;
  float green = 0.7152F;
  float blue = 0.0722F;
};

/// What a table is built for. Height and width are 1 to sampling::kMaxExtent.
struct SamplingTableParams {
  std::int64_t height = 0;
  std::int64_t width = 0;
  sampling::Projection projection = sampling::Projection::kLatLong;
  InvalidWeights invalid_weights = InvalidWeights::kRefuse;
  /// Entries of the guide table of each row, and of the marginal; 0: as many as there are cells.
  std::uint32_t row_guide_size = 0;
  std::uint32_t marginal_guide_size = 0;
  LuminanceCoefficients luminance{};
  /// Takes the mean of the weights off each, and makes those below it zero (Karlik et al., "MIS
  /// Compensation", 2019): what is left is for a renderer that samples its BSDF besides. Of equal weights
  /// nothing would be left; they stay as they are.
  bool mis_compensation = false;
  /// Where all weights are zero, all count as one.
  bool uniform_if_all_zero = false;

  /// Whether the weights depend on all of them, which takes a pass over them before the build.
  bool needs_survey() const { return mis_compensation || uniform_if_all_zero; }
};

/// What the build found. A table is usable exactly when `outcome` is kBuilt.
struct SamplingTableReport {
  enum class Outcome : std::uint32_t {
    kBuilt,
    kInvalidWeight,  ///< kRefuse: a channel that counts is NaN, infinite or negative; the first in row-major
                     ///< order.
    kAllZero,        ///< There is nothing to draw.
  };
  Outcome outcome = Outcome::kAllZero;
  std::int32_t x = 0;  ///< kInvalidWeight: the texel,
  std::int32_t y = 0;
  std::int32_t channel = 0;  ///< its channel,
  float value = 0;           ///< and what that holds.
};

/// The header that the built table will have, sizes and offsets included. Throws std::invalid_argument
/// where an extent is out of range.
inline sampling::TableHeader sampling_table_header(const SamplingTableParams& params) {
  const auto in_range = [](std::int64_t extent) { return extent >= 1 && extent <= sampling::kMaxExtent; };
  if (!in_range(params.height) || !in_range(params.width)) {
    throw std::invalid_argument("sampling table of " + std::to_string(params.width) + " x " +
                                std::to_string(params.height) + ": width and height must be 1 to 32768");
  }
  sampling::TableHeader header;
  std::memcpy(header.magic, sampling::kMagic, sizeof(header.magic));
  header.version = sampling::kFormatVersion;
  header.header_bytes = sampling::kHeaderBytes;
  header.width = static_cast<std::uint32_t>(params.width);
  header.height = static_cast<std::uint32_t>(params.height);
  header.layers = 1;
  header.projection = params.projection;
  header.method = sampling::Method::kCutpointBinary;
  header.row_guide_size = params.row_guide_size > 0 ? params.row_guide_size : header.width;
  header.marginal_guide_size = params.marginal_guide_size > 0 ? params.marginal_guide_size : header.height;

  std::uint64_t end = sampling::kHeaderBytes;
  const auto place = [&end](std::uint64_t bytes) {
    const std::uint64_t offset = end;
    end +=
        (bytes + sampling::kSectionAlignment - 1) / sampling::kSectionAlignment * sampling::kSectionAlignment;
    return offset;
  };
  const std::uint64_t rows = header.height;
  header.marginal_cdf_offset = place(rows * sizeof(std::uint32_t));
  header.marginal_guide_offset = place(header.marginal_guide_size * sizeof(std::uint16_t));
  header.row_cdf_offset = place(rows * header.width * sizeof(std::uint32_t));
  header.row_guide_offset = place(rows * header.row_guide_size * sizeof(std::uint16_t));
  header.total_bytes = end;
  return header;
}

/// Bytes of the whole table.
inline std::size_t sampling_table_bytes(const SamplingTableParams& params) {
  return sampling_table_header(params).total_bytes;
}

/// What the row pass leaves for the marginal: `mass` * 2^exponent in units that all rows share.
struct RowMass {
  double mass;
  std::uint32_t exponent;
  std::uint32_t padding;
};

/// What a survey finds out about a row.
struct RowSurvey {
  double mass;            ///< As in RowMass.
  std::uint32_t largest;  ///< Bits of the largest weight.
  float share;            ///< The row's share of the sphere, as row_weight has it.
};

/// How the weights of a layer are changed by what a survey of all of them has found: this much is taken off
/// each, and those that are no larger become `otherwise`.
struct WeightAdjustment {
  float taken_off = 0;
  float otherwise = 0;
};

/// What a build finds out about its weights, in the executor's memory.
struct BuildFindings {
  std::uint64_t first_invalid;  ///< (y * width + x) * 4 + channel; kNoneInvalid where all are valid.
  SamplingTableReport report;
};
inline constexpr std::uint64_t kNoneInvalid = ~std::uint64_t{0};

/// BuildFindings::first_invalid of a channel.
CUMULUS_HOST_DEVICE inline std::uint64_t invalid_key(std::uint32_t x, std::uint32_t y, std::uint32_t width,
                                                     int channel) {
  return (static_cast<std::uint64_t>(y) * width + x) * 4 + static_cast<std::uint64_t>(channel);
}

/// The report for an invalid_key; its value is left to the caller, who has the weights.
CUMULUS_HOST_DEVICE inline SamplingTableReport invalid_report(std::uint64_t key, std::uint32_t width) {
  SamplingTableReport report;
  report.outcome = SamplingTableReport::Outcome::kInvalidWeight;
  report.x = static_cast<std::int32_t>(key / 4 % width);
  report.y = static_cast<std::int32_t>(key / 4 / width);
  report.channel = static_cast<std::int32_t>(key % 4);
  return report;
}

/// Bytes [begin, end) of a table that belong to no section; they are zero.
struct TableGap {
  std::uint64_t begin;
  std::uint64_t end;
};
struct TableGaps {
  TableGap gaps[4];
};

/// What section alignment leaves free behind each section.
inline TableGaps table_gaps(const sampling::TableHeader& header) {
  const std::uint64_t rows = header.height;
  return {
      {{header.marginal_cdf_offset + rows * sizeof(std::uint32_t), header.marginal_guide_offset},
       {header.marginal_guide_offset + header.marginal_guide_size * sizeof(std::uint16_t),
        header.row_cdf_offset},
       {header.row_cdf_offset + rows * header.width * sizeof(std::uint32_t), header.row_guide_offset},
       {header.row_guide_offset + rows * header.row_guide_size * sizeof(std::uint16_t), header.total_bytes}}};
}

/// Scratch memory that build_sampling_table takes, on either backend; reserve it before the call.
inline std::size_t sampling_table_scratch_bytes(const SamplingTableParams& params) {
  const auto rows = static_cast<std::size_t>(params.height);
  ScratchSize size;
  size.add<RowMass>(rows).add<BuildFindings>(1);
  if (params.needs_survey()) size.add<RowSurvey>(rows).add<WeightAdjustment>(1);
  return size.bytes();
}

}  // namespace cumulus
