// Normalized convolution: certainties beside the serial filters of lines of ones, and images over them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/recursive_filter/cpu/nearest_float16.h"
#include "kernels/recursive_filter/fir/blur.h"
#include "kernels/recursive_filter/normalize.h"
#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/cases/recursive_filter_case.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using testing::filter_line_serially;
using testing::FilterShape;

/// Of each pixel of a line of `length`.
std::vector<double> spread(const FilteredCertainty& certainty, std::int64_t length) {
  std::vector<double> whole(static_cast<std::size_t>(length), 1.0);
  const auto count = certainty.ends.size();
  EXPECT_LE(count, whole.size());
  const auto first = static_cast<std::ptrdiff_t>(count - count / 2);
  std::copy(certainty.ends.begin(), certainty.ends.begin() + first, whole.begin());
  std::copy(certainty.ends.begin() + first, certainty.ends.end(),
            whole.end() - static_cast<std::ptrdiff_t>(count / 2));
  return whole;
}

/// What the serial filter makes of a line of ones with zeros beyond.
std::vector<long double> serial_certainty(AxisFilter filter, std::int64_t length) {
  filter.boundary = FilterBoundary::kZero;
  return filter_line_serially(std::vector<long double>(static_cast<std::size_t>(length), 1), filter);
}

/// The poles of a wide filter lie near 1: its recursion in double magnifies roundings by about the cube of
/// `sigma`.
double rounding_bound(double sigma) {
  return 1e-14 + std::numeric_limits<double>::epsilon() * sigma * sigma * sigma;
}

TEST(FilteredCertainties, AreWhatTheFilterMakesOfOnes) {
  for (const std::int64_t length : {1, 2, 7, 64, 1000, 6000}) {
    for (const double sigma : {0.5, 2.0, 8.0, 100.0, 3000.0}) {
      for (const AxisFilter& filter :
           {deriche_filter(sigma, 0, FilterBoundary::kClamp), gaussian_filter(sigma, FilterBoundary::kRepeat),
            exponential_filter(1 - 1 / (1 + sigma), FilterBoundary::kZero)}) {
        const std::vector<double> found = spread(filtered_certainty(filter, length), length);
        const std::vector<long double> right = serial_certainty(filter, length);
        for (std::size_t i = 0; i < right.size(); ++i) {
          ASSERT_NEAR(found[i], static_cast<double>(right[i]), rounding_bound(sigma))
              << length << ", " << sigma << ": " << i;
        }
      }
    }
  }
}

/// Of long lines only the ends are filtered.
TEST(FilteredCertainties, TakeWhatTheFilterReaches) {
  const std::int64_t length = std::int64_t{1} << 40;
  EXPECT_LE(filtered_certainty(deriche_filter(8, 0, FilterBoundary::kZero), length).ends.size(), 1000U);
  EXPECT_LE(filtered_certainty(FirAxis{8}, length).ends.size(), 1U << 16);
  EXPECT_LE(filtered_certainty(FirAxis{10000}, length).ends.size(), 200000U);
}

TEST(FilteredCertainties, OfPositiveWeightsArePartsOfTheGaussian) {
  for (const std::int64_t length : {1, 5, 300, 70000}) {
    for (const double sigma : {0.5, 3.0, 20.0, 500.0}) {
      const std::vector<double> found = spread(filtered_certainty(FirAxis{sigma}, length), length);
      for (const std::int64_t at : {std::int64_t{0}, length / 3, length - 1}) {
        const auto reach = static_cast<std::int64_t>(12 * sigma);
        long double inside = 0;
        long double all = 0;
        for (std::int64_t d = -reach; d <= reach; ++d) {
          const long double weight = std::exp(-0.5L * static_cast<long double>(d * d) / (sigma * sigma));
          all += weight;
          if (at + d >= 0 && at + d < length) inside += weight;
        }
        ASSERT_NEAR(found[static_cast<std::size_t>(at)] / static_cast<double>(inside / all), 1, 1e-6)
            << length << ", " << sigma << ": " << at;
      }
    }
  }
}

template <class Backend>
class NormalizedImages : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(NormalizedImages, testing::Backends, testing::BackendNames);

template <class T, Space S>
FilterImages<T, S> images_of(Span<T, S> elements, FilterShape shape, std::int64_t count) {
  return {ImageView<T, S>(elements.data(), shape.height, shape.width, shape.channels), count};
}

template <class From, class To, class Backend>
std::vector<To> normalized(Backend& backend, const std::vector<From>& pixels, FilterShape shape,
                           std::int64_t count, const FilteredCertainties& certainties) {
  BackendArray<Backend, From> from(backend, pixels);
  BackendArray<Backend, To> to(backend, pixels.size());
  const std::size_t scratch_bytes = normalize_scratch_bytes<From>(certainties);
  backend.executor().reserve_scratch(scratch_bytes);
  normalize<From, To>(backend.executor(), images_of(from.const_span(), shape, count), certainties,
                      images_of(to.span(), shape, count));
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  return to.to_host();
}

