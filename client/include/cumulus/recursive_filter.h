#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "cumulus/operation.h"

/// Recursive filters along the columns and rows of an image: blurs of any width, spline prefilters, at one
/// price. The boundaries are exact: nothing is padded or cut off. (D. Nehab, A. Maximo, R. Lima and H. Hoppe,
/// "GPU-efficient recursive filtering and summed-area tables", SIGGRAPH Asia 2011; D. Nehab and A. Maximo,
/// "Parallel recursive filtering of infinite input extensions", SIGGRAPH Asia 2016.)
namespace cumulus {

/// What the image is taken to be beyond its first and last pixel, without end.
enum class ImageBoundary {
  kZero,     ///< 0 0 0 | a b c d | 0 0 0
  kClamp,    ///< a a a | a b c d | d d d
  kRepeat,   ///< b c d | a b c d | a b c: the columns of a lat-long map
  kReflect,  ///< c b a | a b c d | d c b
  kMirror,   ///< d c b | a b c d | c b a
  /// Nothing: the mean over those of the filter's weights that fall inside. Of Gaussians that blur and of
  /// exponential kernels; INVALID_ARGUMENT of others.
  kExact,
};

/// The forms of R. Deriche ("Recursively implementing the Gaussian and its derivatives", 1993) and of I.
/// Young, L. van Vliet, M. van Ginkel and P. Verbeek (1998).
enum class GaussianMethod {
  /// kFir; kDeriche where that cannot do the call: for derivatives, beside another kernel along the other
  /// axis,
  /// and with a FilterMethod or a max_truncation_error of recursive filters.
  kDefault,
  kDeriche,  ///< four poles either way: within 0.03 % of the true Gaussian's peak for a sigma of 0.7 or more
  kYoung,    ///< three poles either way: less work, within 4 % of the peak for a sigma of 1 or more
  /// Finite impulse responses of positive weights: the result of pixels of 0 or more is 0 or more, and each
  /// is within 2e-6 of itself (float32), also beside a sun. Along both axes, or along one alone.
  kFir,
};

/// A Gaussian of standard deviation `sigma` pixels, 0.5 to 10000, or its derivative along the axis.
struct GaussianKernel {
  double sigma = 1;
  GaussianMethod method = GaussianMethod::kDefault;
  int derivative = 0;  ///< 0; 1 (per pixel) or 2 (per pixel squared), by kDeriche alone, the default then
};

/// Turns samples into coefficients of the B-spline through them, usually with kMirror; degree 3 or 5. (M.
/// Unser, A. Aldroubi and M. Eden, "B-spline signal processing", 1993.)
struct BsplinePrefilterKernel {
  int degree = 3;
};

/// y[i] = (1 - decay) x[i] + decay y[i - 1], then the same from the other end; 0 to 0.99999.
struct ExponentialKernel {
  double decay = 0;
};

/// y[i] = gain x[i] - causal[0] y[i - 1] - ..., then z[i] = y[i] - anticausal[0] z[i + 1] - ...; at most 5
/// coefficients either way, with poles within 0.99999 of the origin: INVALID_ARGUMENT names one that lies
/// farther out. The gain is finite and not 0; without one: what leaves a constant image as it is.
struct FeedbackKernel {
  std::optional<double> gain = std::nullopt;
  std::vector<double> causal = {};
  std::vector<double> anticausal = {};
};

/// The filter along one axis.
struct AxisKernel {
  std::variant<GaussianKernel, BsplinePrefilterKernel, ExponentialKernel, FeedbackKernel> kernel = {};
  ImageBoundary boundary = ImageBoundary::kClamp;
};

/// How a GPU goes about it; the CPU has one way, by lines, exact, and takes any of these for it.
enum class FilterMethod {
  kFastest = 0,   ///< that can do it within max_truncation_error
  kLines = 1,     ///< a thread for each row or column; takes everything
  kTiled = 2,     ///< reads the image twice, writes it once; not float64
  kOnChip = 3,    ///< reads and writes it once, where it fits on the chip and decay lengths are short
  kDecaying = 4,  ///< the same for images of any size, where they are shorter still
  kFir = 5,       ///< the one way of GaussianMethod::kFir, and of nothing else
};

/// An absent one leaves its axis as it is; at least one is there.
struct RecursiveFilterOptions {
  std::optional<AxisKernel> y = std::nullopt;  ///< along the columns
  std::optional<AxisKernel> x = std::nullopt;  ///< along the rows
  /// Of the image's type and shape: the result is accumulate + weight * the filtered image.
  std::optional<Source> accumulate = std::nullopt;
  double weight = 1;  ///< finite; only with `accumulate`
  FilterMethod method = FilterMethod::kFastest;
  /// What kOnChip and kDecaying may leave out of a filtered pixel at most, relative to the image's largest
  /// magnitude, 0 to 1; 0: nothing. Absent: less than float32 rounds off.
  std::optional<double> max_truncation_error = std::nullopt;
  bool tell_method = false;  ///< also `method` and `truncation_bound`
  NonFinitePixels non_finite = NonFinitePixels::kRefuse;
};

/// Of `image`, [height, width], [height, width, channels] or a batch [images, height, width, channels], 1 to
/// 4 channels, of float32, float16 or float64; each channel of each image is filtered alone. Result: `image`,
/// of the image's type and shape. Where the image is a Buffer, the result stays with it, ready for the next
/// operation. With tell_method also `method` (int32 [1], the FilterMethod that ran) and `truncation_bound`
/// (float64 [1], what it may have left out at most, 0: nothing).
///
/// INVALID_ARGUMENT names the field that is out of range; also `method` where the one asked for cannot do it,
/// and `max_truncation_error` where it would leave out more. FAILED_PRECONDITION, reason
/// DOES_NOT_FIT_ON_CHIP, for kOnChip on an image that is too large (with `tiles` and `tiles_on_chip`).
Operation apply_recursive_filter(const Source& image, const RecursiveFilterOptions& options);

}  // namespace cumulus
