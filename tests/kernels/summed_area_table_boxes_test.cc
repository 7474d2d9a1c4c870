#include "tests/cases/summed_area_table_boxes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "kernels/summed_area_table/queries.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using ::testing::HasSubstr;
using testing::image_patterns;
using testing::ImagePattern;
using testing::ImageShape;
using testing::make_image;
using testing::NaiveBox;
using testing::TestImage;
using testing::verify_box_filter;
using testing::verify_square_filter;

struct Boundaries {
  Boundary kernel;
  const char* name;
};
constexpr Boundaries kExact{Boundary::kExact, "exact"};
constexpr Boundaries kClamp{Boundary::kClamp, "clamp"};
constexpr Boundaries kRepeat{Boundary::kRepeat, "repeat"};
constexpr Boundaries kMirror{Boundary::kMirror, "mirror"};
constexpr std::array<Boundaries, 5> kBoundaries = {
    {kExact, {Boundary::kZero, "zero"}, kClamp, kRepeat, {Boundary::kReflect, "reflect"}}};

struct Filtered {
  std::vector<float> means;
  std::vector<float> deviations;
};

/// Filters in fresh, poisoned memory; checks that exactly the stated scratch was taken, and that as its peak.
template <class Backend, class Input>
Filtered filter(Backend& backend, const TestImage<Input>& image, const BoxShape& box, bool deviations = false,
                const std::vector<float>& radii = {}) {
  BackendArray<Backend, Input> pixels(backend, image.elements);
  const auto count = static_cast<std::size_t>(image.height * image.row_elements());
  BackendArray<Backend, float> means(backend, count);
  BackendArray<Backend, float> spreads(backend, deviations ? count : 0);
  BackendArray<Backend, float> map(backend, radii);
  BoxFilterJob<Input, Backend::kSpace> job;
  job.image = {pixels.const_span().data(), image.height, image.width, image.channels, image.row_stride};
  job.means = {means.span().data(), image.height, image.width, image.channels};
  if (deviations) job.deviations = spreads.span().data();
  if (!radii.empty()) job.radii = map.const_span().data();
  job.box = box;
  const std::size_t scratch_bytes = filter_box_scratch_bytes(job, backend.executor().numbers());
  backend.executor().reserve_scratch(scratch_bytes);
  filter_box(backend.executor(), job);
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  return {means.to_host(), spreads.to_host()};
}

template <class Backend, class Input>
std::vector<float> filter(Backend& backend, const TestImage<Input>& image, std::int64_t radius) {
  return filter(backend, image, BoxShape{radius, radius}).means;
}

template <class Backend>
class BoxFilters : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(BoxFilters, testing::Backends, testing::BackendNames);

const std::vector<ImageShape> kBoxShapes = {{1, 1}, {1, 40}, {40, 1}, {7, 5}, {31, 23}};

template <class Input, class Backend>
void expect_naive_means(Backend& backend, const std::vector<ImageShape>& shapes) {
  for (const ImageShape shape : shapes) {
    for (const int channels : {1, 2, 3, 4}) {
      for (const ImagePattern pattern : image_patterns<Input>()) {
        const auto image = make_image<Input>(shape, channels, channels - 1, pattern);
        for (const std::int64_t radius : {0, 1, 6, 64, 1000}) {
          ASSERT_EQ(verify_square_filter(image, radius, filter(backend, image, radius).data()), "")
              << name_of(pattern) << ", radius " << radius << ", " << shape.height << " x " << shape.width
              << " x " << channels;
        }
      }
    }
  }
}

TYPED_TEST(BoxFilters, FiltersIntegersAsTheNaiveBoxDoes) {
  expect_naive_means<std::uint8_t>(this->backend(), kBoxShapes);
  expect_naive_means<std::uint16_t>(this->backend(), {{13, 21}});
  expect_naive_means<std::uint32_t>(this->backend(), {{13, 21}});
  expect_naive_means<std::int32_t>(this->backend(), {{13, 21}});
}

TYPED_TEST(BoxFilters, FiltersFloatsAsTheNaiveBoxDoes) {
  expect_naive_means<float>(this->backend(), kBoxShapes);
  expect_naive_means<Float16>(this->backend(), {{13, 21}});
  expect_naive_means<double>(this->backend(), {{13, 21}});
}

