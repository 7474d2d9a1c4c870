#include "kernels/recursive_filter/recursive_filter.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/harness/bench.h"
#include "bench/operations/recursive_filter_fir.h"
#include "bench/operations/recursive_filter_normalize.h"
#include "bench/operations/recursive_filter_window.h"
#include "kernels/core/non_finite.h"
#include "tests/cases/recursive_filter_case.h"

namespace cumulus::bench {
namespace {

using testing::FilterImage;
using testing::FilterPattern;
using testing::FilterShape;
using Method = RecursiveFilterMethod;

struct Variant {
  std::string name;
  RecursiveFilter filter;
  /// Looks for NaN and infinity before it filters, as a service's calls do that do not say otherwise.
  bool looks = false;

  Variant looking() const { return {name, filter, true}; }
};

/// The filters that one after another make the whole.
using Steps = std::vector<RecursiveFilter>;

/// Each axis by itself: with tiles, algorithm 4 of Nehab et al. (2011).
Steps axis_by_axis(const RecursiveFilter& filter) { return {{filter.y, {}}, {{}, filter.x}}; }

/// Each direction of each axis by itself: with tiles, their algorithm 2. Near the borders it is another
/// filter, as the anticausal direction does not see what the causal one leaves beyond the image.
Steps direction_by_direction(const RecursiveFilter& filter) {
  Steps steps;
  for (const RecursiveFilter& axis : axis_by_axis(filter)) {
    for (const bool causal : {true, false}) {
      RecursiveFilter step = axis;
      for (AxisFilter* one : {&step.y, &step.x}) (causal ? one->anticausal : one->causal) = {};
      steps.push_back(step);
    }
  }
  return steps;
}

struct Size {
  std::int64_t height, width;
  std::int64_t channels = 1;
  std::int64_t images = 1;

