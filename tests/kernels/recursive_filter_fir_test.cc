// The Gaussian of positive weights beside a direct convolution in double, relative to each pixel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/recursive_filter/cpu/nearest_float16.h"
#include "kernels/recursive_filter/fir/blur.h"
#include "kernels/recursive_filter/fir/both_axes.h"
#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/fir/direct.h"
#include "tests/cases/recursive_filter_case.h"
#include "tests/support/executors.h"
#include "tests/support/gpus.h"

namespace cumulus {
namespace {

using recursive_filter::source_pixel;
using testing::BackendArray;
using testing::CpuBackend;
using testing::CudaBackend;
using testing::FilterShape;
using testing::kH200;

constexpr float kSun = 65504;

/// Rows of noise from half of `sky` to all of it; a sun in the first channel, none where `sun` is 0.
std::vector<float> make_sky(FilterShape shape, double sky, float sun) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> part(0.5, 1);
  std::vector<float> pixels(static_cast<std::size_t>(shape.height * shape.width * shape.channels));
  std::generate(pixels.begin(), pixels.end(), [&] { return static_cast<float>(sky * part(random)); });
  const std::int64_t centre = (shape.height / 3 * shape.width + shape.width / 2) * shape.channels;
  if (sun > 0) pixels[static_cast<std::size_t>(centre)] = sun;
  return pixels;
}

/// Row i weighs the pixels of a line for its pixel i.
std::vector<double> convolution_matrix(std::int64_t length, const FirAxis& axis) {
  const auto reach = static_cast<std::int64_t>(std::ceil(12 * axis.sigma));
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t d = -reach; d <= reach; ++d) {
    const double distance = static_cast<double>(d) / axis.sigma;
    weights.push_back(std::exp(-0.5 * distance * distance));
    sum += weights.back();
  }
  std::vector<double> matrix(static_cast<std::size_t>(length * length));
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t d = -reach; d <= reach; ++d) {
      const std::int64_t source = source_pixel(i + d, length, axis.boundary);
      if (source < 0) continue;
      matrix[static_cast<std::size_t>(i * length + source)] +=
          weights[static_cast<std::size_t>(d + reach)] / sum;
    }
  }
  return matrix;
}

/// Along lines of `length` pixels that lie `step` numbers apart.
void convolve(const std::vector<double>& from, std::int64_t length, std::int64_t step, const FirAxis& axis,
              std::vector<double>& to) {
  const std::vector<double> matrix = convolution_matrix(length, axis);
  const auto numbers = static_cast<std::int64_t>(from.size());
  for (std::int64_t i = 0; i < numbers; ++i) {
    const std::int64_t at = i / step % length;
    double total = 0;
    for (std::int64_t source = 0; source < length; ++source) {
      total += matrix[static_cast<std::size_t>(at * length + source)] *
               from[static_cast<std::size_t>(i + (source - at) * step)];
    }
    to[static_cast<std::size_t>(i)] = total;
  }
}

template <class T>
std::vector<double> oracle(const std::vector<T>& pixels, FilterShape shape, const std::optional<FirAxis>& y,
                           const std::optional<FirAxis>& x) {
  std::vector<double> first(pixels.size());
  std::transform(pixels.begin(), pixels.end(), first.begin(), [](T v) { return static_cast<double>(v); });
  std::vector<double> second(pixels.size());
  if (x.has_value()) {
    convolve(first, shape.width, shape.channels, *x, second);
    first = second;
  }
  if (!y.has_value()) return first;
  convolve(first, shape.height, shape.width * shape.channels, *y, second);
  return second;
}

template <class T, class Backend>
std::vector<T> blur(Backend& backend, const std::vector<T>& pixels, FilterShape shape, std::int64_t count,
                    const FirBlur& blur) {
  BackendArray<Backend, T> from(backend, pixels);
  BackendArray<Backend, T> to(backend, pixels.size());
  const FilterImages<const T, Backend::kSpace> images(
      ImageView<const T, Backend::kSpace>(from.const_span().data(), shape.height, shape.width,
                                          shape.channels),
      count);
  const FilterImages<T, Backend::kSpace> blurred(
      ImageView<T, Backend::kSpace>(to.span().data(), shape.height, shape.width, shape.channels), count);
  const std::size_t scratch_bytes =
      fir_gaussian_blur_scratch_bytes(images, blur, backend.executor().numbers());
  backend.executor().reserve_scratch(scratch_bytes);
  fir_gaussian_blur<T>(backend.executor(), images, blur, blurred);
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  return to.to_host();
}

