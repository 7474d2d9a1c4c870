#pragma once

#include <array>
#include <cstdint>

#include "cumulus/operation.h"

/// Importance sampling of images: build a table once, draw from it on the server, or download it and
/// draw with cumulus/sampling.h, which the server itself uses.
namespace cumulus {

/// What the image's plane stands for.
enum class MapProjection {
  kLatLong,  ///< rows are polar angle 0 (top, +Y) to pi, columns azimuth; weights are times the solid angle
  kPlane,    ///< the unit square; weights as they are
  /// The equal-area octahedral map, as pbrt-v4 has it: square, +Z in the middle (cumulus/equal_area.h).
  kEqualArea,
};

/// What becomes of weights that are no number, infinite or negative. Photographed maps often have some
/// channels slightly below zero.
enum class InvalidWeights {
  kRefuse,  ///< FAILED_PRECONDITION, with the first one's position
  kClamp,   ///< in every channel, NaN and negative values count as 0, infinity as the largest float
};

/// The weight of a texel of three or four channels.
enum class Luminance {
  kRec709,   ///< 0.2126 R + 0.7152 G + 0.0722 B
  kRec2020,  ///< 0.2627 R + 0.6780 G + 0.0593 B
  kAcesCg,   ///< of the primaries AP1: 0.2722287 R + 0.6740818 G + 0.0536895 B
  kAverage,  ///< (R + G + B) / 3
  kCustom,   ///< by luminance_coefficients
};

/// What lies between the numbers of a map.
enum class MapInterpolation {
  kConstant,  ///< each texel has one density
  /// Weights are those at the centres of texels, the density between them is bilinear and continuous (along a
  /// column of a lat-long map linear in solid angle). A map of the sphere is interpolated across its seams,
  /// the edge texels of a plane continue to its edges. 4 bytes a texel more.
  kBilinear,
};

/// How a cell is found (docs/operations/sampling_table.md has their speed and size, and Binder and Keller,
/// "Massively Parallel Construction of Radix Tree Forests for the Efficient Sampling of Discrete or Piecewise
/// Constant Probability Distributions", 2020, the forests). All but kAlias map points monotonically, so that
/// low-discrepancy points keep their evenness, and all of these draw the same samples.
enum class SamplingMethod {
  kBalancedForest,  ///< a guide table, then bisection of the cells that overlap its cell
  kRadixForest,     ///< a guide table of first cells and, where many overlap, of roots of radix trees
  kCutpointBinary,  ///< a guide table, then binary search
  kBinarySearch,    ///< over all cells; no guide table, the smallest table
  kAlias,           ///< Walker's alias table; not monotone
};

struct SamplingTableOptions {
  MapProjection projection = MapProjection::kLatLong;
  InvalidWeights invalid_weights = InvalidWeights::kRefuse;
  Luminance luminance = Luminance::kRec709;
  /// kCustom: of red, green and blue; finite, at least 0, one of them more.
  std::array<float, 3> luminance_coefficients{};
  /// Takes the mean (on the sphere by solid angle) off every weight, and makes those below it 0: for a
  /// renderer that samples the BSDF besides (Karlik et al., "MIS Compensation", 2019). A map all of whose
  /// weights are equal stays as it is.
  bool mis_compensation = false;
  bool uniform_if_all_zero = false;  ///< Where all weights are zero, all count as 1.
  MapInterpolation interpolation = MapInterpolation::kConstant;
  SamplingMethod method = SamplingMethod::kBalancedForest;
  /// Entries of each row's guide table, and of the one that chooses the row: at most 2^24; 0: as many as
  /// the table has columns, rows. 0 where the method has no guide table.
  std::uint32_t guide_size = 0;
  std::uint32_t marginal_guide_size = 0;
  /// The first extent of the weights, at most 65536, counts layers of equal shape, such as the frames of a
  /// video: one distribution of each, all in one table.
  bool layered = false;
};

/// Of `weights`, [height, width], [height, width, channels] or, of one row, [width]; float32, float16 or
/// uint8; at most 32768 a side, a single row at most 2^22. One channel is the weight itself, of two the
/// first, of three or four the luminance. FAILED_PRECONDITION where all are zero (unless
/// uniform_if_all_zero; reason ALL_WEIGHTS_ZERO, with the `layer`), or one is invalid and to be refused
/// (INVALID_WEIGHT, with the first one's `layer`, `row`, `column`, `channel`). Result: `table`, uint8
/// [bytes], in the layout that cumulus/sampling.h reads.
Operation build_sampling_table(const Source& weights, const SamplingTableOptions& options = {});

enum class PointSequence {
  kSobol,       ///< the first two dimensions of Sobol's sequence
  kHammersley,  ///< (i / total, radical inverse of i in base 2)
  kRandom,      ///< counter-based, from seed
};

struct DrawSamplesOptions {
  std::int64_t count = 1;        ///< 1 to 2^31
  std::int64_t first_index = 0;  ///< where in the sequence to begin; first_index + count at most 2^32
  PointSequence sequence = PointSequence::kSobol;
  /// kRandom: the key; otherwise a random digital shift unless 0.
  std::uint64_t seed = 0;
  /// kHammersley: the size of the whole set, at most 2^32; 0: first_index + count.
  std::int64_t total = 0;
  std::uint32_t layer = 0;  ///< of a layered table, which one
};

/// Of `table`, a result of build_sampling_table. Result: `position`, float32 [count, 2]: u, v in
/// [0, 1), v down; `pdf`, float32 [count]: per steradian, of a plane per unit of area; and, unless
/// that is a plane, `direction`, float32 [count, 3], of unit length.
Operation draw_samples(const Source& table, const DrawSamplesOptions& options);

/// Of `table`, at `points`: float32 [count, 2], positions, or, unless that is a plane, [count, 3], directions
/// of any length. Result: `pdf`, float32 [count], the density with which draw_samples draws there.
/// Of a layered table `layer` is the one that is meant.
Operation evaluate_density(const Source& table, const Source& points, std::uint32_t layer = 0);

}  // namespace cumulus
