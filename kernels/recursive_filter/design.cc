#include "kernels/recursive_filter/design.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace cumulus {
namespace {

using Complex = std::complex<long double>;

/// The response of 1 / prod (1 - pole z^-1) to a constant 1.
double sum_of_response(const OneWayFilter& filter) {
  std::complex<long double> product = 1;
  for (int k = 0; k < filter.order; ++k) {
    product *= 1.0L - Complex(filter.poles[static_cast<std::size_t>(k)]);
  }
  return static_cast<double>(1.0L / product.real());
}

AxisFilter symmetric(OneWayFilter poles, FilterBoundary boundary) {
  poles.gain = 1 / sum_of_response(poles);
  return {poles, poles, boundary};
}

/// The table's poles, as reciprocals and for a standard deviation near 2, brought to another width.
OneWayFilter scaled_gaussian_poles(double width) {
  const auto scaled = [width](std::complex<double> reciprocal) {
    return std::polar(std::pow(std::abs(reciprocal), -1 / width), -std::arg(reciprocal) / width);
  };
  const std::complex<double> pair = scaled({1.41650, 1.00829});
  return {3, {scaled(1.86543), pair, std::conj(pair)}, 1};
}

/// Of the response of the filter and its mirror image: each pole p adds p / (1 - p)^2 either way.
double variance_of(const OneWayFilter& filter) {
  std::complex<double> variance = 0;
  for (int k = 0; k < filter.order; ++k) {
    const std::complex<double> pole = filter.poles[static_cast<std::size_t>(k)];
    variance += 2.0 * pole / ((1.0 - pole) * (1.0 - pole));
  }
  return variance.real();
}

#ifdef __SIZEOF_FLOAT128__
__extension__ using Quadruple = __float128;
#else
using Quadruple = long double;  // which has as many bits on the other processors
#endif

template <class Real>
Complex narrowed(const std::complex<Real>& number) {
  return {static_cast<long double>(number.real()), static_cast<long double>(number.imag())};
}

/// Brings all `roots` of z^n + coefficients[0] z^(n-1) + ... + coefficients[n-1] nearer at once (Weierstrass,
/// Durand, Kerner), until steps are `enough` or less.
template <class Real>
void approach_roots(std::span<const double> coefficients, std::vector<std::complex<Real>>& roots, int rounds,
                    long double enough) {
  using Number = std::complex<Real>;
  for (int round = 0; round < rounds; ++round) {
    long double largest_step = 0;
    for (std::size_t k = 0; k < roots.size(); ++k) {
      Number value(1);
      for (const double coefficient : coefficients) value = value * roots[k] + Number(coefficient);
      Number others(1);
      for (std::size_t j = 0; j < roots.size(); ++j) {
        if (j != k) others *= roots[k] - roots[j];
      }
      if (others == Number(0)) others = Number(1e-30);
      const Number step = value / others;
      roots[k] -= step;
      largest_step = std::max(largest_step, std::abs(narrowed(step)));
    }
    if (largest_step <= enough) return;
  }
}

/// A radius that all roots have the order of.
long double radius_of_roots(std::span<const double> coefficients) {
  long double radius = 0;
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    const auto magnitude = std::abs(static_cast<long double>(coefficients[k]));
    radius = std::max(radius, std::pow(magnitude, 1.0L / static_cast<long double>(k + 1)));
  }
  return radius;
}

std::vector<Complex> roots_of(std::span<const double> coefficients) {
  const long double radius = radius_of_roots(coefficients);
  std::vector<Complex> roots(coefficients.size());
  for (std::size_t k = 0; k < roots.size(); ++k) {
    roots[k] = std::polar(
        radius, 0.7L + 6.283185307L * static_cast<long double>(k) / static_cast<long double>(roots.size()));
  }
  approach_roots(coefficients, roots, 500, 1e-18L * radius);
  return roots;
}

/// Moves those of `roots` that noise can have moved, which are those with others close by, to where the sum
/// of all is right.
template <class Real>
void settle_sum(std::span<const double> coefficients, std::vector<std::complex<Real>>& roots) {
  if (roots.empty()) return;
  std::complex<Real> excess(coefficients[0]);
  for (const std::complex<Real>& root : roots) excess += root;
  std::vector<long double> noise;
  long double all = 0;
  for (std::size_t k = 0; k < roots.size(); ++k) {
    long double others = 1;
    for (std::size_t j = 0; j < roots.size(); ++j) {
      if (j != k) others *= std::abs(narrowed(roots[k] - roots[j]));
    }
    noise.push_back(1 / std::max(others, 1e-300L));
    all += noise.back();
  }
  for (std::size_t k = 0; k < roots.size(); ++k) roots[k] -= excess * std::complex<Real>(noise[k] / all);
}

