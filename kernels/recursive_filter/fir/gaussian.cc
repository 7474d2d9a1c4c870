#include "kernels/recursive_filter/fir/gaussian.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/core/div.h"

namespace cumulus::recursive_filter {
namespace {

/// Where sampling at every second pixel takes fewer multiplications.
constexpr double kLargestDirectSigma = 5;

/// Low-resolution samples in a sigma, and of these in the Gaussians that sample and interpolate: the alias is
/// then at most 3e-7 (2 exp(-2 pi^2 v) for each of the nearest frequencies, v the variance of a
/// low-resolution place given both ends).
constexpr double kSamplesPerSigma = 2.45;
constexpr double kSamplingSigma = 1;

/// The Gaussian of `sigma` around the place of each phase, `places` long and `before` places of it before the
/// first phase's centre; each phase sums to 1.
FirPass gaussian_pass(double sigma, std::int64_t phases) {
  FirPass pass;
  const auto reach = static_cast<std::int64_t>(std::floor(kFirCutOff * sigma));
  const double last_phase = 1 - 1 / static_cast<double>(phases);
  pass.phases = phases;
  pass.first = -reach;
  pass.taps = reach + static_cast<std::int64_t>(std::floor(kFirCutOff * sigma + last_phase)) + 1;
  pass.sigma = sigma;
  pass.centre = static_cast<double>(pass.first);
  pass.weights.resize(static_cast<std::size_t>(phases * pass.taps));
  for (std::int64_t phase = 0; phase < phases; ++phase) {
    const auto begin = pass.weights.begin() + phase * pass.taps;
    for (std::int64_t tap = 0; tap < pass.taps; ++tap) {
      const double distance =
          pass.centre + static_cast<double>(tap) - static_cast<double>(phase) / static_cast<double>(phases);
      begin[tap] = std::exp(-0.5 * (distance / sigma) * (distance / sigma));
    }
    const double sum = std::accumulate(begin, begin + pass.taps, 0.0);
    std::for_each(begin, begin + pass.taps, [sum](double& weight) { weight /= sum; });
    if (phase == 0) pass.scale = 1 / sum;
  }
  return pass;
}

/// The passes along one axis: the first reads the image's pixels, the last gives them.
std::vector<FirPass> axis_passes(const FirAxis& axis, std::int64_t length, bool along_x) {
  std::vector<FirPass> passes;
  if (axis.sigma < kLargestDirectSigma) {
    passes = {gaussian_pass(axis.sigma, 1)};
    passes[0].in_length = passes[0].out_length = length;
  } else {
    const auto step = static_cast<std::int64_t>(axis.sigma / kSamplesPerSigma);
    const double samples = axis.sigma / static_cast<double>(step);
    FirPass decimate = gaussian_pass(kSamplingSigma * static_cast<double>(step), 1);
    FirPass smooth = gaussian_pass(std::sqrt(samples * samples - 2 * kSamplingSigma * kSamplingSigma), 1);
    FirPass interpolate = gaussian_pass(kSamplingSigma, step);
    // Each pass gives what the next one reaches, beside the line as far as that goes.
    interpolate.out_length = length;
    smooth.out_length = divide_up(length, step) - 1 + interpolate.taps;
    decimate.out_length = smooth.out_length + smooth.taps - 1;
    decimate.first += step * (interpolate.first + smooth.first);
    smooth.first = interpolate.first = 0;
    decimate.advance = step;
    decimate.in_length = length;
    smooth.in_length = decimate.out_length;
    interpolate.in_length = smooth.out_length;
    passes = {std::move(decimate), std::move(smooth), std::move(interpolate)};
  }
  passes[0].boundary = axis.boundary;
  for (FirPass& pass : passes) pass.along_x = along_x;
  return passes;
}

void check_sigma(const char* name, const std::optional<FirAxis>& axis) {
  if (!axis.has_value() || (axis->sigma >= kMinSigma && axis->sigma <= kMaxSigma)) return;
  throw std::invalid_argument(std::string("fir_gaussian_blur: sigma along ") + name + " is " +
                              std::to_string(axis->sigma) + "; " + std::to_string(kMinSigma) + " to " +
                              std::to_string(kMaxSigma) + " pixels is right");
}

}  // namespace

std::vector<FirPass> plan_fir_passes(const FirBlur& blur, std::int64_t height, std::int64_t width) {
  std::vector<FirPass> x, y;
  if (blur.x.has_value()) x = axis_passes(*blur.x, width, true);
  if (blur.y.has_value()) y = axis_passes(*blur.y, height, false);
  // Along x outside, along y within: what lies between is small, and the image's rows are read and written
  // in order.
  std::vector<FirPass> passes;
  if (!x.empty()) passes.push_back(std::move(x.front()));
  passes.insert(passes.end(), y.begin(), y.end() - (y.size() > 1 ? 1 : 0));
  if (x.size() > 1) passes.push_back(std::move(x[1]));
  if (y.size() > 1) passes.push_back(std::move(y.back()));
  if (x.size() > 1) passes.push_back(std::move(x.back()));
  return passes;
}

FirScratch fir_scratch(const std::vector<FirPass>& passes, const FirExtents& image, std::int64_t channels) {
  FirScratch scratch;
  FirExtents extents = image;
  for (std::size_t i = 0; i + 1 < passes.size(); ++i) {
    extents = extents_after(passes[i], extents);
    std::int64_t& numbers = i % 2 == 0 ? scratch.even : scratch.odd;
    numbers = std::max(numbers, extents.height * extents.width * channels);
  }
  return scratch;
}

void check_fir_blur(const FirBlur& blur) {
  check_sigma("y", blur.y);
  check_sigma("x", blur.x);
  if (!blur.y.has_value() && !blur.x.has_value()) {
    throw std::invalid_argument("fir_gaussian_blur: has no axis; a Gaussian along one at least is right");
  }
}

}  // namespace cumulus::recursive_filter
