#include "kernels/recursive_filter/fir/levels.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <map>
#include <mutex>
#include <numbers>
#include <numeric>

#include "kernels/recursive_filter/fir/gaussian.h"

namespace cumulus::recursive_filter {
namespace {

constexpr double kPi = std::numbers::pi;

/// Of a place's variance given both ends of a Gaussian: a grid adds an alias of 2 exp(-2 pi^2 v), 4e-8.
constexpr double kPlaceVariance = 0.9;

/// What a part's cut-off leaves out of the whole at kFirCutOff sigmas is this far out in what that part is
/// there: 3e-7 of it, and far less nearer by.
constexpr double kPartCutOff = 5;

/// From here on, four taps that stand at kFirCutOff weigh less than kFirTruncation together.
constexpr double kNarrowSigma = 2;

/// From so many places in the whole's sigma on, polynomials sample it at every second, third, fourth.
constexpr double kSecond = 5.25, kThird = 8, kFourth = 11;

/// What a polynomial leaves of an alias at most, in steep signals, up to kSteep / sigma a place. Beyond, the
/// alias may grow: it is of weights that are below exp(-kSteep^2 / 2).
constexpr double kAlias = 7e-9;
constexpr double kSteep = 5.9;

void normalize(std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
}

/// Also makes them symmetric to the last bit.
std::vector<double> symmetric(std::vector<double> weights) {
  for (std::size_t i = 0, k = weights.size() - 1; i < k; ++i, --k) {
    weights[i] = weights[k] = (weights[i] + weights[k]) / 2;
  }
  normalize(weights);
  return weights;
}

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(a.size() + b.size() - 1);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < b.size(); ++k) result[i + k] += a[i] * b[k];
  }
  return result;
}

/// In z^2.
std::vector<double> spread(const std::vector<double>& weights) {
  std::vector<double> result(2 * weights.size() - 1);
  for (std::size_t i = 0; i < weights.size(); ++i) result[2 * i] = weights[i];
  return result;
}

/// Logarithms of the radii of `count` zeros, as Chebyshev's lie, up to `most`.
std::vector<double> radii(int count, double most) {
  std::vector<double> result;
  for (int i = 0; i < count; ++i) {
    result.push_back(2 * std::atanh(std::tanh(most / 2) * std::cos(kPi * (2 * i + 1) / (2 * count))));
  }
  return result;
}

/// What zeros at one angle leave of an alias there: at exp(pi i), or of pairs at exp(2 pi i / 3).
double alias_of(const std::vector<double>& zeros, bool pairs, double most) {
  constexpr int kSignals = 200;
  double worst = 0;
  for (int i = 0; i <= kSignals; ++i) {
    double left = 1;
    for (const double zero : zeros) {
      const double u = std::exp(most * i / kSignals - zero);
      left *= std::abs(u - 1) / (pairs ? std::sqrt(u * u + u + 1) : u + 1);
    }
    worst = std::max(worst, left);
  }
  return worst;
}

/// Of the fewest zeros whose number is `stride` times a whole one, at exp(pi i), or pairs of them at
/// exp(+-2 pi i / 3).
std::vector<double> polynomial(double sigma, bool pairs, int stride) {
  constexpr double kSteepestZero = 5.7;
  std::vector<double> zeros;
  for (int count = 4; zeros.empty() || alias_of(zeros, pairs, kSteep / sigma) > kAlias; count += stride) {
    zeros = radii(count, kSteepestZero / sigma);
  }
  std::vector<double> weights = {1};
  for (const double zero : zeros) {
    const double r = std::exp(-zero);
    weights = product(weights, pairs ? std::vector<double>{1, r, r * r} : std::vector<double>{1, r});
    normalize(weights);
  }
  return symmetric(weights);
}

std::vector<double> gaussian(double sigma, double reach) {
  const auto last = static_cast<std::int64_t>(std::ceil(reach)) - 1;
  std::vector<double> weights;
  for (std::int64_t at = -last; at <= last; ++at) {
    const double distance = static_cast<double>(at) / sigma;
    weights.push_back(std::exp(-0.5 * distance * distance));
  }
  normalize(weights);
  return weights;
}

/// The Gaussian to filter with between sampling and interpolating with one, too.
struct GaussianLevel {
  FirLevel level;
  double rest;  // its sigma, in low-resolution places
};
GaussianLevel gaussian_level(double sigma, std::int64_t step) {
  const double samples = sigma / static_cast<double>(step);
  const double variance = samples * samples;
  const double sampling = variance / 2 * (1 - std::sqrt(1 - 4 * kPlaceVariance / variance));
  // Where the whole stands at kFirCutOff, its part stands at `share` of that, give or take.
  const double share = std::sqrt(sampling) / samples;
  const double reach = std::min(kFirCutOff, kFirCutOff * share + kPartCutOff * std::sqrt(1 - share * share));
  GaussianLevel made;
  made.level.step = step;
  made.level.sigma = std::sqrt(sampling) * static_cast<double>(step);
  made.level.weights = gaussian(made.level.sigma, reach * made.level.sigma);
  made.rest = std::sqrt(variance - 2 * sampling);
  return made;
}

FirLevel polynomial_level(double sigma) {
  if (sigma < kThird) return {2, polynomial(sigma, false, 2)};
  if (sigma < kFourth) return {3, polynomial(sigma, true, 1)};
  // Of the zeros for every second place, and in z^2 of those for every second of these.
  const std::vector<double> second = spread(polynomial(sigma / 2, false, 1));
  return {4, symmetric(product(polynomial(sigma, false, 2), second))};
}