/// The same where roots may lie close together: of five that do, long double finds no more than a fifth of
/// its digits, and filters of their product differ from the coefficients' in the seventh.
std::vector<Complex> close_roots_of(std::span<const double> coefficients) {
  std::vector<Complex> roots = roots_of(coefficients);
  std::vector<std::complex<Quadruple>> finer;
  for (const Complex root : roots) finer.emplace_back(root.real(), root.imag());
  approach_roots(coefficients, finer, 100, 1e-24L * radius_of_roots(coefficients));
  settle_sum(coefficients, finer);
  for (std::size_t k = 0; k < roots.size(); ++k) roots[k] = narrowed(finer[k]);
  return roots;
}

/// Rounding leaves roots of real polynomials a little off their conjugates: makes them real or exact pairs
/// again.
OneWayFilter paired(std::vector<Complex> roots) {
  OneWayFilter filter;
  const auto add = [&filter](Complex pole) {
    filter.poles[static_cast<std::size_t>(filter.order++)] = std::complex<double>(pole);
  };
  while (!roots.empty()) {
    const Complex root = roots.back();
    roots.pop_back();
    const auto partner = std::min_element(roots.begin(), roots.end(), [root](Complex a, Complex b) {
      return std::abs(a - std::conj(root)) < std::abs(b - std::conj(root));
    });
    const long double to_itself = 2 * std::abs(root.imag());
    if (partner == roots.end() || to_itself <= std::abs(*partner - std::conj(root))) {
      add(root.real());
      continue;
    }
    const Complex pole = (root + std::conj(*partner)) / 2.0L;
    roots.erase(partner);
    add(pole);
    add(std::conj(pole));
  }
  return filter;
}

OneWayFilter poles_of_feedback(std::span<const double> coefficients) {
  if (coefficients.size() > kMaxFilterOrder) {
    throw std::invalid_argument("feedback_filter: " + std::to_string(coefficients.size()) +
                                " coefficients; at most 5 either way are right");
  }
  while (!coefficients.empty() && coefficients.back() == 0)
    coefficients = coefficients.first(coefficients.size() - 1);
  return paired(close_roots_of(coefficients));
}

void require(bool good, const std::string& text) {
  if (!good) throw std::invalid_argument(text);
}

void require_sigma(const char* function, double sigma) {
  require(sigma >= kMinSigma && sigma <= kMaxSigma,
          std::string(function) + ": sigma is " + std::to_string(sigma) + "; 0.5 to 10000 pixels is right");
}

// Deriche's filters. One side of a Gaussian of sigma 1, or of its derivative, is about
//
//   (a0 cos w0 x + a1 sin w0 x) e^(-b0 x) + (c0 cos w1 x + c1 sin w1 x) e^(-b1 x) = Re sum_j q_j e^(-s_j x).
//
// Sampled and mirrored (h[-n] = h[n], or -h[n] for the first derivative), its z-transform is brought into two
// factors, one with the poles inside the unit circle and one with their mirror images, so that the filter
// runs as a causal one and an anticausal one over its result. With v = (z - 1) / (z + 1), t = (1 - p) / (1 +
// p) = tanh(s / (2 sigma)) for a pole p = e^(-s / sigma), and V = v^2, it is
//
//   even: (1 - V) sum_j q_j t_j / (t_j^2 - V),    odd: -v sum_j q_j (1 - t_j^2) / (t_j^2 - V),
//
// sums over the poles and their conjugates. A root V of the numerator is a pair of zeros v, -v: one inside
// and one outside the unit circle, or both on it. V is of the size of 1 / (2 sigma)^2, however wide the
// filter, where a polynomial in z would have all its roots at 1.

struct Side {
  Complex amplitudes[2];  // q
  Complex rates[2];       // s
};

