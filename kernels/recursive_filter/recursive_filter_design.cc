#include "kernels/recursive_filter/recursive_filter_design.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace cumulus {
namespace {

using Complex = std::complex<long double>;

/// The response of 1 / prod (1 - pole z^-1) to a constant 1.
double sum_of_response(const FilterPoles& filter) {
  std::complex<long double> product = 1;
  for (int k = 0; k < filter.order; ++k) {
    product *= 1.0L - Complex(filter.poles[static_cast<std::size_t>(k)]);
  }
  return static_cast<double>(1.0L / product.real());
}

AxisFilter symmetric(FilterPoles poles, FilterBoundary boundary) {
  poles.gain = 1 / sum_of_response(poles);
  return {poles, poles, boundary};
}

/// The table's poles, as reciprocals and for a standard deviation near 2, brought to another width.
FilterPoles scaled_gaussian_poles(double width) {
  const auto scaled = [width](std::complex<double> reciprocal) {
    return std::polar(std::pow(std::abs(reciprocal), -1 / width), -std::arg(reciprocal) / width);
  };
  const std::complex<double> pair = scaled({1.41650, 1.00829});
  return {3, {scaled(1.86543), pair, std::conj(pair)}, 1};
}

/// Of the response of the filter and its mirror image: each pole p adds p / (1 - p)^2 either way.
double variance_of(const FilterPoles& filter) {
  std::complex<double> variance = 0;
  for (int k = 0; k < filter.order; ++k) {
    const std::complex<double> pole = filter.poles[static_cast<std::size_t>(k)];
    variance += 2.0 * pole / ((1.0 - pole) * (1.0 - pole));
  }
  return variance.real();
}

/// Roots of z^n + coefficients[0] z^(n-1) + ... + coefficients[n-1], all at once (Weierstrass, Durand,
/// Kerner).
std::vector<Complex> roots_of(std::span<const double> coefficients) {
  const auto value_at = [coefficients](Complex z) {
    Complex value = 1;
    for (const double coefficient : coefficients) value = value * z + static_cast<long double>(coefficient);
    return value;
  };
  long double radius = 0;
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    const auto magnitude = std::abs(static_cast<long double>(coefficients[k]));
    radius = std::max(radius, std::pow(magnitude, 1.0L / static_cast<long double>(k + 1)));
  }
  std::vector<Complex> roots(coefficients.size());
  for (std::size_t k = 0; k < roots.size(); ++k) {
    roots[k] = std::polar(
        radius, 0.7L + 6.283185307L * static_cast<long double>(k) / static_cast<long double>(roots.size()));
  }
  for (int round = 0; round < 500; ++round) {
    long double largest_step = 0;
    for (std::size_t k = 0; k < roots.size(); ++k) {
      Complex others = 1;
      for (std::size_t j = 0; j < roots.size(); ++j) {
        if (j != k) others *= roots[k] - roots[j];
      }
      if (others == Complex(0)) others = 1e-30L;
      const Complex step = value_at(roots[k]) / others;
      roots[k] -= step;
      largest_step = std::max(largest_step, std::abs(step));
    }
    if (largest_step <= 1e-18L * radius) break;
  }
  return roots;
}

/// Rounding leaves roots of real polynomials a little off their conjugates: makes them real or exact pairs
/// again.
FilterPoles paired(std::vector<Complex> roots) {
  FilterPoles filter;
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

FilterPoles poles_of_feedback(std::span<const double> coefficients) {
  if (coefficients.size() > kMaxFilterOrder) {
    throw std::invalid_argument("feedback_filter: " + std::to_string(coefficients.size()) +
                                " coefficients; at most 5 either way are right");
  }
  while (!coefficients.empty() && coefficients.back() == 0)
    coefficients = coefficients.first(coefficients.size() - 1);
  return paired(roots_of(coefficients));
}

void require(bool good, const std::string& text) {
  if (!good) throw std::invalid_argument(text);
}

}  // namespace

AxisFilter gaussian_filter(double sigma, FilterBoundary boundary) {
  require(sigma >= kMinSigma && sigma <= kMaxSigma,
          "gaussian_filter: sigma is " + std::to_string(sigma) + "; 0.5 to 10000 pixels is right");
  double narrow = 0.05;
  double wide = kMaxSigma;
  for (int i = 0; i < 200; ++i) {
    const double middle = (narrow + wide) / 2;
    (variance_of(scaled_gaussian_poles(middle)) < sigma * sigma ? narrow : wide) = middle;
  }
  return symmetric(scaled_gaussian_poles(narrow), boundary);
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

std::optional<std::complex<double>> unstable_pole(const FilterPoles& filter) {
  for (int k = 0; k < filter.order; ++k) {
    const std::complex<double> pole = filter.poles[static_cast<std::size_t>(k)];
    if (!(std::abs(pole) <= kMaxPoleRadius)) return pole;
  }
  return std::nullopt;
}

}  // namespace cumulus