TYPED_TEST(BoxFilters, FiltersExactlyWhereBoxesOverflow32Bits) {
  const auto image = make_image<std::uint8_t>({4200, 4100}, 1, 0, ImagePattern::kConstant);
  using summed_area_table::box_sums_fit_32_bits;
  ASSERT_FALSE(box_sums_fit_32_bits(image.height, image.width, {5000, 5000}));
  for (const float mean : filter(this->backend(), image, 5000)) ASSERT_EQ(mean, 255.0f);
  ASSERT_TRUE(box_sums_fit_32_bits(image.height, image.width, {2000, 2000}));
  for (const float mean : filter(this->backend(), image, 2000)) ASSERT_EQ(mean, 255.0f);
  // A border that repeats the image makes the box as large as its radius says.
  ASSERT_FALSE(box_sums_fit_32_bits(10, 10, {2100, 2100, Boundary::kRepeat, Boundary::kClamp}));
}

/// Both moments, with a radius of its own along each axis.
template <class Input, class Backend>
void expect_boundaries_of(Backend& backend, const TestImage<Input>& image, Boundaries vertical,
                          Boundaries horizontal) {
  for (const auto& [radius_y, radius_x] : {std::array{0, 3}, std::array{2, 1}, std::array{19, 30}}) {
    SCOPED_TRACE(std::string(vertical.name) + ", " + horizontal.name + ", " + std::to_string(radius_y));
    const BoxShape box{radius_y, radius_x, vertical.kernel, horizontal.kernel};
    const NaiveBox naive{radius_y, radius_x, vertical.name, horizontal.name};
    const auto box_at = [&](std::int64_t, std::int64_t) { return naive; };
    constexpr bool kDeviations = !(std::is_integral_v<Input> && sizeof(Input) == 4);
    const Filtered filtered = filter(backend, image, box, kDeviations);
    ASSERT_EQ(verify_box_filter(image, box_at, filtered.means.data(),
                                kDeviations ? filtered.deviations.data() : nullptr),
              "");
    if (kDeviations) {
      ASSERT_EQ(verify_box_filter(image, box_at, filter(backend, image, box).means.data()), "");
    }
  }
}

/// On every pair of boundaries.
template <class Input, class Backend>
void expect_boundaries(Backend& backend, ImageShape shape, int channels) {
  const auto image = make_image<Input>(shape, channels, 2, ImagePattern::kRandom);
  for (const Boundaries vertical : kBoundaries) {
    for (const Boundaries horizontal : kBoundaries) {
      expect_boundaries_of(backend, image, vertical, horizontal);
    }
  }
}

/// A mirror along one axis or both.
template <class Input, class Backend>
void expect_mirrors(Backend& backend, ImageShape shape, int channels) {
  const auto image = make_image<Input>(shape, channels, 2, ImagePattern::kRandom);
  for (const Boundaries other : kBoundaries) {
    expect_boundaries_of(backend, image, kMirror, other);
    expect_boundaries_of(backend, image, other, kMirror);
  }
  expect_boundaries_of(backend, image, kMirror, kMirror);
}

TYPED_TEST(BoxFilters, GoesOnBeyondTheEdgesAsAsked) {
  for (const ImageShape shape : {ImageShape{1, 1}, ImageShape{5, 1}, ImageShape{6, 11}}) {
    expect_boundaries<float>(this->backend(), shape, 1);
    expect_boundaries<std::uint8_t>(this->backend(), shape, 3);
    expect_boundaries<std::int32_t>(this->backend(), shape, 1);
    expect_boundaries<std::uint16_t>(this->backend(), shape, 1);
  }
}

TYPED_TEST(BoxFilters, GoOnInAMirror) {
  for (const ImageShape shape :
       {ImageShape{1, 1}, ImageShape{5, 1}, ImageShape{1, 2}, ImageShape{2, 3}, ImageShape{6, 11}}) {
    expect_mirrors<float>(this->backend(), shape, 1);
    expect_mirrors<std::uint8_t>(this->backend(), shape, 3);
    expect_mirrors<std::int32_t>(this->backend(), shape, 1);
  }
  expect_mirrors<double>(this->backend(), {4, 5}, 2);
  expect_mirrors<Float16>(this->backend(), {4, 5}, 4);
  expect_mirrors<std::uint16_t>(this->backend(), {4, 5}, 1);
  expect_mirrors<std::uint32_t>(this->backend(), {4, 5}, 1);
}