/// The largest error of a pixel, less what is cut off of an image with that `peak`, over the pixel.
template <class T>
double relative_error(const std::vector<T>& result, const std::vector<double>& right, double peak = 0) {
  double worst = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const double error = std::abs(static_cast<double>(result[i]) - right[i]) - kFirTruncation * peak;
    worst = std::max(worst, error / right[i]);
  }
  return worst;
}

template <class Backend>
void expect_small_relative_errors(Backend& backend, FilterBoundary boundary) {
  constexpr FilterShape kShape = {37, 90, 3};
  for (const double sky : {1.0, 0.1, 0.001, 1e-4}) {
    const std::vector<float> pixels = make_sky(kShape, sky, kSun);
    for (const double sigma : {0.5, 2.0, 4.9, 5.0, 8.0, 13.0, 32.0, 100.0, 1000.0}) {
      SCOPED_TRACE("sky " + std::to_string(sky) + ", sigma " + std::to_string(sigma));
      const FirAxis y = {sigma, boundary};
      const FirAxis x = {std::max(0.5, sigma / 2), boundary};
      const std::vector<double> right = oracle(pixels, kShape, y, x);
      EXPECT_LE(relative_error(blur(backend, pixels, kShape, 1, {y, x}), right, kSun), 2e-6);
      const std::vector<double> doubles(pixels.begin(), pixels.end());
      EXPECT_LE(relative_error(blur(backend, doubles, kShape, 1, {y, x}), right, kSun), 1e-6);
    }
  }
}

template <class Backend>
void expect_no_negative_pixels(Backend& backend, FilterBoundary boundary) {
  constexpr FilterShape kShape = {64, 200, 1};
  for (const double sky : {0.1, 1e-4, 0.0}) {
    const std::vector<float> pixels = make_sky(kShape, sky, kSun);
    for (const double sigma : {0.5, 2.0, 8.0, 32.0, 300.0}) {
      const FirAxis axis = {sigma, boundary};
      const std::vector<float> result = blur(backend, pixels, kShape, 1, {axis, axis});
      EXPECT_GE(*std::min_element(result.begin(), result.end()), 0.0F) << sky << ", " << sigma;
      EXPECT_TRUE(std::all_of(result.begin(), result.end(), [](float v) { return std::isfinite(v); }));
    }
  }
}

template <class Backend>
void expect_halves_batches_and_single_pixels(Backend& backend) {
  constexpr FilterShape kShape = {9, 33, 4};
  const std::vector<float> one = make_sky(kShape, 1, 100);
  std::vector<Float16> halves(2 * one.size());
  std::transform(one.begin(), one.end(), halves.begin(), recursive_filter::nearest_float16);
  std::transform(one.rbegin(), one.rend(), halves.begin() + static_cast<std::ptrdiff_t>(one.size()),
                 recursive_filter::nearest_float16);
  const FirAxis axis = {6, FilterBoundary::kClamp};
  const auto middle = static_cast<std::ptrdiff_t>(one.size());
  const std::vector<Float16> second(halves.begin() + middle, halves.end());
  for (const FirBlur& axes : {FirBlur{axis, axis}, FirBlur{axis, {}}, FirBlur{{}, FirAxis{2}}}) {
    const std::vector<Float16> result = blur(backend, halves, kShape, 2, axes);
    const std::vector<Float16> second_result(result.begin() + middle, result.end());
    EXPECT_LE(relative_error(second_result, oracle(second, kShape, axes.y, axes.x)), 0x1p-11 * 1.01);
  }
  EXPECT_NEAR(blur<float>(backend, {5}, {1, 1, 1}, 1, {axis, axis}).front(), 5, 5e-6);
}

