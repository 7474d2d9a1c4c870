#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "cumulus/operation.h"

/// Recursive filters along the columns and rows of an image: blurs of any width, spline prefilters, at one
/// price.
namespace cumulus {

/// What the image is taken to be beyond its first and last pixel, without end.
enum class ImageBoundary {
  kZero,     ///< 0 0 0 | a b c d | 0 0 0
  kClamp,    ///< a a a | a b c d | d d d
  kRepeat,   ///< b c d | a b c d | a b c: the columns of a lat-long map
  kReflect,  ///< c b a | a b c d | d c b
  kMirror,   ///< d c b | a b c d | c b a
};

/// A Gaussian of standard deviation `sigma` pixels, 0.5 to 10000.
struct GaussianKernel {
  double sigma = 1;
};

/// Turns samples into coefficients of the B-spline through them; degree 3 or 5.
struct BsplinePrefilterKernel {
  int degree = 3;
};

/// y[i] = (1 - decay) x[i] + decay y[i - 1], then the same from the other end; 0 to 0.99999.
struct ExponentialKernel {
  double decay = 0;
};

/// y[i] = gain x[i] - causal[0] y[i - 1] - ..., then z[i] = y[i] - anticausal[0] z[i + 1] - ...; at most 5
/// coefficients either way, with poles within 0.99999 of the origin. Without a gain: what leaves a constant
/// image as it is.
struct FeedbackKernel {
  std::optional<double> gain;
  std::vector<double> causal;
  std::vector<double> anticausal;
};

/// The filter along one axis.
struct AxisKernel {
  std::variant<GaussianKernel, BsplinePrefilterKernel, ExponentialKernel, FeedbackKernel> kernel;
  ImageBoundary boundary = ImageBoundary::kClamp;
};

/// An absent one leaves its axis as it is; at least one is there.
struct RecursiveFilterOptions {
  std::optional<AxisKernel> y;  ///< along the columns
  std::optional<AxisKernel> x;  ///< along the rows
};

/// Of `image`, [height, width] or [height, width, channels], 1 to 4 channels, float32. Result: `image`,
/// float32, of the image's shape.
Operation apply_recursive_filter(const Source& image, const RecursiveFilterOptions& options);

}  // namespace cumulus
