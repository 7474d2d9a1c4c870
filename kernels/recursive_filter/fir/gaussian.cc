#include "kernels/recursive_filter/fir/gaussian.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/core/div.h"
#include "kernels/recursive_filter/fir/levels.h"

namespace cumulus::recursive_filter {
namespace {

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
std::shared_ptr<const FirDesign> design_of(const FirAxis& axis, std::int64_t length) {
  constexpr double kLongLine = 16;       // sigmas
  constexpr double kWideSamples = 2.45;  // in a sigma
  const auto step = static_cast<std::int64_t>(axis.sigma / kWideSamples);
  if (!is_still_beyond(axis.boundary) && axis.sigma * kLongLine > static_cast<double>(length) &&
      step > kFirSmallStep) {
    return std::make_shared<const FirDesign>(design_of_gaussians(axis.sigma, step));
  }
  return design_fir(axis.sigma);
}

/// A sum of the places around each advance-th.
FirPass plain_pass(const std::vector<double>& weights, std::int64_t advance, double sigma) {
  FirPass pass;
  pass.advance = advance;
  pass.taps = static_cast<std::int64_t>(weights.size());
  pass.first = -(pass.taps / 2);
  pass.sigma = sigma;
  pass.centre = static_cast<double>(pass.first);
  pass.scale = weights[weights.size() / 2];
  pass.weights = weights;
  return pass;
}

/// Gives places between those that `level` sampled.
FirPass interpolating_pass(const FirLevel& level) {
  FirPass pass;
  const std::int64_t reach = level.reach();
  pass.phases = level.step;
  pass.first = -(reach / level.step);
  pass.taps = divide_up(reach, level.step) - pass.first + 1;
  pass.sigma = level.sigma / static_cast<double>(level.step);
  pass.centre = static_cast<double>(pass.first);
  for (std::int64_t phase = 0; phase < level.step; ++phase) {
    std::vector<double> weights;
    for (std::int64_t tap = 0; tap < pass.taps; ++tap) {
      const std::int64_t distance = phase - (pass.first + tap) * level.step;
      const bool is_there = std::abs(distance) <= reach;
      weights.push_back(is_there ? level.weights[static_cast<std::size_t>(reach + distance)] : 0);
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (const double weight : weights) pass.weights.push_back(weight / sum);
    if (phase == 0) pass.scale = weights[static_cast<std::size_t>(-pass.first)] / sum;
  }
  return pass;
}

/// What a pass gives: `length` places, the first of them at `origin` of its grid.
struct Places {
  std::int64_t origin, length;
};

/// The sampling of `signal` for `passes`, the places of whose grid it finds where they are not known.
FirPass decimating_pass(const FirLevel& level, const Signal& signal, const Signal& sampled,
                        std::vector<FirPass>& passes) {
  FirPass pass = plain_pass(level.weights, level.step, level.sigma);
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
Signal sample(const FirLevel& level, const Signal& signal) {
  if (!signal.boundary.has_value() || !is_still_beyond(*signal.boundary)) return {};
  const std::int64_t reach = divide_up(level.reach(), level.step) + 1;  // places
  const auto down = [&](std::int64_t at) { return at >= 0 ? at / level.step : -divide_up(-at, level.step); };
  Signal sampled = signal;
  sampled.origin = down(signal.origin) - reach;
  sampled.length = down(signal.origin + signal.length - 1) + 1 + reach - sampled.origin + 1;
  return sampled;
}

/// The passes that give `places` of what `design`, from its level `at` on, makes of `signal`.
std::vector<FirPass> passes_for(const FirDesign& design, std::size_t at, Places places,
                                const Signal& signal) {
  if (at == design.levels.size()) {
    FirPass pass = plain_pass(design.rest, 1, design.rest_sigma);
    pass.out_length = places.length;
    pass.first += places.origin - signal.origin;
    pass.in_length = signal.length;
    pass.boundary = signal.boundary.value_or(FilterBoundary::kZero);
    return {std::move(pass)};
  }
  const FirLevel& level = design.levels[at];
  FirPass interpolate = interpolating_pass(level);
  interpolate.out_length = places.length;
  const Places asked{places.origin / level.step + interpolate.first,
                     divide_up(places.length, level.step) - 1 + interpolate.taps};
  const Signal sampled = sample(level, signal);
  // Interpolating gives places from a multiple of its own step on.
  std::int64_t before = 0;
  if (at + 1 < design.levels.size()) {
    const std::int64_t next = design.levels[at + 1].step;
    before = (asked.origin % next + next) % next;
  }
  std::vector<FirPass> passes =
      passes_for(design, at + 1, {asked.origin - before, asked.length + before}, sampled);
  interpolate.first = before;
  interpolate.in_length = passes.back().out_length;
  passes.insert(passes.begin(), decimating_pass(level, signal, sampled, passes));
  passes.push_back(std::move(interpolate));
  return passes;
}

/// The passes along one axis: the first reads the image's pixels, the last gives them.
std::vector<FirPass> axis_passes(const FirAxis& axis, std::int64_t length) {
  return passes_for(*design_of(axis, length), 0, {0, length}, {0, length, axis.boundary});
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

namespace {

/// Stages along one axis each; along y first where `y_goes_first` says so of a stage.
template <class Predicate>
std::vector<FirStage> single_axes(const std::vector<FirStage>& stages, const Predicate& y_goes_first) {
  std::vector<FirStage> single;
  for (const FirStage& stage : stages) {
    const FirStage along_y{stage.y, {}};
    const FirStage along_x{{}, stage.x};
    for (const FirStage& one :
         y_goes_first(stage) ? std::array{along_y, along_x} : std::array{along_x, along_y}) {
      if (one.y.has_value() || one.x.has_value()) single.push_back(one);
    }
  }
  return single;
}

}  // namespace

std::vector<FirStage> axis_by_axis(const std::vector<FirStage>& stages) {
  return single_axes(stages,
                     [](const FirStage& stage) { return stage.x.has_value() && stage.x->phases > 1; });
}

std::vector<FirStage> host_stages(const FirBlur& blur, const FirExtents& image, std::int64_t channels) {
  constexpr std::int64_t kMaxRowNumbers = std::int64_t{1} << 18;
  const std::vector<FirStage> stages = plan_fir_stages(blur, image);
  if (has_large_steps(stages, image) || image.width * channels > kMaxRowNumbers) return axis_by_axis(stages);
  return stages;
}

namespace {

/// Whether a stage samples every second pixel by a Gaussian, whose many taps a ring of rows adds up in less
/// time where there is much of the image.
bool goes_in_rings(const FirStage& stage, const FirExtents& image) {
  constexpr std::int64_t kLargeImage = std::int64_t{1} << 24;  // pixels
  const auto samples = [](const std::optional<FirPass>& pass) {
    return pass.has_value() && pass->advance == 2 && pass->sigma > 0;
  };
  return samples(stage.y) && samples(stage.x) && image.height * image.width >= kLargeImage;
}

}  // namespace

std::vector<FirStage> device_stages(const FirBlur& blur, const FirExtents& image, bool of_doubles) {
  const std::vector<FirStage> stages = plan_fir_stages(blur, image);
  if (has_large_steps(stages, image)) return axis_by_axis(stages);
  if (stages.size() == 1 || goes_in_rings(stages.front(), image)) return stages;
  const auto samples = [](const FirStage& stage) { return stage.y.has_value() && stage.y->advance > 1; };
  const std::vector<FirStage> single = single_axes(stages, samples);
  if (of_doubles) return single;
  // Only the filter between goes an axis at a time.
  std::vector<FirStage> device;
  const std::size_t between = stages.size() / 2;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i != between) {
      device.push_back(stages[i]);
      continue;
    }
    const std::vector<FirStage> parts = single_axes({stages[i]}, samples);
    device.insert(device.end(), parts.begin(), parts.end());
  }
  return device;
}

FirScratch fir_scratch(const std::vector<FirStage>& stages, const FirExtents& image, std::int64_t channels,
                       std::int64_t row) {
  FirScratch scratch;
  FirExtents extents = image;
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
    extents = extents_after(stages[i], extents);
    std::int64_t& numbers = i % 2 == 0 ? scratch.even : scratch.odd;
    numbers = std::max(numbers, extents.height * divide_up(extents.width * channels, row) * row);
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