/// Large enough that a GPU takes no table; every `step`th element is compared.
template <class Input, class Backend>
void expect_sliding_boxes(Backend& backend, ImageShape shape, int channels, std::int64_t row_padding,
                          std::int64_t step, const std::vector<std::array<int, 2>>& radii,
                          std::span<const Boundaries> boundaries = kBoundaries) {
  const auto image = make_image<Input>(shape, channels, row_padding, ImagePattern::kRandom);
  for (const Boundaries boundary : boundaries) {
    for (const auto& [radius_y, radius_x] : radii) {
      SCOPED_TRACE(std::string(boundary.name) + ", " + std::to_string(radius_y) + ", channels " +
                   std::to_string(channels));
      const BoxShape box{radius_y, radius_x, boundary.kernel, boundary.kernel};
      BoxFilterJob<Input, Space::kDevice> job;
      job.image = {nullptr, shape.height, shape.width, channels};
      job.box = box;
      ASSERT_TRUE(summed_area_table::takes_sliding_boxes(job));
      const NaiveBox naive{radius_y, radius_x, boundary.name, boundary.name};
      const auto box_at = [&](std::int64_t, std::int64_t) { return naive; };
      EXPECT_EQ(verify_box_filter(image, box_at, filter(backend, image, box).means.data(), nullptr, step),
                "");
    }
  }
}

TYPED_TEST(BoxFilters, SlidesBoxesOverLargeImages) {
  const std::vector<std::array<int, 2>> radii = {{3, 8}, {21, 2}};
  expect_sliding_boxes<float>(this->backend(), {1025, 4099}, 1, 3, 3989, radii);
  expect_sliding_boxes<std::uint8_t>(this->backend(), {1400, 1001}, 3, 5, 3989, radii);
  expect_sliding_boxes<float>(this->backend(), {600, 2048}, 3, 0, 3989, radii);
  expect_sliding_boxes<Float16>(this->backend(), {601, 2048}, 4, 0, 3989, radii);
}

/// As wide as it takes, and higher and wider than the image.
TYPED_TEST(BoxFilters, SlidesLargeBoxes) {
  expect_sliding_boxes<float>(this->backend(), {400, 700}, 1, 0, 9973, {{2, 512}});
  expect_sliding_boxes<float>(this->backend(), {460, 200}, 3, 0, 9973, {{2, 256}});
  expect_sliding_boxes<std::uint8_t>(this->backend(), {100, 700}, 4, 0, 9973, {{2, 128}});
  expect_sliding_boxes<float>(this->backend(), {20, 50000}, 3, 0, 9973, {{22, 3}});
}

/// Rows of several pieces and segments of a CPU (cpu/sliding_boxes.h).
TEST(BoxFiltersOnTheCpu, SlideOverPiecesOfRowsAndSegments) {
  testing::CpuBackend backend;
  const auto expect_right = [&](const auto& image, const BoxShape& radii) {
    for (const Boundaries boundary : {kBoundaries[0], kBoundaries[2], kBoundaries[3], kMirror}) {
      SCOPED_TRACE(boundary.name);
      const BoxShape box{radii.radius_y, radii.radius_x, boundary.kernel, boundary.kernel};
      const NaiveBox naive{box.radius_y, box.radius_x, boundary.name, boundary.name};
      const auto box_at = [&](std::int64_t, std::int64_t) { return naive; };
      EXPECT_EQ(verify_box_filter(image, box_at, filter(backend, image, box).means.data(), nullptr, 499), "");
    }
  };
  expect_right(make_image<float>({70, 17001}, 1, 3, ImagePattern::kRandom), {3, 200});
  expect_right(make_image<double>({300, 5001}, 3, 3, ImagePattern::kRandom), {64, 8});
  expect_right(make_image<Float16>({300, 4200}, 2, 3, ImagePattern::kRandom), {20, 256});
  expect_right(make_image<std::uint8_t>({200, 4100}, 4, 3, ImagePattern::kRandom), {40, 0});
  expect_right(make_image<std::int32_t>({140, 8200}, 1, 3, ImagePattern::kRandom), {5, 30});
}

TYPED_TEST(BoxFilters, SlideInAMirror) {
  const std::array mirror = {kMirror};
  expect_sliding_boxes<float>(this->backend(), {131, 1001}, 1, 3, 97, {{1, 8}, {0, 2}}, mirror);
  expect_sliding_boxes<std::uint8_t>(this->backend(), {90, 501}, 3, 1, 97, {{1, 8}, {0, 2}}, mirror);
  expect_sliding_boxes<double>(this->backend(), {260, 260}, 2, 0, 97, {{1, 8}}, mirror);
  expect_sliding_boxes<float>(this->backend(), {20, 50000}, 3, 0, 9973, {{22, 3}}, mirror);
  expect_sliding_boxes<float>(this->backend(), {1, 200000}, 1, 0, 997, {{1, 3}}, mirror);
}