template <class Backend>
void expect_constants_stay(Backend& backend) {
  constexpr FilterShape kShape = {50, 70, 2};
  const std::vector<float> grey(50 * 70 * 2, 0.25F);
  for (const double sigma : {0.5, 4.0, 5.0, 7.4, 50.0, 10000.0}) {
    const FirAxis axis = {sigma, FilterBoundary::kReflect};
    for (const float value : blur(backend, grey, kShape, 1, {axis, axis})) {
      ASSERT_NEAR(value, 0.25F, 5e-7F) << sigma;
    }
  }
}

/// Whether the blur says that all of its results are finite.
bool finds_all_finite(CpuBackend& backend, const std::vector<float>& pixels, FilterShape shape,
                      const FirBlur& blur) {
  std::vector<float> to(pixels.size());
  const FilterImages<const float, Space::kHost> images(
      HostImage<const float>(pixels.data(), shape.height, shape.width, shape.channels), 1);
  const FilterImages<float, Space::kHost> blurred(
      HostImage<float>(to.data(), shape.height, shape.width, shape.channels), 1);
  backend.executor().reserve_scratch(
      fir_gaussian_blur_scratch_bytes(images, blur, backend.executor().numbers()));
  return fir_gaussian_blur<float>(backend.executor(), images, blur, blurred);
}

class FirGaussian : public ::testing::TestWithParam<FilterBoundary> {};

TEST_P(FirGaussian, SeesEachPixelThatIsNotFinite) {
  CpuBackend backend;
  constexpr FilterShape kShape = {19, 23, 1};
  std::vector<float> pixels = make_sky(kShape, 1, 0);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kWrong[] = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity};
  for (const double sigma : {0.5, 2.0, 4.5, 9.0, 300.0}) {
    const FirAxis axis = {sigma, GetParam()};
    for (const FirBlur& axes : {FirBlur{axis, axis}, FirBlur{axis, {}}, FirBlur{{}, axis}}) {
      EXPECT_TRUE(finds_all_finite(backend, pixels, kShape, axes)) << sigma;
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        const float right = std::exchange(pixels[i], kWrong[i % 3]);
        EXPECT_FALSE(finds_all_finite(backend, pixels, kShape, axes)) << "pixel " << i << ", sigma " << sigma;
        pixels[i] = right;
      }
    }
  }
}

TEST_P(FirGaussian, ErrsRelativeToEachPixelUnderASun) {
  CpuBackend backend;
  expect_small_relative_errors(backend, GetParam());
}

TEST_P(FirGaussian, IsNeverNegative) {
  CpuBackend backend;
  expect_no_negative_pixels(backend, GetParam());
}

TEST_P(FirGaussian, CudaKeepsToTheSame) {
  if (!CudaBackend::available()) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
  CudaBackend backend;
  expect_small_relative_errors(backend, GetParam());
  expect_no_negative_pixels(backend, GetParam());
}

