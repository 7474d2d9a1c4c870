#pragma once

#include <cstdint>
#include <memory>
#include <vector>

// What a wide Gaussian is made of: sampling at a lower rate, perhaps more than once, a filter there, and
// interpolations with the weights that sampled. These are polynomials in z with as few positive weights as
// keep a grid's alias small. Sampled at every step-th place, a signal of the form r^i has aliases at
// r exp(2 pi i k / step): a Gaussian of sigma reaches 8 sigma where signals are as steep as exp(8 / sigma) a
// place, so that the polynomials have their zeros at these angles, at the radii exp(-8 / sigma) to
// exp(8 / sigma) or some less. The filter at the lowest rate is what is left of the Gaussian.

namespace cumulus::recursive_filter {

/// Both are symmetric, of an odd number of positive weights whose sum is 1.
struct FirLevel {
  std::int64_t step = 2;
  std::vector<double> weights;
  double sigma = 0;  // of weights that are a Gaussian's, in places that are sampled; else 0

  std::int64_t reach() const { return static_cast<std::int64_t>(weights.size() / 2); }
};
struct FirDesign {
  std::vector<FirLevel> levels;  // the first samples the image
  std::vector<double> rest;
  double rest_sigma = 0;  // of a Gaussian, else 0
};

/// Of small steps; from a sigma of kFirLevelSigma on there are levels. Found once for each sigma, by any
/// thread.
std::shared_ptr<const FirDesign> design_fir(double sigma);
inline constexpr double kFirLevelSigma = 4;

/// One level of any step, whose weights are a Gaussian's.
FirDesign design_of_gaussians(double sigma, std::int64_t step);

}  // namespace cumulus::recursive_filter
