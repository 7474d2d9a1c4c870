#pragma once

#include <array>
#include <complex>
#include <optional>
#include <span>

namespace cumulus {

/// The most poles that one direction of a filter may have.
inline constexpr int kMaxFilterOrder = 5;

/// Poles lie inside this radius: the decay length is at most about a million pixels.
inline constexpr double kMaxPoleRadius = 0.99999;

/// What the image is taken to be beyond its first and last pixel, without end.
enum class FilterBoundary {
  kZero,     // 0 0 0 | a b c d | 0 0 0
  kClamp,    // a a a | a b c d | d d d
  kRepeat,   // b c d | a b c d | a b c
  kReflect,  // c b a | a b c d | d c b   (half-sample)
  kMirror,   // d c b | a b c d | c b a   (whole-sample)
};

/// A filter in one direction: gain z^-delay prod_k (1 - zeros[k] z^-1) / prod_k (1 - poles[k] z^-1), with
/// delay + zero_count at most the order. Poles are real or come in conjugate pairs, and so do zeros. Order 0:
/// multiplies by `gain`.
struct OneWayFilter {
  int order = 0;
  std::array<std::complex<double>, kMaxFilterOrder> poles{};
  double gain = 1;
  int zero_count = 0;
  std::array<std::complex<double>, kMaxFilterOrder> zeros{};
  int delay = 0;

  bool only_poles() const { return zero_count == 0 && delay == 0; }
  bool operator==(const OneWayFilter&) const = default;
};

/// The filter along one axis: `causal` from the first pixel to the last, then `anticausal`, over the causal
/// result, from the last to the first; both over the signal without end that `boundary` makes of it.
struct AxisFilter {
  OneWayFilter causal;
  OneWayFilter anticausal;
  FilterBoundary boundary = FilterBoundary::kClamp;

  bool operator==(const AxisFilter&) const = default;
};

/// The filter of an image: along y (down the columns) and along x (along the rows). A default AxisFilter
/// leaves its axis as it is.
struct RecursiveFilter {
  AxisFilter y;
  AxisFilter x;

  bool operator==(const RecursiveFilter&) const = default;
};

inline constexpr double kMinSigma = 0.5;
inline constexpr double kMaxSigma = 10000;

/// A Gaussian of standard deviation `sigma` pixels, kMinSigma to kMaxSigma: three poles either way, I. Young,
/// L. van Vliet, M. van Ginkel and P. Verbeek, "Recursive Gaussian derivative filters" (ICPR 1998), the poles
/// of their table for the maximum norm, scaled so that the impulse response has exactly the variance sigma^2.
/// The response sums to 1.
AxisFilter gaussian_filter(double sigma, FilterBoundary boundary);

/// The same Gaussian, or its first or second derivative (`derivative` 0, 1, 2; per pixel, per pixel^2), from
/// four poles either way: R. Deriche, "Recursively implementing the Gaussian and its derivatives" (1993),
/// with coefficients fitted anew (docs/operations/recursive_filter.md has their accuracy). The blur's
/// response sums to 1; the derivatives of constants are 0, the first derivative of a ramp and the second of a
/// parabola are exact.
AxisFilter deriche_filter(double sigma, int derivative, FilterBoundary boundary);

/// The prefilter that turns samples into coefficients of interpolating B-splines of degree 3 or 5 (M. Unser,
/// A. Aldroubi and M. Eden, "B-spline signal processing", 1993): one or two poles either way. The response
/// sums to 1.
AxisFilter bspline_prefilter(int degree, FilterBoundary boundary);

/// y = (1 - decay) x + decay y before, then the same backwards; 0 <= decay <= kMaxPoleRadius.
AxisFilter exponential_filter(double decay, FilterBoundary boundary);

/// causal: y[i] = gain x[i] - sum_k causal[k - 1] y[i - k]; then z[i] = y[i] - sum_k anticausal[k - 1] z[i +
/// k]. Without a gain, the one that leaves a constant image as it is. At most kMaxFilterOrder coefficients
/// either way, all finite; the gain not 0. The poles may lie anywhere: see unstable_pole.
AxisFilter feedback_filter(std::optional<double> gain, std::span<const double> causal,
                           std::span<const double> anticausal, FilterBoundary boundary);

/// A pole outside kMaxPoleRadius, if there is one.
std::optional<std::complex<double>> unstable_pole(const OneWayFilter& filter);

}  // namespace cumulus