/// Many blocks in both directions, rows that begin anywhere, steps that differ along the axes.
TEST_P(FirGaussian, CudaGivesWhatTheCpuDoesOnPictures) {
  if (!CudaBackend::available()) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
  CudaBackend gpu;
  CpuBackend cpu;
  for (const FilterShape shape : {FilterShape{701, 1303, 3}, {1100, 517, 4}, {900, 1999, 1}}) {
    const std::vector<float> pixels = make_sky(shape, 0.01, kSun);
    for (const double sigma : {0.5, 2.0, 3.9, 5.0, 8.0, 13.0, 32.0, 64.0, 200.0}) {
      SCOPED_TRACE(testing::describe(shape) + ", sigma " + std::to_string(sigma));
      const FirBlur axes{FirAxis{sigma, GetParam()}, FirAxis{std::max(0.5, sigma / 3), GetParam()}};
      const std::vector<float> on_cpu = blur(cpu, pixels, shape, 1, axes);
      const std::vector<double> right(on_cpu.begin(), on_cpu.end());
      EXPECT_LE(relative_error(blur(gpu, pixels, shape, 1, axes), right, kSun), 3e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Boundaries, FirGaussian,
                         ::testing::Values(FilterBoundary::kZero, FilterBoundary::kClamp,
                                           FilterBoundary::kRepeat, FilterBoundary::kReflect,
                                           FilterBoundary::kMirror));

template <class Backend>
class FirGaussianBlur : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(FirGaussianBlur, testing::Backends, testing::BackendNames);

TYPED_TEST(FirGaussianBlur, TakesHalvesBatchesSingleAxesAndSinglePixels) {
  expect_halves_batches_and_single_pixels(this->backend());
}

TYPED_TEST(FirGaussianBlur, LeavesConstantsAsTheyAre) { expect_constants_stay(this->backend()); }

/// Multiplications of a pixel.
double work(const std::vector<recursive_filter::FirStage>& stages,
            const recursive_filter::FirExtents& image) {
  double sum = 0;
  recursive_filter::FirExtents extents = image;
  for (const recursive_filter::FirStage& stage : recursive_filter::axis_by_axis(stages)) {
    extents = extents_after(stage, extents);
    const std::int64_t taps = stage.x.has_value() ? stage.x->taps : stage.y->taps;
    sum += static_cast<double>(extents.height * extents.width * taps);
  }
  return sum / static_cast<double>(image.height * image.width);
}

TEST(FirGaussianPlan, TakesSmallStepsAndFewMultiplications) {
  const recursive_filter::FirExtents image{2048, 4096};
  for (const double sigma : {4.0, 5.0, 8.0, 16.0, 32.0, 100.0, 1000.0, 10000.0}) {
    const FirAxis axis{sigma, FilterBoundary::kClamp};
    const auto stages = recursive_filter::plan_fir_stages({axis, axis}, image);
    EXPECT_FALSE(recursive_filter::has_large_steps(stages, image)) << sigma;
    EXPECT_LE(work(stages, image), sigma < 5.25 ? 70 : 50) << sigma;
    const recursive_filter::FirScratch scratch = fir_scratch(stages, image, 1, 1);
    EXPECT_LE(scratch.even + scratch.odd, image.height * image.width * 52 / 100) << sigma;
  }
}

/// Of a bright pixel alone: what of it comes to each place.
TEST(FirGaussianPlan, IsTheGaussianAtEachDistance) {
  for (const double sigma :
       {0.5, 3.9, 4.0, 5.2, 5.25, 5.5, 7.9, 8.0, 9.0, 10.9, 11.0, 16.0, 20.9, 32.0, 64.0, 100.0}) {
    SCOPED_TRACE(sigma);
    double sum = 0;
    const auto reach = static_cast<std::int64_t>(9 * sigma) + 10;
    for (std::int64_t d = -reach; d <= reach; ++d) {
      sum += std::exp(-0.5 * static_cast<double>(d * d) / (sigma * sigma));
    }
    // Steps are of at most four, and grids of 48 here: the first pixels of a line meet all of their phases.
    for (const std::int64_t centre : {reach, reach + 1, reach + 2, reach + 7}) {
      std::vector<double> line(static_cast<std::size_t>(2 * reach + 9));
      line[static_cast<std::size_t>(centre)] = 1;
      CpuBackend backend;
      const FilterShape shape = {1, static_cast<std::int64_t>(line.size()), 1};
      const std::vector<double> result =
          blur(backend, line, shape, 1, {{}, FirAxis{sigma, FilterBoundary::kZero}});
      double beyond = 0;
      for (std::int64_t i = 0; i < shape.width; ++i) {
        const double distance = static_cast<double>(i - centre) / sigma;
        const double right = std::exp(-0.5 * distance * distance) / sum;
        const double error = std::abs(result[static_cast<std::size_t>(i)] - right);
        if (std::abs(distance) < 5.7) {
          EXPECT_LE(error, 2.8e-7 * right) << distance;
        }
        beyond += std::max(0.0, error - 2.8e-7 * right);
        EXPECT_GE(result[static_cast<std::size_t>(i)], 0);
      }
      EXPECT_LE(beyond, kFirTruncation / 2);
    }
  }
}

TEST(FirGaussianPlan, DirectBlocksCoverTheImageAndFit) {
  for (const double sigma : {0.5, 1.0, 2.0, 3.9}) {
    for (const recursive_filter::FirExtents extents :
         {recursive_filter::FirExtents{1080, 1920}, {4096, 8192}, {1, 1}, {7, 20000}}) {
      const FirAxis axis{sigma, FilterBoundary::kClamp};
      const auto stages = recursive_filter::plan_fir_stages({axis, axis}, extents);
      ASSERT_EQ(stages.size(), 1U);
      ASSERT_TRUE(recursive_filter::is_direct(stages.front()));
      const auto tile = choose_direct_tile(stages.front(), extents, 3, 1, 4, kH200);
      ASSERT_TRUE(tile.has_value());
      EXPECT_GE(tile->blocks_y * tile->block_rows, extents.height);
      EXPECT_GE(tile->blocks_x * tile->numbers, extents.width * 3);
      EXPECT_LE(4 * (tile->shared_bytes + 1024), sigma < 3 ? kH200.multiprocessor_shared_bytes : 400000);
      DeviceNumbers small = kH200;
      small.block_shared_bytes = 16384;
      EXPECT_FALSE(choose_direct_tile(stages.front(), extents, 3, 1, 4, small).has_value());
    }
  }
}

TEST(FirGaussianPlan, GoesAnAxisAtATimeOnAGpuBetweenSamplingAndInterpolating) {
  const recursive_filter::FirExtents image{2048, 4096};
  for (const double sigma : {4.0, 8.0, 32.0, 1000.0}) {
    SCOPED_TRACE(sigma);
    const FirAxis axis{sigma, FilterBoundary::kClamp};
    const auto stages = recursive_filter::device_stages({axis, axis}, image, false);
    EXPECT_EQ(stages.size(), recursive_filter::plan_fir_stages({axis, axis}, image).size() + 1);
    for (const auto& stage : stages) {
      EXPECT_EQ(stage.y.has_value() && stage.x.has_value(), is_sampling(stage) || is_interpolation(stage));
    }
    const recursive_filter::FirScratch scratch = fir_scratch(stages, image, 1, 1);
    EXPECT_LE(scratch.even + scratch.odd, image.height * image.width * (sigma < 5.25 ? 52 : 25) / 100);
    EXPECT_EQ(recursive_filter::device_stages({axis, {}}, image, false).size(), stages.size() - 1);
    // Doubles go an axis at a time from the image to the result, both along y.
    const auto of_doubles = recursive_filter::device_stages({axis, axis}, image, true);
    EXPECT_EQ(of_doubles.size(), 2 * stages.size() - 2);
    for (const auto& stage : of_doubles) EXPECT_NE(stage.y.has_value(), stage.x.has_value());
    EXPECT_TRUE(of_doubles.front().y.has_value());
    EXPECT_TRUE(of_doubles.back().y.has_value());
  }
  const FirAxis narrow{2, FilterBoundary::kClamp};
  EXPECT_EQ(recursive_filter::device_stages({narrow, narrow}, image, false).size(), 1U);
}

TEST(FirGaussianPlan, TakesOneLargeStepWhereTheBlurReachesFarBeyondALineThatGoesOn) {
  const recursive_filter::FirExtents image{2048, 4096};
  const auto plan = [&](double sigma) {
    return recursive_filter::device_stages({{}, FirAxis{sigma, FilterBoundary::kRepeat}}, image, false);
  };
  EXPECT_FALSE(recursive_filter::has_large_steps(plan(250), image));
  EXPECT_TRUE(recursive_filter::has_large_steps(plan(260), image));
  EXPECT_EQ(plan(260).size(), 3U);
  EXPECT_TRUE(recursive_filter::has_large_steps({}, {1, (std::int64_t{1} << 29) + 1}));
}

TEST(FirGaussianRequest, RefusesASigmaOutOfRangeAndNoAxis) {
  const FirAxis good = {1, FilterBoundary::kClamp};
  const FirAxis bad = {0.4, FilterBoundary::kClamp};
  for (const FirBlur& axes : {FirBlur{bad, good}, FirBlur{good, bad}, FirBlur{}}) {
    EXPECT_THROW(recursive_filter::check_fir_blur(axes), std::invalid_argument);
  }
}

}  // namespace
}  // namespace cumulus