using Complex = std::complex<double>;

/// What is left of a Gaussian beside its levels, by an integral over frequencies below the lowest rate's, for
/// each place among the signals that are as steep as those it counts for: there nothing cancels.
class Rest {
 public:
  Rest(double sigma, const std::vector<FirLevel>& levels)
      : variance_(sigma * sigma), rest_variance_(variance_), levels_(levels) {
    for (const FirLevel& level : levels) {
      steps_.push_back(whole_step_);
      whole_step_ *= static_cast<double>(level.step);
      rest_variance_ -= moments(level, steps_.back(), 0).variance;
    }
  }

  std::vector<double> weights() const {
    const double reach = kFirCutOff * rest_variance_ / std::sqrt(variance_) / whole_step_ + 2;
    const auto last = static_cast<std::int64_t>(std::ceil(reach));
    std::vector<double> result(static_cast<std::size_t>(2 * last + 1));
    for (std::int64_t at = 0; at <= last; ++at) {
      const double weight = weight_at(static_cast<double>(at) * whole_step_);
      result[static_cast<std::size_t>(last - at)] = result[static_cast<std::size_t>(last + at)] = weight;
    }
    normalize(result);
    return result;
  }

 private:
  struct Moments {
    double logarithm, mean, variance;  // of sampling and interpolating
  };
  /// In signals of the slope `steep`.
  static Moments moments(const FirLevel& level, double place, double steep) {
    double sum = 0, first = 0, second = 0;
    for (std::int64_t i = -level.reach(); i <= level.reach(); ++i) {
      const double at = static_cast<double>(i) * place;
      const double weight = level.weights[static_cast<std::size_t>(i + level.reach())] * std::exp(at * steep);
      sum += weight;
      first += weight * at;
      second += weight * at * at;
    }
    const double mean = first / sum;
    return {2 * std::log(sum), 2 * mean, 2 * (second / sum - mean * mean)};
  }
  Moments moments(double steep) const {
    Moments all{};
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      const Moments one = moments(levels_[k], steps_[k], steep);
      all.logarithm += one.logarithm;
      all.mean += one.mean;
      all.variance += one.variance;
    }
    return all;
  }

  /// The product of the levels' polynomials, squared, at exp(z).
  Complex polynomials(Complex z) const {
    Complex all = 1;
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      const Complex step = std::exp(z * steps_[k]);
      const std::vector<double>& weights = levels_[k].weights;
      Complex value = 0;
      for (std::size_t i = weights.size(); i-- > 0;) value = value * step + weights[i];
      value *= std::exp(-z * steps_[k] * static_cast<double>(levels_[k].reach()));
      all *= value * value;
    }
    return all;
  }

  /// `at` pixels from the middle, but for a factor that all have.
  double weight_at(double at) const {
    constexpr int kFrequencies = 64;
    double steep = at / rest_variance_;
    Moments here = moments(steep);
    for (int i = 0; i < 3; ++i) {
      steep -= (variance_ * steep - here.mean - at) / (variance_ - here.variance);
      here = moments(steep);
    }
    double sum = 0;
    for (int i = 0; i < kFrequencies; ++i) {
      const Complex z(steep, (i + 0.5) / kFrequencies * kPi / whole_step_);
      sum += (std::exp(variance_ / 2 * (z * z - steep * steep) - Complex(0, z.imag() * at) + here.logarithm) /
              polynomials(z))
                 .real();
    }
    return sum * std::exp(variance_ / 2 * steep * steep - here.logarithm - steep * at);
  }

  double variance_, rest_variance_;
  double whole_step_ = 1;
  const std::vector<FirLevel>& levels_;
  std::vector<double> steps_;  // of each level's places, in pixels
};

FirDesign make_design(double sigma) {
  FirDesign design;
  if (sigma < kFirLevelSigma) {
    // A tap at the very reach counts where it weighs more than kFirTruncation allows.
    design.rest = gaussian(sigma, kFirCutOff * sigma + (sigma < kNarrowSigma ? 1e-9 : 0));
    design.rest_sigma = sigma;
    return design;
  }
  if (sigma < kSecond) return design_of_gaussians(sigma, 2);
  for (double places = sigma; places >= kSecond; places /= static_cast<double>(design.levels.back().step)) {
    design.levels.push_back(polynomial_level(places));
  }
  design.rest = Rest(sigma, design.levels).weights();
  return design;
}

}  // namespace

std::shared_ptr<const FirDesign> design_fir(double sigma) {
  constexpr std::size_t kMaxDesigns = 256;
  static std::mutex mutex;
  static std::map<double, std::shared_ptr<const FirDesign>> designs;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<const FirDesign> design = designs[sigma];
  if (design == nullptr) {
    if (designs.size() > kMaxDesigns) designs.clear();
    design = designs[sigma] = std::make_shared<const FirDesign>(make_design(sigma));
  }
  return design;
}

FirDesign design_of_gaussians(double sigma, std::int64_t step) {
  GaussianLevel made = gaussian_level(sigma, step);
  return {{std::move(made.level)}, gaussian(made.rest, kFirCutOff * made.rest), made.rest};
}

}  // namespace cumulus::recursive_filter
