#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/harness/bench.h"
#include "kernels/recursive_filter/fir/blur.h"
#include "kernels/recursive_filter/fir/boundary.h"
#include "tests/cases/recursive_filter_case.h"

// The Gaussian of positive weights, on pictures.

namespace cumulus::bench {

/// The sampled Gaussian in double, along one axis.
class DirectGaussian {
 public:
  DirectGaussian(const FirAxis& axis, std::int64_t length) : axis_(axis), length_(length) {
    const auto reach = static_cast<std::int64_t>(std::ceil(9 * axis.sigma));
    double sum = 0;
    for (std::int64_t at = -reach; at <= reach; ++at) {
      const double distance = static_cast<double>(at) / axis.sigma;
      weights_.push_back(std::exp(-0.5 * distance * distance));
      sum += weights_.back();
    }
    for (double& weight : weights_) weight /= sum;
  }

  /// Of the signal value(0), value(1), ... around pixel `at`.
  template <class Value>
  double operator()(std::int64_t at, const Value& value) const {
    const auto reach = static_cast<std::int64_t>(weights_.size() / 2);
    double sum = 0;
    for (std::int64_t tap = -reach; tap <= reach; ++tap) {
      const std::int64_t source = recursive_filter::source_pixel(at + tap, length_, axis_.boundary);
      if (source >= 0) sum += weights_[static_cast<std::size_t>(tap + reach)] * value(source);
    }
    return sum;
  }

 private:
  FirAxis axis_;
  std::int64_t length_;
  std::vector<double> weights_;
};

/// Pixels of non-negative noise, relative to each: all columns of some rows and all rows of some columns,
/// where a block, a slice or a border could go wrong, cross one another.
template <class T>
std::string verify_fir(const testing::FilterImage& image, const FirAxis& axis, const std::vector<T>& result) {
  const std::int64_t height = image.shape.height;
  const std::int64_t width = image.shape.width;
  const std::int64_t channels = image.shape.channels;
  const DirectGaussian along_y(axis, height);
  const DirectGaussian along_x(axis, width);
  const double tolerance = std::is_same_v<T, Float16> ? 0x1p-11 * 1.02 : 2e-6;
  const auto check = [&](std::int64_t y, std::int64_t x, std::int64_t c, double want) {
    const double got = static_cast<double>(result[static_cast<std::size_t>((y * width + x) * channels + c)]);
    if (std::abs(got - want) <= tolerance * want) return std::string();
    return "row " + std::to_string(y) + ", column " + std::to_string(x) + ", channel " + std::to_string(c) +
           ": " + std::to_string(got) + ", not " + std::to_string(want);
  };
  std::vector<double> line;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (const std::int64_t y : {std::int64_t{0}, height / 2, height - 1}) {
      line.clear();
      for (std::int64_t x = 0; x < width; ++x) {
        line.push_back(
            along_y(y, [&](std::int64_t row) { return double{image.row(row)[x * channels + c]}; }));
      }
      for (std::int64_t x = 0; x < width; ++x) {
        const double want = along_x(x, [&](std::int64_t at) { return line[static_cast<std::size_t>(at)]; });
        if (std::string wrong = check(y, x, c, want); !wrong.empty()) return wrong;
      }
    }
    for (const std::int64_t x : {std::int64_t{0}, width / 3, width - 1}) {
      line.clear();
      for (std::int64_t y = 0; y < height; ++y) {
        line.push_back(along_x(x, [&](std::int64_t at) { return double{image.row(y)[at * channels + c]}; }));
      }
      for (std::int64_t y = 0; y < height; ++y) {
        const double want = along_y(y, [&](std::int64_t at) { return line[static_cast<std::size_t>(at)]; });
        if (std::string wrong = check(y, x, c, want); !wrong.empty()) return wrong;
      }
    }
  }
  return "";
}

template <class T, class Executor>
void bench_fir_picture(Runner<Executor>& runner, const std::string& type, double sigma,
                       testing::FilterShape shape) {
  constexpr Space kSpace = Executor::kSpace;
  std::string name = "recursive_filter/fir-" + std::to_string(sigma);
  name.erase(name.find_last_not_of("0.") + 1);
  name += "-clamp/pictures/" + type + std::to_string(shape.height) + "x" + std::to_string(shape.width);
  if (shape.channels > 1) name += "x" + std::to_string(shape.channels);
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  testing::FilterImage image = make_filter_image(shape, testing::FilterPattern::kRandom);
  for (float& element : image.elements) element = std::abs(element);
  std::vector<T> elements = testing::elements_as<T>(image);
  std::transform(elements.begin(), elements.end(), image.elements.begin(),
                 [](T value) { return static_cast<float>(value); });
  const Array<T, Executor> pixels(executor, elements);
  const Array<T, Executor> result(executor, elements.size());
  const FirAxis axis{sigma, FilterBoundary::kClamp};
  const FilterImages<const T, kSpace> from(
      ImageView<const T, kSpace>(pixels.data(), shape.height, shape.width, shape.channels));
  const FilterImages<T, kSpace> to(
      ImageView<T, kSpace>(result.data(), shape.height, shape.width, shape.channels));
  runner.measure({
      .name = name,
      .bytes = testing::recursive_filter_bytes<T>(shape),
      .items = static_cast<double>(shape.height * shape.width),
      .unit = "pixels",
      .scratch_bytes = fir_gaussian_blur_scratch_bytes<T, kSpace>(from, {axis, axis}),
      .run =
          [&] {
            executor.reuse_scratch();
            fir_gaussian_blur<T>(executor, from, {axis, axis}, to);
          },
      .verify = [&] { return verify_fir(image, axis, result.to_host()); },
      .verified_by = "direct convolution in double, relative to each pixel, of three rows and three columns",
  });
}

template <class Executor>
void bench_fir_pictures(Runner<Executor>& runner) {
  constexpr std::int64_t kExtents[][2] = {
      {1080, 1920}, {1024, 2048}, {2160, 3840}, {2048, 4096}, {4096, 8192}};
  for (const auto& [height, width] : kExtents) {
    for (const std::int64_t channels : {1, 3, 4}) {
      for (const double sigma : {0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0}) {
        bench_fir_picture<float>(runner, "", sigma, {height, width, channels});
        bench_fir_picture<Float16>(runner, "half/", sigma, {height, width, channels});
      }
    }
  }
}

}  // namespace cumulus::bench