  Size(std::int64_t side, std::int64_t of_channels = 1)  // NOLINT(google-explicit-constructor)
      : Size(side, side, of_channels) {}
  Size(std::int64_t of_height, std::int64_t of_width, std::int64_t of_channels, std::int64_t count = 1)
      : height(of_height), width(of_width), channels(of_channels), images(count) {}
  std::string name() const {
    std::string extents = std::to_string(height) + "x" + std::to_string(width);
    if (channels > 1) extents.append("x").append(std::to_string(channels));
    return images == 1 ? extents : extents + "-batch" + std::to_string(images);
  }
};

/// Noise; the last one is kept, as a large one takes longer to make than to filter.
const FilterImage& random_image(FilterShape shape) {
  static FilterImage image{};
  if (describe(image.shape) != describe(shape)) image = make_filter_image(shape, FilterPattern::kRandom);
  return image;
}

template <class T>
std::vector<T> repeated(const std::vector<T>& once, std::int64_t times) {
  std::vector<T> all;
  all.reserve(once.size() * static_cast<std::size_t>(times));
  for (std::int64_t i = 0; i < times; ++i) all.insert(all.end(), once.begin(), once.end());
  return all;
}

/// One filter of one image, or of several that are alike. `label` says how, between slashes, where that is
/// not the usual way.
template <class T, class Executor>
void bench_filter(Runner<Executor>& runner, const Variant& variant, const std::string& label,
                  const Size& size, const Steps& steps, const RecursiveFilterChoice& choice = {}) {
  constexpr Space kSpace = Executor::kSpace;
  const std::string name = "recursive_filter/" + variant.name + label + size.name();
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const auto [height, width, channels, images] = size;
  const FilterShape shape{height, width, channels};
  FilterImage image = random_image(shape);
  const std::size_t elements = image.elements.size() * static_cast<std::size_t>(images);
  const Array<T, Executor> pixels(executor, repeated(testing::elements_as<T>(image), images));
  const Array<T, Executor> result(executor, elements);
  const Array<T, Executor> other(executor, steps.size() > 1 ? elements : 1);
  const auto view_of = [&, height = height, width = width, channels = channels,
                        images = images]<class E>(E* first) {
    return FilterImages<E, kSpace>(ImageView<E, kSpace>(first, height, width, channels), images);
  };
  const FilterImages<const T, kSpace> view = view_of(static_cast<const T*>(pixels.data()));
  std::size_t scratch_bytes = 0;
  for (const RecursiveFilter& step : steps) {
    scratch_bytes = std::max(scratch_bytes, apply_recursive_filter_scratch_bytes<T, kSpace>(
                                                view, step, executor.numbers(), choice));
  }
  RecursiveFilterRun done{};
  const ReportMemory<NonFinite, Executor> non_finite;
  const auto run = [&] {
    const T* source = pixels.data();
    if (variant.looks) find_non_finite<T>(executor, {source, elements}, *non_finite.get());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      T* target = (steps.size() - i) % 2 == 1 ? result.data() : other.data();
      executor.reuse_scratch();
      done = apply_recursive_filter<T>(executor, view_of(source), steps[i], view_of(target), choice);
      source = target;
    }
  };
  const bool whole = height * width <= 512 * 512;
  runner.measure({
      .name = name,
      .bytes = testing::recursive_filter_bytes<T>(shape) * static_cast<std::size_t>(images),
      .items = static_cast<double>(height * width * images),
      .unit = "pixels",
      .scratch_bytes = scratch_bytes,
      .run = run,
      .verify =
          [&] {
            const std::vector<T> last =
                result.to_host(elements - image.elements.size(), image.elements.size());
            return verify_window(image, variant.filter, last, done.truncation_bound);
          },
      .verified_by = whole ? "serial oracle, every pixel" : "serial oracle, a window in the middle",
  });
}

constexpr std::int64_t kPictures[][2] = {{1080, 1920}, {1024, 2048}, {2048, 2048},
                                         {2160, 3840}, {2048, 4096}, {4096, 8192}};

/// What users send: pictures and lat-long maps of 1, 3 and 4 channels, by what is chosen and by each method.
template <class T, class Executor>
void bench_pictures(Runner<Executor>& runner, const Variant& variant, const std::string& type) {
  const std::pair<std::string, Method> methods[] = {
      {"", Method::kAutomatic}, {"tiled/", Method::kTiled}, {"decaying/", Method::kDecaying}};
  for (const auto& [height, width] : kPictures) {
    for (const std::int64_t channels : {1, 3, 4}) {
      for (const auto& [name, method] : methods) {
        if (method != Method::kAutomatic && !std::is_same_v<Executor, CudaExecutor>) continue;
        bench_filter<T>(runner, variant, "/pictures/" + type + name, {height, width, channels},
                        {variant.filter}, method);
      }
    }
  }
}

/// The blur that is the default, of each sigma; as a kernel, and as the service calls it.
template <class Executor>
void bench_default_blurs(Runner<Executor>& runner) {
  std::vector<Variant> variants;
  for (const int sigma : {2, 8, 32, 64, 1000}) {
    const AxisFilter clamp = deriche_filter(sigma, 0, FilterBoundary::kClamp);
    const std::string name = "deriche-" + std::to_string(sigma);
    variants.push_back({name + "-clamp", {clamp, clamp}});
    if (sigma <= 64) {
      variants.push_back({name + "-map", {clamp, deriche_filter(sigma, 0, FilterBoundary::kRepeat)}});
    }
  }
  for (const auto& [height, width] : kPictures) {
    for (const std::int64_t channels : {1, 3, 4}) {
      const Size size(height, width, channels);
      for (const Variant& variant : variants) {
        if (variant.name != "deriche-8-clamp") {
          bench_filter<float>(runner, variant, "/pictures/", size, {variant.filter});
          bench_filter<Float16>(runner, variant, "/pictures/half/", size, {variant.filter});
        }
        bench_filter<float>(runner, variant.looking(), "/pictures/refuse/", size, {variant.filter});
        bench_filter<Float16>(runner, variant.looking(), "/pictures/refuse/half/", size, {variant.filter});
      }
    }
  }
}

/// Pictures that strips do not filter: a boundary, a width or a decay length that they do not take; by what
/// is chosen and by tiles. And batches.
template <class Executor>
void bench_other_pictures(Runner<Executor>& runner) {
  const auto both = [](const AxisFilter& axis) { return RecursiveFilter{axis, axis}; };
  const std::vector<double> five = {-0.5, 0.1, -0.2, 0.05, 0.1};
  const Variant map{
      "gaussian-8-map",
      {gaussian_filter(8, FilterBoundary::kClamp), gaussian_filter(8, FilterBoundary::kRepeat)}};
  const Variant mirror{"gaussian-8-mirror", both(gaussian_filter(8, FilterBoundary::kMirror))};
  const Variant young{"gaussian-8-clamp", both(gaussian_filter(8, FilterBoundary::kClamp))};
  const Variant variants[] = {
      mirror,
      {"deriche-8-mirror", both(deriche_filter(8, 0, FilterBoundary::kMirror))},
      {"gaussian-15-clamp", both(gaussian_filter(15, FilterBoundary::kClamp))},
      {"gaussian-32-clamp", both(gaussian_filter(32, FilterBoundary::kClamp))},
      {"deriche-32-clamp", both(deriche_filter(32, 0, FilterBoundary::kClamp))},
      {"five-poles-clamp", both(feedback_filter(0.4, five, five, FilterBoundary::kClamp))},
  };
  constexpr std::int64_t kExtents[][2] = {{1080, 1920}, {1024, 2048}, {2048, 2048}};
  for (const std::int64_t channels : {1, 3, 4}) {
    bench_filter<float>(runner, map, "/pictures/", {1000, 2000, channels}, {map.filter});
    for (const auto& [height, width] : kExtents) {
      for (const Variant& variant : variants) {
        bench_filter<float>(runner, variant, "/pictures/", {height, width, channels}, {variant.filter});
        if (!std::is_same_v<Executor, CudaExecutor>) continue;
        bench_filter<float>(runner, variant, "/pictures/tiled/", {height, width, channels}, {variant.filter},
                            Method::kTiled);
      }
      bench_filter<Float16>(runner, mirror, "/pictures/half/", {height, width, channels}, {mirror.filter});
    }
  }
  for (const std::int64_t channels : {1, 3}) {
    bench_filter<float>(runner, young, "/pictures/", {500, 500, channels, 100}, {young.filter});
    bench_filter<float>(runner, mirror, "/pictures/", {500, 500, channels, 100}, {mirror.filter});
  }
}

template <class Executor>
void bench_all(Runner<Executor>& runner) {
  constexpr bool kGpu = std::is_same_v<Executor, CudaExecutor>;
  std::vector<std::int64_t> sides = {1024, 2048, 4096, 8192};
  if (kGpu) sides.push_back(16384);
  if (runner.quick()) sides = {512};
  const auto both = [](const AxisFilter& axis) { return RecursiveFilter{axis, axis}; };
  const Variant cubic{"cubic-zero", both(bspline_prefilter(3, FilterBoundary::kZero))};
  const Variant young{"gaussian-8-clamp", both(gaussian_filter(8, FilterBoundary::kClamp))};
  const Variant others[] = {
      {"quintic-zero", both(bspline_prefilter(5, FilterBoundary::kZero))},
      {"quintic-mirror", both(bspline_prefilter(5, FilterBoundary::kMirror))},
      {"gaussian-2-clamp", both(gaussian_filter(2, FilterBoundary::kClamp))},
      {"gaussian-8-zero", both(gaussian_filter(8, FilterBoundary::kZero))},
      {"gaussian-8-reflect", both(gaussian_filter(8, FilterBoundary::kReflect))},
      {"deriche-2-clamp", both(deriche_filter(2, 0, FilterBoundary::kClamp))},
      {"deriche-8-clamp", both(deriche_filter(8, 0, FilterBoundary::kClamp))},
      {"deriche-32-clamp", both(deriche_filter(32, 0, FilterBoundary::kClamp))},
      {"gaussian-32-clamp", both(gaussian_filter(32, FilterBoundary::kClamp))},
  };
  if (!runner.quick()) {
    for (const Variant& variant : {young, others[6]}) {
      bench_pictures<float>(runner, variant, "");
      bench_pictures<Float16>(runner, variant, "half/");
    }
    bench_default_blurs(runner);
    bench_other_pictures(runner);
    bench_fir_pictures(runner);
  }
  bench_normalize(runner);
  for (const std::int64_t side : sides) {
    bench_filter<float>(runner, cubic, "/", side, {cubic.filter});
    if (kGpu && !runner.quick()) {
      // The ladder of Nehab et al. (2011).
      bench_filter<float>(runner, cubic, "/lines/", side, {cubic.filter}, Method::kLines);
      bench_filter<float>(runner, cubic, "/algorithm-2/", side, direction_by_direction(cubic.filter),
                          Method::kTiled);
      bench_filter<float>(runner, cubic, "/algorithm-4/", side, axis_by_axis(cubic.filter), Method::kTiled);
      bench_filter<float>(runner, cubic, "/algorithm-5/", side, {cubic.filter}, Method::kTiled);
    }
    bench_filter<float>(runner, young, "/", side, {young.filter});
    if (kGpu) {
      bench_filter<float>(runner, young, "/tiled/", side, {young.filter}, Method::kTiled);
      for (const Variant& variant : {cubic, others[0], young})  // orders 1, 2 and 3
        bench_filter<float>(runner, variant, "/exact/", side, {variant.filter}, {Method::kAutomatic, 0});
      bench_filter<float>(runner, young, "/decaying/", side, {young.filter}, Method::kDecaying);
      bench_filter<float>(runner, young, "/decaying-1e-4/", side, {young.filter}, {Method::kDecaying, 1e-4});
      if (side <= 1024) {  // larger ones do not fit on every chip
        bench_filter<float>(runner, young, "/on-chip-exact/", side, {young.filter}, {Method::kOnChip, 0});
      }
    }
    bench_filter<Float16>(runner, young, "/half/", side, {young.filter});
    for (const Variant& variant : others) bench_filter<float>(runner, variant, "/", side, {variant.filter});
    if (side > 4096) continue;
    bench_filter<float>(runner, young, "/", {side, 3}, {young.filter});
    for (const Variant& variant : others)
      bench_filter<float>(runner, variant, "/", {side, 3}, {variant.filter});
  }
}

}  // namespace

void bench_recursive_filter(Runner<CpuExecutor>& runner);
void bench_recursive_filter(Runner<CudaExecutor>& runner);

void bench_recursive_filter(Runner<CpuExecutor>& runner) { bench_all(runner); }
void bench_recursive_filter(Runner<CudaExecutor>& runner) { bench_all(runner); }

}  // namespace cumulus::bench
