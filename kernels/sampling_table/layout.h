#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "cumulus/point_sequences.h"
#include "cumulus/table_format.h"
#include "kernels/core/div.h"

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

/// What a table is built for. Height and width are 1 to sampling::kMaxExtent, the width of one row alone to
/// sampling::kMaxLineExtent; of kEqualArea both are the same.
struct SamplingTableParams {
  std::int64_t layers = 1;  ///< 1 to sampling::kMaxLayers distributions of equal shape.
  std::int64_t height = 0;
  std::int64_t width = 0;
  sampling::Projection projection = sampling::Projection::kLatLong;
  sampling::Interpolation interpolation = sampling::Interpolation::kConstant;
  sampling::Method method = sampling::Method::kBalancedForest;
  InvalidWeights invalid_weights = InvalidWeights::kRefuse;
  /// Entries of the guide table of each row, and of the marginal, at most sampling::kMaxGuideSize; 0: as many
  /// as there are cells. Must be 0 where the method has no guide table.
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
  bool needs_reduction() const { return mis_compensation || uniform_if_all_zero; }
};

/// What the build found. A table is usable exactly when `outcome` is kBuilt.
struct SamplingTableReport {
  enum class Outcome : std::uint32_t {
    kBuilt,
    kInvalidWeight,  ///< kRefuse: a channel that counts is NaN, infinite or negative; the first in row-major
                     ///< order.
    kAllZero,        ///< There is nothing to draw: in `layer`, the first such.
  };
  Outcome outcome = Outcome::kAllZero;
  std::int32_t layer = 0;  ///< Where that is.
  std::int32_t x = 0;      ///< kInvalidWeight: the texel,
  std::int32_t y = 0;
  std::int32_t channel = 0;  ///< its channel,
  float value = 0;           ///< and what that holds.
};

namespace sampling_table {

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("sampling table: " + what);
}

inline void check_extents(const SamplingTableParams& params) {
  const std::int64_t widest = params.height == 1 ? sampling::kMaxLineExtent : sampling::kMaxExtent;
  require(params.height >= 1 && params.height <= sampling::kMaxExtent && params.width >= 1 &&
              params.width <= widest,
          std::to_string(params.width) + " x " + std::to_string(params.height) +
              ": width and height must be 1 to 32768, the width of one row alone 1 to 4194304");
  require(
      params.projection != sampling::Projection::kEqualArea || params.height == params.width,
      std::to_string(params.width) + " x " + std::to_string(params.height) + ": an equal-area map is square");
  require(params.layers >= 1 && params.layers <= sampling::kMaxLayers,
          std::to_string(params.layers) + " layers; 1 to 65536 are possible");
}

inline std::uint32_t guide_size(const SamplingTableParams& params, std::uint32_t requested,
                                std::int64_t cells) {
  if (!sampling::has_guide(params.method)) {
    require(requested == 0, "a guide size for a method without guide table");
    return 0;
  }
  require(requested <= sampling::kMaxGuideSize,
          std::to_string(requested) + " guide entries; at most 16777216 are possible");
  return requested > 0 ? requested : static_cast<std::uint32_t>(cells);
}

}  // namespace sampling_table

/// The header that the built table will have, sizes and offsets included. Throws std::invalid_argument
/// where an extent or a guide size is out of range.
inline sampling::TableHeader sampling_table_header(const SamplingTableParams& params) {
  sampling_table::check_extents(params);
  sampling::TableHeader header;
  const bool bilinear = params.interpolation == sampling::Interpolation::kBilinear;
  std::memcpy(header.magic, sampling::kMagic, sizeof(header.magic));
  header.version = sampling::version_of(params.method, params.interpolation);
  header.header_bytes = sampling::kHeaderBytes;
  header.width = static_cast<std::uint32_t>(params.width) + (bilinear ? 1 : 0);
  header.height = static_cast<std::uint32_t>(params.height) + (bilinear && params.height > 1 ? 1 : 0);
  header.layers = static_cast<std::uint32_t>(params.layers);
  header.projection = params.projection;
  header.method = params.method;
  header.interpolation = params.interpolation;
  header.row_guide_size = sampling_table::guide_size(params, params.row_guide_size, header.width);
  header.marginal_guide_size = sampling_table::guide_size(params, params.marginal_guide_size, header.height);

  std::uint64_t end = sampling::kHeaderBytes;
  const auto place = [&end](std::uint64_t bytes) -> std::uint64_t {
    if (bytes == 0) return 0;
    const std::uint64_t offset = end;
    end += divide_up(bytes, sampling::kSectionAlignment) * sampling::kSectionAlignment;
    return offset;
  };
  const sampling::SectionBytes bytes = sampling::section_bytes(header);
  header.marginal_cdf_offset = place(bytes.marginal_cdf);
  header.marginal_guide_offset = place(bytes.marginal_guide);
  header.row_cdf_offset = place(bytes.row_cdf);
  header.row_guide_offset = place(bytes.row_guide);
  header.marginal_nodes_offset = place(bytes.marginal_nodes);
  header.row_nodes_offset = place(bytes.row_nodes);
  header.vertices_offset = place(bytes.vertices);
  header.total_bytes = end;
  return header;
}

/// Bytes of the whole table.
inline std::size_t sampling_table_bytes(const SamplingTableParams& params) {
  return sampling_table_header(params).total_bytes;
}

}  // namespace cumulus