/// Fitted anew, to a small maximum error with the right moments: within 2.4e-4, 1.4e-3 and 3.6e-3 of the
/// largest value (Deriche's own least squares: 5.2e-4, 3.6e-3 and 8.5e-3).
constexpr int kGaussianDerivatives = 3;
Side side_of(int derivative) {
  constexpr double kFits[kGaussianDerivatives][8] = {
      // a0, a1, c0, c1, b0, w0, b1, w1
      {1.8136247456506, 4.1505056109001, -0.81385540863284, -0.2689478216502, 1.8534025592243,
       0.59677575061811, 1.7398323150477, 1.9296964086223},
      {-0.75935223087794, -4.733557561652, 0.76034231384018, 0.96796276467986, 1.5581393211017,
       0.64242365048539, 1.508003420197, 2.0282135571864},
      {-1.1029903775102, 4.4572275861965, 0.099507876330909, -1.9874170706796, 1.3302250206086,
       0.65864287563066, 1.2969377326465, 2.0802142509446}};
  const auto& fit = kFits[derivative];
  return {{{fit[0], -fit[1]}, {fit[2], -fit[3]}}, {{fit[4], -fit[5]}, {fit[6], -fit[7]}}};
}

/// The filter in V, but for its gain.
struct DericheFactors {
  std::vector<Complex> poles;    // t, one of each pair of conjugates
  std::vector<Complex> squares;  // the zeros V; without the one at 0 that a second derivative has
};

DericheFactors factor_deriche(double sigma, int derivative) {
  const Side side = side_of(derivative);
  const long double unit = 1 / (2 * static_cast<long double>(sigma));
  DericheFactors factors;
  // Of each pair of conjugates, in units of `unit`: (a - b V) / (c - d V + V^2).
  long double a[2], b[2], c[2], d[2];
  for (int j = 0; j < 2; ++j) {
    const Complex t = std::tanh(side.rates[j] * unit);
    factors.poles.push_back(t);
    const Complex scaled = t / unit;
    const Complex weight = side.amplitudes[j] * (derivative == 1 ? 1.0L - t * t : scaled);
    a[j] = (weight * std::conj(scaled * scaled)).real();
    b[j] = weight.real();
    c[j] = std::norm(scaled * scaled);
    d[j] = 2 * (scaled * scaled).real();
  }
  long double numerator[4] = {};
  for (int j = 0; j < 2; ++j) {
    const int other = 1 - j;
    numerator[0] += a[j] * c[other];
    numerator[1] -= a[j] * d[other] + b[j] * c[other];
    numerator[2] += a[j] + b[j] * d[other];
    numerator[3] -= b[j];
  }
  const int lowest = derivative == 2 ? 1 : 0;  // the fit's numerator[0] is nearly 0, ours exactly
  std::vector<double> monic;
  for (int k = 2; k >= lowest; --k) monic.push_back(static_cast<double>(numerator[k] / numerator[3]));
  for (const Complex root : roots_of(monic)) factors.squares.push_back(root * unit * unit);
  return factors;
}

/// (1 - v) / (1 + v): a pole or zero in z of its v.
Complex from_v(Complex v) { return (1.0L - v) / (1.0L + v); }

void add_zero(OneWayFilter& filter, Complex zero) {
  filter.zeros[static_cast<std::size_t>(filter.zero_count++)] = std::complex<double>(zero);
}

/// Zeros +-v go to either side, one each where they are inside and outside the unit circle, both to the side
/// with fewer where they are on it.
void share_zeros(const std::vector<Complex>& squares, OneWayFilter& causal, OneWayFilter& anticausal) {
  for (const Complex square : squares) {
    if (std::abs(square.imag()) > 1e-12L * std::abs(square) || square.real() >= 0) {
      const Complex zero = from_v(std::sqrt(square));
      add_zero(causal, zero);
      add_zero(anticausal, zero);
      continue;
    }
    OneWayFilter& fewer = causal.zero_count <= anticausal.zero_count ? causal : anticausal;
    const Complex v(0, std::sqrt(-square.real()));
    add_zero(fewer, from_v(v));
    add_zero(fewer, from_v(-v));
  }
}

/// Powers (1 + z^-1)^causal_excess and (1 + z)^anticausal_excess, of which one may be negative: 1 + z^-1 is
/// z^-1 times 1 + z.
void add_zeros_at_minus_one(int causal_excess, int anticausal_excess, OneWayFilter& causal,
                            OneWayFilter& anticausal) {
  for (; causal_excess < 0; ++causal_excess, --anticausal_excess) ++anticausal.delay;
  for (; anticausal_excess < 0; ++anticausal_excess, --causal_excess) ++causal.delay;
  for (int k = 0; k < causal_excess; ++k) add_zero(causal, -1);
  for (int k = 0; k < anticausal_excess; ++k) add_zero(anticausal, -1);
}

