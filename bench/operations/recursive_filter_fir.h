#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "bench/harness/bench.h"
#include "kernels/recursive_filter/fir/blur.h"
#include "kernels/recursive_filter/fir/boundary.h"
#include "tests/cases/recursive_filter_case.h"

// The Gaussian of positive weights, on pictures.

namespace cumulus::bench {

/// Of a pixel; halves are rounded once more.
template <class T>
inline constexpr double kFirTolerance = std::is_same_v<T, Float16> ? 0x1p-11 * 1.02 : 2e-6;

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

/// What all threads of the machine find wrong with a part each of `count` lines; the first of them.
template <class Check>
std::string first_wrong_line(std::int64_t count, const Check& check) {
  const auto parts = static_cast<std::int64_t>(std::max(std::thread::hardware_concurrency(), 1U));
  std::vector<std::string> wrong(static_cast<std::size_t>(parts));
  std::vector<std::thread> threads;
  for (std::int64_t part = 0; part < parts; ++part) {
    threads.emplace_back([&, part] {
      std::string& own = wrong[static_cast<std::size_t>(part)];
      for (std::int64_t line = part; line < count && own.empty(); line += parts) own = check(line);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : wrong) {
    if (!one.empty()) return one;
  }
  return "";
}

/// Every pixel of non-negative noise, relative to it.
template <class T>
std::string verify_whole_fir(const testing::FilterImage& image, const FirAxis& y_axis, const FirAxis& x_axis,
                             const std::vector<T>& result) {
  const std::int64_t height = image.shape.height;
  const std::int64_t width = image.shape.width;
  const std::int64_t channels = image.shape.channels;
  const DirectGaussian along_y(y_axis, height);
  const DirectGaussian along_x(x_axis, width);
  std::vector<double> rows(image.elements.size());
  first_wrong_line(height, [&](std::int64_t y) {
    for (std::int64_t i = 0; i < width * channels; ++i) {
      rows[static_cast<std::size_t>(y * width * channels + i)] = along_x(
          i / channels, [&](std::int64_t x) { return double{image.row(y)[x * channels + i % channels]}; });
    }
    return std::string();
  });
  return first_wrong_line(height, [&](std::int64_t y) {
    for (std::int64_t i = 0; i < width * channels; ++i) {
      const double want = along_y(
          y, [&](std::int64_t row) { return rows[static_cast<std::size_t>(row * width * channels + i)]; });
      const double got = static_cast<double>(result[static_cast<std::size_t>(y * width * channels + i)]);
      if (std::abs(got - want) <= kFirTolerance<T> * want) continue;
      return "row " + std::to_string(y) + ", element " + std::to_string(i) + ": " + std::to_string(got) +
             ", not " + std::to_string(want);
    }
    return std::string();
  });
}

/// Pixels of non-negative noise, relative to each: all columns of some rows and all rows of some columns,
/// where a block, a slice or a border could go wrong, cross one another.
template <class T>
std::string verify_fir(const testing::FilterImage& image, const FirAxis& y_axis, const FirAxis& x_axis,
                       const std::vector<T>& result) {
  const std::int64_t height = image.shape.height;
  const std::int64_t width = image.shape.width;
  const std::int64_t channels = image.shape.channels;
  const DirectGaussian along_y(y_axis, height);
  const DirectGaussian along_x(x_axis, width);
  const auto check = [&](std::int64_t y, std::int64_t x, std::int64_t c, double want) {
    const double got = static_cast<double>(result[static_cast<std::size_t>((y * width + x) * channels + c)]);
    if (std::abs(got - want) <= kFirTolerance<T> * want) return std::string();
    return "row " + std::to_string(y) + ", column " + std::to_string(x) + ", channel " + std::to_string(c) +
           ": " + std::to_string(got) + ", not " + std::to_string(want);
  };
  std::string wrong;
  const auto check_line = [&](std::int64_t count, const auto& across, const auto& along) {
    std::vector<double> line(static_cast<std::size_t>(count));
    first_wrong_line(count, [&](std::int64_t at) {
      line[static_cast<std::size_t>(at)] = across(at);
      return std::string();
    });
    if (wrong.empty()) wrong = first_wrong_line(count, [&](std::int64_t at) { return along(at, line); });
  };
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto value = [&](std::int64_t y, std::int64_t x) { return double{image.row(y)[x * channels + c]}; };
    for (const std::int64_t y : {std::int64_t{0}, height / 2, height - 1}) {
      check_line(
          width, [&](std::int64_t x) { return along_y(y, [&](std::int64_t row) { return value(row, x); }); },
          [&](std::int64_t x, const std::vector<double>& line) {
            return check(y, x, c,
                         along_x(x, [&](std::int64_t at) { return line[static_cast<std::size_t>(at)]; }));
          });
    }
    for (const std::int64_t x : {std::int64_t{0}, width / 3, width - 1}) {
      check_line(
          height, [&](std::int64_t y) { return along_x(x, [&](std::int64_t at) { return value(y, at); }); },
          [&](std::int64_t y, const std::vector<double>& line) {
            return check(y, x, c,
                         along_y(y, [&](std::int64_t at) { return line[static_cast<std::size_t>(at)]; }));
          });
    }
  }
  return wrong;
}

/// A picture repeats along x, as a lat-long map does, or is clamped.
struct PictureBlur {
  double sigma;
  bool repeats;
};

inline std::string fir_picture_name(const std::string& type, const PictureBlur& blur,
                                    testing::FilterShape shape) {
  std::string name = "recursive_filter/fir-" + std::to_string(blur.sigma);
  name.erase(name.find_last_not_of('0') + 1);
  if (name.back() == '.') name.pop_back();
  name += blur.repeats ? "-repeat,clamp/pictures/" : "-clamp/pictures/";
  name += type + std::to_string(shape.height) + "x" + std::to_string(shape.width);
  return shape.channels > 1 ? name + "x" + std::to_string(shape.channels) : name;
}

/// One picture, with each of `blurs`.
template <class T, class Executor>
void bench_fir_picture(Runner<Executor>& runner, const std::string& type, std::vector<PictureBlur> blurs,
                       testing::FilterShape shape) {
  constexpr Space kSpace = Executor::kSpace;
  std::erase_if(blurs,
                [&](const PictureBlur& blur) { return !runner.wants(fir_picture_name(type, blur, shape)); });
  if (blurs.empty()) return;
  Executor& executor = runner.executor();
  testing::FilterImage image = make_filter_image(shape, testing::FilterPattern::kRandom);
  for (float& element : image.elements) element = std::abs(element);
  std::vector<T> elements = testing::elements_as<T>(image);
  std::transform(elements.begin(), elements.end(), image.elements.begin(),
                 [](T value) { return static_cast<float>(value); });
  const Array<T, Executor> pixels(executor, elements);
  const Array<T, Executor> result(executor, elements.size());
  const FilterImages<const T, kSpace> from(
      ImageView<const T, kSpace>(pixels.data(), shape.height, shape.width, shape.channels));
  const FilterImages<T, kSpace> to(
      ImageView<T, kSpace>(result.data(), shape.height, shape.width, shape.channels));
  for (const PictureBlur& blur : blurs) {
    const FirAxis y{blur.sigma, FilterBoundary::kClamp};
    const FirAxis x{blur.sigma, blur.repeats ? FilterBoundary::kRepeat : FilterBoundary::kClamp};
    constexpr std::int64_t kSmallPicture = std::int64_t{1} << 21;  // pixels
    const bool whole = shape.height * shape.width <= kSmallPicture && blur.sigma <= 32;
    const std::string which = whole ? "of all pixels" : "of three rows and three columns";
    runner.measure({
        .name = fir_picture_name(type, blur, shape),
        .bytes = testing::recursive_filter_bytes<T>(shape),
        .items = static_cast<double>(shape.height * shape.width),
        .unit = "pixels",
        .scratch_bytes = fir_gaussian_blur_scratch_bytes<T, kSpace>(from, {y, x}, executor.numbers()),
        .run =
            [&] {
              executor.reuse_scratch();
              fir_gaussian_blur<T>(executor, from, {y, x}, to);
            },
        .verify =
            [&] {
              const std::vector<T> pixels_out = result.to_host();
              return whole ? verify_whole_fir(image, y, x, pixels_out) : verify_fir(image, y, x, pixels_out);
            },
        .verified_by = "direct convolution in double, relative to each pixel, " + which,
    });
  }
}

template <class Executor>
void bench_fir_pictures(Runner<Executor>& runner) {
  constexpr std::int64_t kExtents[][2] = {{1080, 1920}, {1024, 2048}, {2048, 2048},
                                          {2160, 3840}, {2048, 4096}, {4096, 8192}};
  for (const auto& [height, width] : kExtents) {
    for (const std::int64_t channels : {1, 3, 4}) {
      std::vector<PictureBlur> blurs;
      for (const double sigma : {0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 200.0, 1000.0}) {
        blurs.push_back({sigma, false});
        blurs.push_back({sigma, true});
      }
      bench_fir_picture<float>(runner, "", blurs, {height, width, channels});
      bench_fir_picture<Float16>(runner, "half/", blurs, {height, width, channels});
    }
  }
}

}  // namespace cumulus::bench
