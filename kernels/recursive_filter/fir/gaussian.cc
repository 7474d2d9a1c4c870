#include "kernels/recursive_filter/fir/gaussian.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/core/div.h"

namespace cumulus::recursive_filter {
namespace {

/// A Gaussian at a lower rate takes this many samples in its sigma at least: fewer samples would leave the
/// one between sampling and interpolating too narrow for its grid.
constexpr double kMinSamples = 2;

/// The variance of a low-resolution place given both ends, in its pixels: a grid adds an alias of at most
/// 4e-8, 2 exp(-2 pi^2 v).
constexpr double kPlaceVariance = 0.9;

/// From here on, four taps that stand at kFirCutOff weigh less than kFirTruncation together.
constexpr double kNarrowSigma = 2;

/// What a part's cut-off leaves out of the whole at kFirCutOff sigmas is this far out in what that part is
/// there: 3e-7 of it, and far less nearer by.
constexpr double kPartCutOff = 5;

/// Sampling at every step-th place and interpolating again.
struct Level {
  std::int64_t step = 1;
  double sampling = 1;  // the sigma of both Gaussians, in low-resolution places
  double reach = 8;     // of either, in sigmas
  double rest = 1;      // the sigma of what is left to do between them, in low-resolution places
};

Level make_level(double sigma, std::int64_t step) {
  Level level;
  level.step = step;
  const double samples = sigma / static_cast<double>(step);
  const double variance = samples * samples;
  const double sampling = variance / 2 * (1 - std::sqrt(1 - 4 * kPlaceVariance / variance));
  level.sampling = std::sqrt(sampling);
  level.rest = std::sqrt(variance - 2 * sampling);
  // Where the whole stands at kFirCutOff, its part stands at `share` of that, give or take.
  const double share = level.sampling / samples;
  level.reach = std::min(kFirCutOff, kFirCutOff * share + kPartCutOff * std::sqrt(1 - share * share));
  return level;
}

/// Multiplications of a pixel along both axes.
double direct_work(double sigma) { return 4 * kFirCutOff * sigma; }
double level_work(const Level& level) {
  constexpr double kFurtherLevels = 40;
  const auto step = static_cast<double>(level.step);
  return 4 * level.reach * level.sampling * (1 + 1 / step) +
         std::min(direct_work(level.rest), kFurtherLevels) / (step * step);
}

/// The way of the least work; nothing: a direct sum.
std::optional<Level> best_level(double sigma) {
  std::optional<Level> best;
  for (std::int64_t step = 2; step <= kFirSmallStep && sigma >= kMinSamples * static_cast<double>(step);
       ++step) {
    const Level level = make_level(sigma, step);
    if (!best.has_value() || level_work(level) < level_work(*best)) best = level;
  }
  return best;
}

/// What a line is beyond its ends: the same for ever, or something at each place.
bool is_still_beyond(FilterBoundary boundary) {
  return boundary == FilterBoundary::kZero || boundary == FilterBoundary::kClamp;
}

/// The places of a grid that are there. All that lies beyond is what the boundary says, or is not asked for
/// and there is no boundary: then the places are yet to be found.
struct Signal {
  std::int64_t origin = 0, length = 0;
  std::optional<FilterBoundary> boundary;
};

/// Lines that go on without rest take one large step where small ones would leave more beyond the line than
/// there is in it.
std::optional<Level> level_of(double sigma, const Signal& signal) {
  constexpr double kLongLine = 16;       // sigmas
  constexpr double kWideSamples = 2.45;  // in a sigma
  if (signal.boundary.has_value() && !is_still_beyond(*signal.boundary) &&
      sigma * kLongLine > static_cast<double>(signal.length)) {
    const auto step = static_cast<std::int64_t>(sigma / kWideSamples);
    if (step > kFirSmallStep) return make_level(sigma, step);
  }
  return best_level(sigma);
}

/// The Gaussian of `sigma` around the place of each phase, over less than `reach` places.
FirPass gaussian_pass(double sigma, double reach, std::int64_t phases) {
  FirPass pass;
  const double last_phase = 1 - 1 / static_cast<double>(phases);
  pass.sigma = sigma;
  pass.phases = phases;
  pass.first = 1 - static_cast<std::int64_t>(std::ceil(reach));
  pass.taps = static_cast<std::int64_t>(std::ceil(reach + last_phase)) - pass.first;
  pass.centre = static_cast<double>(pass.first);
  pass.weights.resize(static_cast<std::size_t>(phases * pass.taps));
  for (std::int64_t phase = 0; phase < phases; ++phase) {
    const auto begin = pass.weights.begin() + phase * pass.taps;
    for (std::int64_t tap = 0; tap < pass.taps; ++tap) {
      const double distance =
          static_cast<double>(pass.first + tap) - static_cast<double>(phase) / static_cast<double>(phases);
      begin[tap] = std::exp(-0.5 * (distance / sigma) * (distance / sigma));
    }
    const double sum = std::accumulate(begin, begin + pass.taps, 0.0);
    std::for_each(begin, begin + pass.taps, [sum](double& weight) { weight /= sum; });
    if (phase == 0) pass.scale = 1 / sum;
  }
  return pass;
}

/// What a pass gives: `length` places, the first of them at `origin` of its grid.
struct Places {
  std::int64_t origin, length;
};

/// The sampling of `signal` for `passes`, the places of whose grid it finds where they are not known.
FirPass decimating_pass(const Level& level, const Signal& signal, const Signal& sampled,
                        std::vector<FirPass>& passes) {
  const double sigma = level.sampling * static_cast<double>(level.step);
  FirPass pass = gaussian_pass(sigma, level.reach * sigma, 1);
  pass.advance = level.step;
  pass.out_length = sampled.length;
  std::int64_t origin = sampled.origin;
  if (!sampled.boundary.has_value()) {
    FirPass& next = passes.front();
    origin = std::exchange(next.first, 0);
    pass.out_length = next.in_length = (next.out_length - 1) * next.advance + next.taps;
  }
  pass.first += origin * level.step - signal.origin;
  pass.in_length = signal.length;
  pass.boundary = signal.boundary.value_or(FilterBoundary::kZero);
  return pass;
}

/// What sampling `signal` gives: as far as it says something new.
Signal sample(const Level& level, const Signal& signal) {
  if (!signal.boundary.has_value() || !is_still_beyond(*signal.boundary)) return {};
  const auto reach = static_cast<std::int64_t>(std::ceil(level.reach * level.sampling)) + 1;  // places
  const auto down = [&](std::int64_t at) { return at >= 0 ? at / level.step : -divide_up(-at, level.step); };
  Signal sampled = signal;
  sampled.origin = down(signal.origin) - reach;
  sampled.length = down(signal.origin + signal.length - 1) + 1 + reach - sampled.origin + 1;
  return sampled;
}

/// The passes that give `places` of the Gaussian of `signal`.
std::vector<FirPass> passes_for(double sigma, Places places, const Signal& signal) {
  const std::optional<Level> level = level_of(sigma, signal);
  if (!level.has_value()) {
    // A tap at the very reach counts where it weighs more than kFirTruncation allows.
    const double reach = kFirCutOff * sigma + (sigma < kNarrowSigma ? 1e-9 : 0);
    FirPass pass = gaussian_pass(sigma, reach, 1);
    pass.out_length = places.length;
    pass.first += places.origin - signal.origin;
    pass.in_length = signal.length;
    pass.boundary = signal.boundary.value_or(FilterBoundary::kZero);
    return {std::move(pass)};
  }
  FirPass interpolate = gaussian_pass(level->sampling, level->reach * level->sampling, level->step);
  interpolate.out_length = places.length;
  const Places asked{places.origin / level->step + interpolate.first,
                     divide_up(places.length, level->step) - 1 + interpolate.taps};
  const Signal sampled = sample(*level, signal);
  // Interpolating gives places from a multiple of its own step on.
  std::int64_t before = 0;
  if (const std::optional<Level> next = level_of(level->rest, sampled); next.has_value()) {
    before = (asked.origin % next->step + next->step) % next->step;
  }
  std::vector<FirPass> passes =
      passes_for(level->rest, {asked.origin - before, asked.length + before}, sampled);
  interpolate.first = before;
  interpolate.in_length = passes.back().out_length;
  passes.insert(passes.begin(), decimating_pass(*level, signal, sampled, passes));
  passes.push_back(std::move(interpolate));
  return passes;
}

/// The passes along one axis: the first reads the image's pixels, the last gives them.
std::vector<FirPass> axis_passes(const FirAxis& axis, std::int64_t length) {
  return passes_for(axis.sigma, {0, length}, {0, length, axis.boundary});
}

void check_sigma(const char* name, const std::optional<FirAxis>& axis) {
  if (!axis.has_value() || (axis->sigma >= kMinSigma && axis->sigma <= kMaxSigma)) return;
  throw std::invalid_argument(std::string("fir_gaussian_blur: sigma along ") + name + " is " +
                              std::to_string(axis->sigma) + "; " + std::to_string(kMinSigma) + " to " +
                              std::to_string(kMaxSigma) + " pixels is right");
}

}  // namespace

std::vector<FirStage> plan_fir_stages(const FirBlur& blur, const FirExtents& image) {
  std::vector<FirPass> x, y;
  if (blur.x.has_value()) x = axis_passes(*blur.x, image.width);
  if (blur.y.has_value()) y = axis_passes(*blur.y, image.height);
  // Both lists are of as many samplings, a filter, and as many interpolations. Filters go together, at the
  // lowest rate of both axes, and of the others those first and last.
  const std::size_t levels = std::max(x.size(), y.size()) / 2;
  std::vector<FirStage> stages(2 * levels + 1);
  const auto place = [&](std::vector<FirPass>& passes, std::optional<FirPass> FirStage::*axis) {
    const std::size_t own = passes.size() / 2;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      std::size_t stage = i == own ? levels : i;
      if (i > own) stage = stages.size() - (passes.size() - i);
      stages[stage].*axis = std::move(passes[i]);
    }
  };
  place(y, &FirStage::y);
  place(x, &FirStage::x);
  return stages;
}