/// The response to a constant without gain and without the zeros at 1.
double rest_at_one(const OneWayFilter& filter) {
  Complex zeros = 1;
  for (int k = 0; k < filter.zero_count; ++k) {
    const Complex zero(filter.zeros[static_cast<std::size_t>(k)]);
    if (zero != Complex(1)) zeros *= 1.0L - zero;
  }
  return static_cast<double>(zeros.real()) * sum_of_response(filter);
}

}  // namespace

AxisFilter gaussian_filter(double sigma, FilterBoundary boundary) {
  require_sigma("gaussian_filter", sigma);
  double narrow = 0.05;
  double wide = kMaxSigma;
  for (int i = 0; i < 200; ++i) {
    const double middle = (narrow + wide) / 2;
    (variance_of(scaled_gaussian_poles(middle)) < sigma * sigma ? narrow : wide) = middle;
  }
  return symmetric(scaled_gaussian_poles(narrow), boundary);
}

AxisFilter deriche_filter(double sigma, int derivative, FilterBoundary boundary) {
  require_sigma("deriche_filter", sigma);
  require(derivative >= 0 && derivative < kGaussianDerivatives,
          "deriche_filter: the derivative is " + std::to_string(derivative) + "; 0, 1 or 2 is right");
  const DericheFactors factors = factor_deriche(sigma, derivative);
  OneWayFilter causal;
  for (const Complex v : factors.poles) {
    for (const Complex pole : {from_v(v), std::conj(from_v(v))}) {
      causal.poles[static_cast<std::size_t>(causal.order++)] = std::complex<double>(pole);
    }
  }
  OneWayFilter anticausal = causal;
  share_zeros(factors.squares, causal, anticausal);
  // As (1 - z) is a derivative's sign away from z - 1, so is (1 - z) (1 - z^-1) from z - 2 + z^-1.
  double sign = 1;
  int powers = 3;  // of 1 + z^-1 and of 1 + z: four of the poles, less one of 1 - V, or of v's denominator
  if (derivative > 0) {
    add_zero(anticausal, 1);
    sign = -1;
  }
  if (derivative == 2) add_zero(causal, 1);
  if (derivative == 1) powers = 4;
  add_zeros_at_minus_one(powers - causal.zero_count, powers - anticausal.zero_count, causal, anticausal);
  causal.gain = 1 / rest_at_one(causal);
  anticausal.gain = sign / rest_at_one(anticausal);
  return {causal, anticausal, boundary};
}

AxisFilter bspline_prefilter(int degree, FilterBoundary boundary) {
  require(degree == 3 || degree == 5, "bspline_prefilter: the degree is " + std::to_string(degree) +
                                          "; 3 (cubic) or 5 (quintic) is right");
  if (degree == 3) return symmetric({1, {std::sqrt(3.0) - 2}, 1}, boundary);
  const double first = std::sqrt(67.5 - std::sqrt(4436.25)) + std::sqrt(26.25) - 6.5;
  const double second = std::sqrt(67.5 + std::sqrt(4436.25)) - std::sqrt(26.25) - 6.5;
  return symmetric({2, {first, second}, 1}, boundary);
}

AxisFilter exponential_filter(double decay, FilterBoundary boundary) {
  require(decay >= 0 && decay <= kMaxPoleRadius,
          "exponential_filter: the decay is " + std::to_string(decay) + "; 0 to 0.99999 is right");
  return symmetric({1, {decay}, 1}, boundary);
}

AxisFilter feedback_filter(std::optional<double> gain, std::span<const double> causal,
                           std::span<const double> anticausal, FilterBoundary boundary) {
  require(!gain.has_value() || (std::isfinite(*gain) && *gain != 0),
          "feedback_filter: the gain is " + std::to_string(gain.value_or(0)) +
              "; a finite number other than 0 is right");
  for (const auto coefficients : {causal, anticausal}) {
    require(std::all_of(coefficients.begin(), coefficients.end(), [](double c) { return std::isfinite(c); }),
            "feedback_filter: a coefficient is NaN or infinite; finite coefficients are right");
  }
  AxisFilter filter{poles_of_feedback(causal), poles_of_feedback(anticausal), boundary};
  const double sum = sum_of_response(filter.causal) * sum_of_response(filter.anticausal);
  filter.causal.gain = gain.value_or(1 / sum);
  return filter;
}

std::optional<std::complex<double>> unstable_pole(const OneWayFilter& filter) {
  for (int k = 0; k < filter.order; ++k) {
    const std::complex<double> pole = filter.poles[static_cast<std::size_t>(k)];
    if (!(std::abs(pole) <= kMaxPoleRadius)) return pole;
  }
  return std::nullopt;
}

}  // namespace cumulus