TYPED_TEST(BoxFilters, ALatLongMapGoesOnAtItsLeftEdge) {
  auto map = make_image<float>({8, 16}, 1, 0, ImagePattern::kConstant);
  for (std::int64_t y = 0; y < 8; ++y) map.row(y)[15] = 7;
  const auto means = filter(this->backend(), map, {1, 1, Boundary::kClamp, Boundary::kRepeat}).means;
  for (std::int64_t y = 0; y < 8; ++y) {
    EXPECT_EQ(means[static_cast<std::size_t>(y * 16)], means[static_cast<std::size_t>(y * 16 + 14)]);
    EXPECT_GT(means[static_cast<std::size_t>(y * 16)], 2.0f);
  }
}

template <class Backend>
void expect_boxes_of_a_map(Backend& backend, const Boundaries& down, const Boundaries& across, int channels) {
  const std::vector<float> wanted = {0, 1, 2.4f, 2.5f, -3, NAN, 9, 1e30f, INFINITY};
  const std::vector<std::int64_t> rounded = {0, 1, 2, 3, 0, 0, 9, 12, 12};
  constexpr std::int64_t kWidth = 31;
  const auto image = make_image<float>({29, kWidth}, channels, 0, ImagePattern::kRandom);
  std::vector<float> radii(29 * kWidth);
  for (std::size_t i = 0; i < radii.size(); ++i) radii[i] = wanted[i * 5 % wanted.size()];
  const BoxShape box{12, 4, down.kernel, across.kernel};
  const auto box_at = [&](std::int64_t y, std::int64_t x) {
    const std::int64_t radius = rounded[static_cast<std::size_t>(y * kWidth + x) * 5 % wanted.size()];
    return NaiveBox{radius, std::min<std::int64_t>(radius, 4), down.name, across.name};
  };
  const auto both = filter(backend, image, box, true, radii);
  EXPECT_EQ(verify_box_filter(image, box_at, both.means.data(), both.deviations.data()), "");
  // Means alone: on a GPU a kernel of their own for boxes inside the image.
  const auto alone = filter(backend, image, box, false, radii);
  EXPECT_EQ(verify_box_filter(image, box_at, alone.means.data(), nullptr), "");
}

TYPED_TEST(BoxFilters, TakesTheRadiusOfEachPixelFromAMap) {
  expect_boxes_of_a_map(this->backend(), kExact, kExact, 1);
  expect_boxes_of_a_map(this->backend(), kRepeat, kRepeat, 3);
  for (const int channels : {1, 2, 3, 4}) expect_boxes_of_a_map(this->backend(), kClamp, kClamp, channels);
}

TYPED_TEST(BoxFilters, WithAMapGoOnInAMirror) {
  expect_boxes_of_a_map(this->backend(), kMirror, kMirror, 1);
  expect_boxes_of_a_map(this->backend(), kMirror, kExact, 3);
}

TYPED_TEST(BoxFilters, WithAMapTakeTheBoundaryOfEachAxis) {
  expect_boxes_of_a_map(this->backend(), kExact, kRepeat, 1);
  expect_boxes_of_a_map(this->backend(), kRepeat, kExact, 1);
}

/// Of images that take a table: to every box that ends in the row and column of a NaN or Inf, or beyond.
TYPED_TEST(BoxFilters, SpreadsNanAndInfToBoxesThatEndAtThemOrBeyond) {
  for (const float pixel :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto image = make_image<float>({40, 50}, 1, 0, ImagePattern::kIntegers);
    image.row(20)[30] = pixel;
    for (const Boundary boundary : {Boundary::kExact, Boundary::kZero}) {
      const auto filtered = filter(this->backend(), image, {3, 5, boundary, boundary}, true);
      for (std::int64_t y = 0; y < image.height; ++y) {
        for (std::int64_t x = 0; x < image.width; ++x) {
          const auto at = static_cast<std::size_t>(y * image.width + x);
          const bool spoiled = y + 3 >= 20 && x + 5 >= 30;
          ASSERT_EQ(!std::isfinite(filtered.means[at]), spoiled) << pixel << " at " << y << ", " << x;
          ASSERT_EQ(!std::isfinite(filtered.deviations[at]), spoiled) << pixel << " at " << y << ", " << x;
        }
      }
    }
  }
}

