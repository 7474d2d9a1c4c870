#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/bench.h"
#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/cases/recursive_filter_case.h"

namespace cumulus::bench {
namespace {

using testing::FilterImage;
using testing::FilterPattern;
using testing::FilterShape;

struct Variant {
  std::string name;
  RecursiveFilter filter;
};

/// Checks a few whole rows and columns' worth of the result: the serial filter of a whole large image takes
/// minutes. A window around the middle, wide enough that what lies outside cannot matter, stands for the
/// rest.
std::string verify_window(const FilterImage& image, const RecursiveFilter& filter,
                          const std::vector<float>& result) {
  if (image.shape.height * image.shape.width <= 512 * 512) {
    return verify_recursive_filter(image, filter, result.data());
  }
  constexpr std::int64_t kSide = 48;
  const std::int64_t reach_y = testing::SerialFilter(filter.y.causal).memory();
  const std::int64_t reach_x = testing::SerialFilter(filter.x.causal).memory();
  const auto span_of = [](std::int64_t length, std::int64_t reach) {
    const std::int64_t first = std::max<std::int64_t>(0, length / 2 - reach);
    return std::pair(first, std::min(length, length / 2 + kSide + reach));
  };
  const auto [top, bottom] = span_of(image.shape.height, reach_y);
  const auto [left, right] = span_of(image.shape.width, reach_x);
  FilterImage window{{bottom - top, right - left, 1}, right - left, {}};
  for (std::int64_t y = top; y < bottom; ++y) {
    window.elements.insert(window.elements.end(), image.row(y) + left, image.row(y) + right);
  }
  const auto expected = filter_serially(window, filter);
  const double tolerance = testing::recursive_filter_tolerance(filter);
  for (std::int64_t y = image.shape.height / 2; y < image.shape.height / 2 + kSide; ++y) {
    for (std::int64_t x = image.shape.width / 2; x < image.shape.width / 2 + kSide; ++x) {
      const auto want =
          static_cast<double>(expected[static_cast<std::size_t>((y - top) * (right - left) + x - left)]);
      const double error =
          std::abs(static_cast<double>(result[static_cast<std::size_t>(y * image.shape.width + x)]) - want);
      if (!(error <= tolerance)) {
        return "row " + std::to_string(y) + ", column " + std::to_string(x) + ": off by " +
               std::to_string(error);
      }
    }
  }
  return "";
}

template <class Executor>
void bench_filter(Runner<Executor>& runner, const Variant& variant, std::int64_t side,
                  RecursiveFilterMethod method) {
  const std::string method_name =
      method == RecursiveFilterMethod::kLines && Executor::kSpace == Space::kDevice ? "/lines/" : "/";
  const std::string name =
      "recursive_filter/" + variant.name + method_name + std::to_string(side) + "x" + std::to_string(side);
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const FilterShape shape{side, side};
  const FilterImage image = make_filter_image(shape, FilterPattern::kRandom);
  const Array<float, Executor> pixels(executor, image.elements);
  const Array<float, Executor> result(executor, image.elements.size());
  const ImageView<const float, Executor::kSpace> view(pixels.data(), side, side);
  const ImageView<float, Executor::kSpace> filtered(result.data(), side, side);
  runner.measure({
      .name = name,
      .bytes = testing::recursive_filter_bytes(shape),
      .items = static_cast<double>(side * side),
      .unit = "pixels",
      .scratch_bytes = apply_recursive_filter_scratch_bytes(view, variant.filter, method),
      .run = [&] { apply_recursive_filter(executor, view, variant.filter, filtered, method); },
      .verify = [&] { return verify_window(image, variant.filter, result.to_host()); },
      .verified_by = side <= 512 ? "serial oracle, every pixel" : "serial oracle, a window in the middle",
  });
}

template <class Executor>
void bench_all(Runner<Executor>& runner) {
  constexpr bool kGpu = std::is_same_v<Executor, CudaExecutor>;
  std::vector<std::int64_t> sides = {1024, 2048, 4096};
  if (kGpu) sides.insert(sides.end(), {8192, 16384});
  if (runner.quick()) sides = {512};
  const auto both = [](const AxisFilter& axis) { return RecursiveFilter{axis, axis}; };
  const Variant variants[] = {
      {"cubic-zero", both(bspline_prefilter(3, FilterBoundary::kZero))},
      {"quintic-mirror", both(bspline_prefilter(5, FilterBoundary::kMirror))},
      {"gaussian-8-clamp", both(gaussian_filter(8, FilterBoundary::kClamp))},
      {"gaussian-8-reflect", both(gaussian_filter(8, FilterBoundary::kReflect))},
      {"gaussian-32-clamp", both(gaussian_filter(32, FilterBoundary::kClamp))},
  };
  for (const std::int64_t side : sides) {
    for (const Variant& variant : variants)
      bench_filter(runner, variant, side, RecursiveFilterMethod::kAutomatic);
    if (kGpu) bench_filter(runner, variants[0], side, RecursiveFilterMethod::kLines);
  }
}

}  // namespace

void bench_recursive_filter(Runner<CpuExecutor>& runner);
void bench_recursive_filter(Runner<CudaExecutor>& runner);

void bench_recursive_filter(Runner<CpuExecutor>& runner) { bench_all(runner); }
void bench_recursive_filter(Runner<CudaExecutor>& runner) { bench_all(runner); }

}  // namespace cumulus::bench
