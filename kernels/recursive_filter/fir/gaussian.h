#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/recursive_filter/design.h"

// A Gaussian as finite impulse responses whose weights are all positive: what is not negative stays so, and a
// pixel errs relative to itself, not to the image's peak. A wide one is sampled at every step-th pixel,
// filtered there, and interpolated, with Gaussians of a, b and c pixels, a^2 + b^2 + c^2 = sigma^2. By
// Poisson's sum over the low-resolution grid the product is the Gaussian of sigma times 1 + alias at each
// distance alike. Along two axes the image is sampled along both first, so that nearly all of the work is in
// reading it once and writing it once.

namespace cumulus {

/// The Gaussian along an axis.
struct FirAxis {
  double sigma = 1;  // pixels, kMinSigma to kMaxSigma
  FilterBoundary boundary = FilterBoundary::kClamp;
};

/// An absent axis stays as it is; at least one is there.
struct FirBlur {
  std::optional<FirAxis> y;
  std::optional<FirAxis> x;
};

/// What of each pixel the blur leaves out at most, relative to the image's largest magnitude: the ends of up
/// to six Gaussians that are cut off at kFirCutOff of their own sigmas.
inline constexpr double kFirCutOff = 8;
inline constexpr double kFirTruncation = 0x1p-46;

}  // namespace cumulus

namespace cumulus::recursive_filter {

/// A filter along one axis, with a change of rate: place i of the result is the sum over tap t of
/// weight(i % phases, t) times the place (i / phases) advance + first + t of what the boundary makes of the
/// input. One of `phases` and `advance` is 1.
struct FirPass {
  bool along_x = false;
  FilterBoundary boundary = FilterBoundary::kZero;
  std::int64_t in_length = 1, out_length = 1;
  std::int64_t phases = 1, advance = 1;
  std::int64_t first = 0;
  std::int64_t taps = 1;
  /// weight(p, t) = scale exp(-(d / sigma)^2 / 2), d = centre + t - p / phases; they sum to 1.
  double sigma = 1, centre = 0, scale = 1;
  std::vector<double> weights;  // phase after phase

  const double* of_phase(std::int64_t phase) const { return weights.data() + phase * taps; }
};

/// The passes over an image, first to last.
std::vector<FirPass> plan_fir_passes(const FirBlur& blur, std::int64_t height, std::int64_t width);

struct FirExtents {
  std::int64_t height = 1, width = 1;
};

/// Of a pass's result, from those of its input.
inline FirExtents extents_after(const FirPass& pass, const FirExtents& before) {
  return pass.along_x ? FirExtents{before.height, pass.out_length}
                      : FirExtents{pass.out_length, before.width};
}

/// Numbers that two arrays between the passes hold, which take turns.
struct FirScratch {
  std::int64_t even = 0, odd = 0;
};
FirScratch fir_scratch(const std::vector<FirPass>& passes, const FirExtents& image, std::int64_t channels);

/// Throws std::invalid_argument for a sigma out of range and where no axis is there.
void check_fir_blur(const FirBlur& blur);

}  // namespace cumulus::recursive_filter
