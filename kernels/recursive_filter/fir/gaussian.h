#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/recursive_filter/design.h"

// A Gaussian as finite impulse responses whose weights are all positive: what is not negative stays so, and a
// pixel errs relative to itself, not to the image's peak. A wide one is sampled at every step-th pixel,
// filtered there, and interpolated (fir/levels.h); where the filter between is wide too, it is made the same
// way. Steps are small, so that a block of a GPU holds what it reaches, and both axes go together: nearly all
// of the work is in reading the image once and writing it once.

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

/// What of each pixel the blur leaves out at most, relative to the image's largest magnitude: the ends of
/// Gaussians that are cut off at kFirCutOff of their own sigmas, or where they stand for no more than that.
inline constexpr double kFirCutOff = 8;
inline constexpr double kFirTruncation = 0x1p-46;

}  // namespace cumulus

namespace cumulus::recursive_filter {

/// A filter along one axis, with a change of rate: place i of the result is the sum over tap t of
/// weight(i % phases, t) times the place (i / phases) advance + first + t of what the boundary makes of the
/// input. One of `phases` and `advance` is 1.
struct FirPass {
  FilterBoundary boundary = FilterBoundary::kZero;
  std::int64_t in_length = 1, out_length = 1;
  std::int64_t phases = 1, advance = 1;
  std::int64_t first = 0;
  std::int64_t taps = 1;
  /// A Gaussian's, if sigma is above 0: weight(p, t) = scale exp(-(d / sigma)^2 / 2), d = centre + t - p /
  /// phases.
  double sigma = 0, centre = 0, scale = 1;
  std::vector<double> weights;  // phase after phase, each of which sums to 1

  const double* of_phase(std::int64_t phase) const { return weights.data() + phase * taps; }
};
/// The most of either, but where the blur reaches far beyond a line that goes on there.
inline constexpr std::int64_t kFirSmallStep = 4;

/// What is done along both axes, or along one, at once.
struct FirStage {
  std::optional<FirPass> y;
  std::optional<FirPass> x;
};

struct FirExtents {
  std::int64_t height = 1, width = 1;
};

/// The stages over an image, first to last.
std::vector<FirStage> plan_fir_stages(const FirBlur& blur, const FirExtents& image);

/// Of a stage's result, from those of its input.
inline FirExtents extents_after(const FirStage& stage, const FirExtents& before) {
  return {stage.y.has_value() ? stage.y->out_length : before.height,
          stage.x.has_value() ? stage.x->out_length : before.width};
}

/// Whether a GPU cannot hold what a stage reaches: steps are large, or a row is longer than 2^29 pixels.
bool has_large_steps(const std::vector<FirStage>& stages, const FirExtents& image);

/// The same, an axis at a time: the rate falls early and rises late.
std::vector<FirStage> axis_by_axis(const std::vector<FirStage>& stages);

/// As they are run on a CPU: an axis at a time where rows, of so many channels, or steps are too large for a
/// cache.
std::vector<FirStage> host_stages(const FirBlur& blur, const FirExtents& image, std::int64_t channels);

/// As they are run on a GPU. If there are several, the filter at the lowest rate goes an axis at a time, and
/// doubles do in all, first and last along y. Some of large images are as they were: all of these are
/// RingPlans, or direct.
std::vector<FirStage> device_stages(const FirBlur& blur, const FirExtents& image, bool of_doubles);

/// Numbers that two arrays between the stages hold, which take turns.
struct FirScratch {
  std::int64_t even = 0, odd = 0;
};
/// Rows of these begin at multiples of so many numbers on a GPU.
inline constexpr std::int64_t kFirDeviceRow = 4;
/// With rows of multiples of `row` numbers.
FirScratch fir_scratch(const std::vector<FirStage>& stages, const FirExtents& image, std::int64_t channels,
                       std::int64_t row);

/// Throws std::invalid_argument for a sigma out of range and where no axis is there.
void check_fir_blur(const FirBlur& blur);

}  // namespace cumulus::recursive_filter