TYPED_TEST(BoxFilters, RefusesFiltersThatDoNotFit) {
  BoxFilterJob<std::uint32_t, TypeParam::kSpace> job;
  job.image = {nullptr, 4, 4};
  job.means = {nullptr, 4, 4};
  const auto text_of = [&]() -> std::string {
    try {
      filter_box(this->executor(), job);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  job.box.radius_y = -1;
  EXPECT_THAT(text_of(), HasSubstr("the radii are -1 and 0"));
  job.box.radius_y = 0;
  float deviation = 0;
  job.deviations = &deviation;
  EXPECT_THAT(text_of(), HasSubstr("deviations of 32-bit integers"));
  job.means.height = 3;
  EXPECT_THAT(text_of(), HasSubstr("the output is 3 x 4 x 1"));
}

template <class Backend>
class BoxFiltersOfSmallImages : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(BoxFiltersOfSmallImages, testing::Backends, testing::BackendNames);

TYPED_TEST(BoxFiltersOfSmallImages, AreRight) {
  expect_boundaries<float>(this->backend(), {3, 5}, 1);
  expect_boundaries<double>(this->backend(), {3, 5}, 1);
  expect_boundaries<Float16>(this->backend(), {3, 5}, 1);
  expect_boundaries<std::uint8_t>(this->backend(), {3, 5}, 1);
  expect_boundaries<std::uint16_t>(this->backend(), {3, 5}, 1);
  expect_boundaries<std::uint32_t>(this->backend(), {3, 5}, 1);
  expect_boundaries<std::int32_t>(this->backend(), {3, 5}, 1);
}

/// The smallest that a GPU takes no table for.
TYPED_TEST(BoxFiltersOfSmallImages, SlideRight) {
  const std::vector<std::array<int, 2>> radii = {{1, 8}, {0, 2}};
  expect_sliding_boxes<float>(this->backend(), {131, 1001}, 1, 3, 97, radii);
  expect_sliding_boxes<float>(this->backend(), {90, 512}, 3, 0, 97, radii);
  expect_sliding_boxes<double>(this->backend(), {260, 260}, 2, 0, 97, radii);
  expect_sliding_boxes<Float16>(this->backend(), {90, 512}, 3, 0, 97, radii);
  expect_sliding_boxes<std::uint8_t>(this->backend(), {64, 516}, 4, 0, 97, radii);
  expect_sliding_boxes<std::uint8_t>(this->backend(), {90, 501}, 3, 1, 97, radii);
  expect_sliding_boxes<std::uint16_t>(this->backend(), {130, 512}, 2, 0, 97, radii);
  expect_sliding_boxes<std::uint32_t>(this->backend(), {260, 512}, 1, 0, 97, radii);
  expect_sliding_boxes<std::int32_t>(this->backend(), {90, 512}, 3, 0, 97, radii);
}

using LargeBoxFiltersOnCuda = testing::OnEveryBackend<testing::CudaBackend>;

/// 2.3 GB of floats; takes 10 GB of the device's memory. Small boxes go without a table.
TEST_F(LargeBoxFiltersOnCuda, SlowAreRightBeyondTwoToThe31Bytes) {
  TestImage<float> image({29000, 20001}, 1);
  for (std::size_t i = 0; i < image.elements.size(); ++i)
    image.elements[i] = static_cast<float>(i * 2654435761U % 1024) * 0x1p-10f;
  for (const std::int64_t radius : {3, 20}) {
    const std::vector<float> means = filter(backend(), image, radius);
    const auto box_at = [&](std::int64_t, std::int64_t) { return NaiveBox{radius, radius}; };
    EXPECT_EQ(verify_box_filter(image, box_at, means.data(), nullptr, 9973), "") << radius;
  }
}

TEST(BoxFilterVerifier, RefusesOneWrongMeanAndOneWrongDeviation) {
  testing::CpuBackend backend;
  const auto bytes = make_image<std::uint8_t>({20, 25}, 3, 0, ImagePattern::kRandom);
  auto means = filter(backend, bytes, 3);
  means[77] = std::nextafter(means[77], 0.0f);
  EXPECT_THAT(verify_square_filter(bytes, 3, means.data()), HasSubstr("element 77"));
  const auto floats = make_image<float>({20, 25}, 1, 0, ImagePattern::kRandom);
  means = filter(backend, floats, 3);
  means[78] *= 1 + 0x1p-21f;
  EXPECT_THAT(verify_square_filter(floats, 3, means.data()), HasSubstr("element 78"));
  auto both = filter(backend, floats, BoxShape{3, 3}, true);
  const auto box_at = [](std::int64_t, std::int64_t) { return NaiveBox{3, 3}; };
  both.deviations[79] *= 1 + 0x1p-20f;
  EXPECT_THAT(verify_box_filter(floats, box_at, both.means.data(), both.deviations.data()),
              HasSubstr("element 79: variance"));
}

}  // namespace
}  // namespace cumulus
