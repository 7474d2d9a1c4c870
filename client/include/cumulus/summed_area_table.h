#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cumulus/operation.h"

/// Summed-area tables: S(y, x) is the sum of all pixels in rows 0..y and columns 0..x; sums over rectangles
/// and box filters from them. (F. Crow, "Summed-area tables for texture mapping", SIGGRAPH 1984.)
namespace cumulus {

enum class SumPrecision {
  kPlain,           ///< sums of the pixels, in the accumulator's precision
  kMeanSubtracted,  ///< float32 sums of the pixels less their channel's mean, which comes back as `offsets`
  /// Float32 sums within tiles of 64 x 128 pixels, on top of float64 bases, `above` and `left`.
  kTileLocal,
};

struct SummedAreaTableOptions {
  /// uint8 images: kUint32 (default) or kUint64; uint16: kUint64 (default) or kUint32; uint32: kUint64;
  /// int32: kInt64; float16 and float32: kFloat64 (default) or kFloat32; float64: kFloat64.
  std::optional<ElementType> accumulator = std::nullopt;
  /// The table begins with a row and a column of zeros: element (y, x) is the sum above row y and left of
  /// column x.
  bool exclusive = false;
  /// Also the sums of the squared pixels: of uint8, uint16 and float images, in 64 bits.
  bool squares = false;
  /// The image's outermost extent counts images, and each is summed by itself.
  bool planar = false;
  /// Only the first `width` columns of each row are pixels; 0: all.
  std::int64_t width = 0;
  /// Let integer sums that could exceed the accumulator wrap around instead of refusing the image.
  bool wrap = false;
  SumPrecision precision = SumPrecision::kPlain;
};

/// Of `image`, [height, width] or [height, width, channels], 1 to 4 channels (planar: with the number of
/// images in front), of the types that SummedAreaTableOptions::accumulator lists. Results: `sums`, of the
/// accumulator's type and the image's shape (exclusive: a row and a column more); with squares also
/// `squares`, alike; with kMeanSubtracted also `offsets`, float32 [channels] or [images, channels]; with
/// kTileLocal also `above`, float64 [tile rows + 1, width + 1, channels], and `left`, float64 [tile rows, 65,
/// tile columns + 1, channels]:
///   S(y, x) = above[y / 64, x + 1] + left[y / 64, y % 64 + 1, x / 128] + sums[y, x].
/// Integer sums are exact; an image of integers whose sums could exceed the accumulator, were every pixel the
/// largest, is INVALID_ARGUMENT unless `wrap`. Float sums are off by at most (height + width) u of the sum of
/// absolute pixels, u = 2^-24 for float32 and 2^-53 for float64; NaN and Inf spread to every sum below and to
/// the right of them.
Operation build_summed_area_table(const Source& image, const SummedAreaTableOptions& options = {});

enum class RectangleStatistic {
  kSum,       ///< `sums`, of the table's type
  kMean,      ///< `means`, float64
  kVariance,  ///< `variances`, float64; needs the table of squares
};

struct SumRectanglesOptions {
  std::vector<RectangleStatistic> statistics = {RectangleStatistic::kSum};
  std::optional<Source> squares = std::nullopt;  ///< the table's `squares`
  std::optional<Source> offsets = std::nullopt;  ///< the table's `offsets`, where it has them
  std::optional<Source> above = std::nullopt;    ///< a tile-local table's `above`
  std::optional<Source> left = std::nullopt;     ///< and its `left`
  bool exclusive = false;                        ///< the table is exclusive
  /// FAILED_PRECONDITION where a rectangle is empty or reaches beyond the image; otherwise it is clipped, and
  /// of nothing the sum is 0, mean and variance are NaN.
  bool refuse_outside = false;
};

/// Over `rectangles`, int32 [count, 4]: top, left, bottom and right, rows top..bottom - 1 and columns
/// left..right - 1; of `sums`, a result of build_summed_area_table of one image. Results: the statistics, by
/// the names above, [count] or [count, channels]. With refuse_outside FAILED_PRECONDITION has the reason
/// RECTANGLE_OUTSIDE and the first such rectangle's number as `rectangle`.
Operation sum_rectangles(const Source& sums, const Source& rectangles,
                         const SumRectanglesOptions& options = {});

/// What a box sees beyond the image's edge.
enum class BoxBoundary {
  kExact,    ///< nothing: the mean is over those of its pixels that lie inside
  kZero,     ///< zeros
  kClamp,    ///< the edge's pixels: aaa|abcd|ddd
  kRepeat,   ///< the image again: bcd|abcd|abc; what a lat-long map wants along its rows
  kReflect,  ///< its mirror image: cba|abcd|dcb
  kMirror,   ///< the same, the edge's pixels once: dcb|abcd|cba
};

struct BoxFilterOptions {
  /// In pixels: the box covers 2 * radius + 1 of them along each axis. 0 (with a radius map: as it says) to
  /// the larger of the image's width and height; of uint32 and int32 images at most 32767 as well.
  int radius = 0;
  std::optional<int> radius_x = std::nullopt;  ///< along the rows, instead of `radius`
  std::optional<int> radius_y = std::nullopt;  ///< along the columns, instead of `radius`
  /// float32 [height, width]: the radius at each pixel, in pixels, rounded; negative and NaN count as 0. No
  /// axis takes more than the radius that is set for it above, if one is.
  std::optional<Source> radius_map = std::nullopt;
  BoxBoundary boundary_x = BoxBoundary::kClamp;  ///< as a blur has it
  BoxBoundary boundary_y = BoxBoundary::kClamp;
  bool deviation = false;  ///< also the standard deviation; not of 32-bit integers
  NonFinitePixels non_finite = NonFinitePixels::kRefuse;
};

/// Of `image`, as in build_summed_area_table. Results: `image`, float32, of the image's shape: the mean over
/// the box around each pixel; with deviation also `deviation`, alike: the root of the mean square less the
/// squared mean. Of integers from exact sums, of floats from float64 sums. NaN and infinities
/// that are kept spoil the pixels whose boxes end at or beyond their row and column. A radius out of its
/// range, a map of another type or of other extents than the image's are INVALID_ARGUMENT.
Operation filter_box(const Source& image, const BoxFilterOptions& options);

}  // namespace cumulus