template <class From, class To, class Backend>
void expect_quotients(Backend& backend, const std::vector<From>& pixels) {
  const FilterShape shape{5, 600, 3};
  const FilteredCertainties certainties{{{0.5, 0.25, 0.8}}, {{0.5, 0.75, 0.9, 0.7, 0.4}}};
  const std::vector<double> down = spread(certainties.y, shape.height);
  const std::vector<double> across = spread(certainties.x, shape.width);
  const std::vector<To> result = normalized<From, To>(backend, pixels, shape, 2, certainties);
  const double unit = std::is_same_v<To, Float16>    ? 0x1p-11
                      : std::is_same_v<From, double> ? 0x1p-50
                                                     : 0x1p-22;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(shape.width * shape.channels);
    const std::size_t column = i / 3 % static_cast<std::size_t>(shape.width);
    const double right = static_cast<double>(pixels[i]) / (down[row % 5] * across[column]);
    ASSERT_NEAR(static_cast<double>(result[i]), right, 1.01 * unit * std::abs(right)) << i;
  }
}

TYPED_TEST(NormalizedImages, AreQuotients) {
  std::vector<float> pixels(std::size_t{2} * 5 * 600 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 113) - 40;
  expect_quotients<float, float>(this->backend(), pixels);
  expect_quotients<float, Float16>(this->backend(), pixels);
  expect_quotients<double, double>(this->backend(), std::vector<double>(pixels.begin(), pixels.end()));
  std::vector<Float16> halves(pixels.size());
  std::transform(pixels.begin(), pixels.end(), halves.begin(), recursive_filter::nearest_float16);
  expect_quotients<Float16, float>(this->backend(), halves);
}

TYPED_TEST(NormalizedImages, RefuseOutputsOfOtherExtents) {
  const FilterImages<const float, TypeParam::kSpace> images(
      ImageView<const float, TypeParam::kSpace>(nullptr, 4, 5, 3));
  const FilterImages<float, TypeParam::kSpace> narrow(ImageView<float, TypeParam::kSpace>(nullptr, 4, 4, 3));
  const auto run = [&] { normalize<float, float>(this->executor(), images, {}, narrow); };
  EXPECT_THROW(run(), std::invalid_argument);
}

/// More rows than a grid has, of images lower than its step.
TYPED_TEST(NormalizedImages, GoThroughManyRowsOfManyImages) {
  const FilterShape shape{3, 2};
  const std::int64_t count = 300001;
  const FilteredCertainties certainties{{{0.5, 0.25, 0.125}}, {}};
  const std::vector<float> ones(static_cast<std::size_t>(count * 6), 1.0F);
  const auto result = normalized<float, float>(this->backend(), ones, shape, count, certainties);
  for (std::size_t i = 0; i < result.size(); ++i) {
    ASSERT_EQ(result[i], static_cast<float>(2 << (i / 2 % 3))) << i;
  }
}

/// Whole blurs, as the service makes them: grey stays grey up to the border, whatever the sigma.
template <class Backend>
void expect_grey_stays(Backend& backend, FilterShape shape, double sigma) {
  const std::vector<float> grey(static_cast<std::size_t>(shape.height * shape.width * shape.channels), 0.25F);
  BackendArray<Backend, float> from(backend, grey);
  BackendArray<Backend, float> to(backend, grey.size());
  const auto images = images_of(from.const_span(), shape, 1);
  const auto result = images_of(to.span(), shape, 1);
  const AxisFilter axis = deriche_filter(sigma, 0, FilterBoundary::kZero);
  const FilteredCertainties certainties{filtered_certainty(axis, shape.height),
                                        filtered_certainty(axis, shape.width)};
  const RecursiveFilter filter{axis, axis};
  RecursiveFilterChoice choice;
  choice.max_truncation_error *= certainties.smallest();
  backend.executor().reserve_scratch(
      apply_recursive_filter_scratch_bytes(images, filter, backend.executor().numbers(), choice) +
      normalize_scratch_bytes<float>(certainties));
  apply_recursive_filter<float>(backend.executor(), images, filter, result, choice);
  normalize<float, float>(backend.executor(), images_of(to.const_span(), shape, 1), certainties, result);
  for (const float pixel : to.to_host()) ASSERT_NEAR(pixel, 0.25F, 2e-6F) << sigma;
}

TYPED_TEST(NormalizedImages, OfGreyAreGrey) {
  for (const double sigma : {0.5, 3.0, 12.0, 60.0, 1000.0}) {
    expect_grey_stays(this->backend(), {70, 333, 3}, sigma);
    expect_grey_stays(this->backend(), {1, 9, 1}, sigma);
    expect_grey_stays(this->backend(), {513, 640, 1}, sigma);
  }
}

}  // namespace
}  // namespace cumulus