bool has_large_steps(const std::vector<FirStage>& stages, const FirExtents& image) {
  constexpr std::int64_t kLongestRow = std::int64_t{1} << 29;
  if (image.width > kLongestRow) return true;
  const auto is_large = [](const std::optional<FirPass>& pass) {
    return pass.has_value() && std::max(pass->phases, pass->advance) > kFirSmallStep;
  };
  return std::any_of(stages.begin(), stages.end(),
                     [&](const FirStage& stage) { return is_large(stage.y) || is_large(stage.x); });
}

std::vector<FirStage> axis_by_axis(const std::vector<FirStage>& stages) {
  std::vector<FirStage> single;
  for (const FirStage& stage : stages) {
    const FirStage along_y{stage.y, {}};
    const FirStage along_x{{}, stage.x};
    const bool rises = stage.x.has_value() && stage.x->phases > 1;
    for (const FirStage& one : rises ? std::array{along_y, along_x} : std::array{along_x, along_y}) {
      if (one.y.has_value() || one.x.has_value()) single.push_back(one);
    }
  }
  return single;
}

std::vector<FirStage> device_stages(const FirBlur& blur, const FirExtents& image) {
  const std::vector<FirStage> stages = plan_fir_stages(blur, image);
  return has_large_steps(stages, image) ? axis_by_axis(stages) : stages;
}

FirScratch fir_scratch(const std::vector<FirStage>& stages, const FirExtents& image, std::int64_t channels) {
  FirScratch scratch;
  FirExtents extents = image;
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
    extents = extents_after(stages[i], extents);
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
