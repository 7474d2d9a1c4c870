#include "kernels/summed_area_table/summed_area_table_queries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tests/cases/summed_area_table_case.h"
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
constexpr std::array<Boundaries, 5> kBoundaries = {{{Boundary::kExact, "exact"},
                                                    {Boundary::kZero, "zero"},
                                                    {Boundary::kClamp, "clamp"},
                                                    {Boundary::kRepeat, "repeat"},
                                                    {Boundary::kReflect, "reflect"}}};

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
  const std::size_t scratch_bytes = filter_box_scratch_bytes(job);
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
class TableQueries : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(TableQueries, testing::Backends, testing::BackendNames);

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

TYPED_TEST(TableQueries, FiltersIntegersAsTheNaiveBoxDoes) {
  expect_naive_means<std::uint8_t>(this->backend(), kBoxShapes);
  expect_naive_means<std::uint16_t>(this->backend(), {{13, 21}});
  expect_naive_means<std::uint32_t>(this->backend(), {{13, 21}});
  expect_naive_means<std::int32_t>(this->backend(), {{13, 21}});
}

TYPED_TEST(TableQueries, FiltersFloatsAsTheNaiveBoxDoes) {
  expect_naive_means<float>(this->backend(), kBoxShapes);
  expect_naive_means<Float16>(this->backend(), {{13, 21}});
  expect_naive_means<double>(this->backend(), {{13, 21}});
}

TYPED_TEST(TableQueries, FiltersExactlyWhereBoxesOverflow32Bits) {
  const auto image = make_image<std::uint8_t>({4200, 4100}, 1, 0, ImagePattern::kConstant);
  using summed_area_table::box_sums_fit_32_bits;
  ASSERT_FALSE(box_sums_fit_32_bits(image.height, image.width, {5000, 5000}));
  for (const float mean : filter(this->backend(), image, 5000)) ASSERT_EQ(mean, 255.0f);
  ASSERT_TRUE(box_sums_fit_32_bits(image.height, image.width, {2000, 2000}));
  for (const float mean : filter(this->backend(), image, 2000)) ASSERT_EQ(mean, 255.0f);
  // A border that repeats the image makes the box as large as its radius says.
  ASSERT_FALSE(box_sums_fit_32_bits(10, 10, {2100, 2100, Boundary::kRepeat, Boundary::kClamp}));
}

/// Both moments on every pair of boundaries, with a radius of its own along each axis.
template <class Input, class Backend>
void expect_boundaries(Backend& backend, ImageShape shape, int channels) {
  const auto image = make_image<Input>(shape, channels, 2, ImagePattern::kRandom);
  for (const Boundaries vertical : kBoundaries) {
    for (const Boundaries horizontal : kBoundaries) {
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
  }
}

TYPED_TEST(TableQueries, GoesOnBeyondTheEdgesAsAsked) {
  for (const ImageShape shape : {ImageShape{1, 1}, ImageShape{5, 1}, ImageShape{6, 11}}) {
    expect_boundaries<float>(this->backend(), shape, 1);
    expect_boundaries<std::uint8_t>(this->backend(), shape, 3);
    expect_boundaries<std::int32_t>(this->backend(), shape, 1);
    expect_boundaries<std::uint16_t>(this->backend(), shape, 1);
  }
}

TYPED_TEST(TableQueries, ALatLongMapGoesOnAtItsLeftEdge) {
  auto map = make_image<float>({8, 16}, 1, 0, ImagePattern::kConstant);
  for (std::int64_t y = 0; y < 8; ++y) map.row(y)[15] = 7;
  const auto means = filter(this->backend(), map, {1, 1, Boundary::kClamp, Boundary::kRepeat}).means;
  for (std::int64_t y = 0; y < 8; ++y) {
    EXPECT_EQ(means[static_cast<std::size_t>(y * 16)], means[static_cast<std::size_t>(y * 16 + 14)]);
    EXPECT_GT(means[static_cast<std::size_t>(y * 16)], 2.0f);
  }
}

TYPED_TEST(TableQueries, TakesTheRadiusOfEachPixelFromAMap) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> wanted = {
      0, 1, 2.4f, 2.5f, -3, nan, 9, 1e30f, std::numeric_limits<float>::infinity()};
  const std::vector<std::int64_t> rounded = {0, 1, 2, 3, 0, 0, 9, 12, 12};
  for (const auto& [name, channels] : {std::pair("exact", 1), std::pair("repeat", 3)}) {
    const auto image = make_image<float>({14, 17}, channels, 0, ImagePattern::kRandom);
    std::vector<float> radii;
    for (std::size_t i = 0; i < 14 * 17; ++i) radii.push_back(wanted[i * 5 % wanted.size()]);
    const Boundary boundary = std::string(name) == "exact" ? Boundary::kExact : Boundary::kRepeat;
    const auto filtered = filter(this->backend(), image, {12, 4, boundary, boundary}, true, radii);
    const auto box_at = [&, boundary_name = name](std::int64_t y, std::int64_t x) {
      const std::int64_t radius = rounded[static_cast<std::size_t>(y * 17 + x) * 5 % wanted.size()];
      return NaiveBox{radius, std::min<std::int64_t>(radius, 4), boundary_name, boundary_name};
    };
    EXPECT_EQ(verify_box_filter(image, box_at, filtered.means.data(), filtered.deviations.data()), "");
  }
}

TYPED_TEST(TableQueries, RefusesFiltersThatDoNotFit) {
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

/// What of a table's results is asked for.
template <class Sum>
struct Answers {
  std::vector<Sum> sums;
  std::vector<double> means;
  std::vector<double> variances;
  RectangleReport report{-7};
};

std::vector<Rectangle> rectangles_of(const std::vector<std::array<std::int32_t, 4>>& edges) {
  std::vector<Rectangle> rectangles;
  for (const auto& edge : edges) rectangles.push_back({edge[0], edge[1], edge[2], edge[3]});
  return rectangles;
}

template <class Sum, class Backend, class Input>
Answers<Sum> ask(Backend& backend, const TestImage<Input>& image, const std::vector<Rectangle>& rectangles,
                 bool exclusive) {
  constexpr bool kSquares = kSumsSquares<Input, Sum>;
  const std::int64_t border = exclusive ? 1 : 0;
  BackendArray<Backend, Input> pixels(backend, image.elements);
  TableJob<Input, Sum, Backend::kSpace> job;
  job.image = {pixels.const_span().data(), image.height, image.width, image.channels, image.row_stride};
  job.sums = {nullptr, image.height + border, image.width + border, image.channels};
  job.exclusive = exclusive;
  const auto elements = static_cast<std::size_t>(job.sums.elements());
  BackendArray<Backend, Sum> table(backend, elements);
  BackendArray<Backend, Sum> squares(backend, kSquares ? elements : 0);
  job.sums.data = table.span().data();
  if (kSquares) job.squares = squares.span().data();
  backend.executor().reserve_scratch(build_summed_area_table_scratch_bytes(job));
  build_summed_area_table(backend.executor(), job);

  BackendArray<Backend, Rectangle> asked(backend, rectangles);
  const std::size_t count = rectangles.size() * static_cast<std::size_t>(image.channels);
  BackendArray<Backend, Sum> sums(backend, count);
  BackendArray<Backend, double> means(backend, count);
  BackendArray<Backend, double> variances(backend, kSquares ? count : 0);
  const TableView<Sum, Backend::kSpace> view{
      {image.height, image.width, image.channels, exclusive}, job.sums.data, job.squares};
  Answers<Sum> answers;
  backend.executor().synchronize();
  backend.executor().reserve_scratch(sum_rectangles_scratch_bytes<Backend::kSpace>(&answers.report));
  sum_rectangles(backend.executor(), view, asked.const_span(),
                 {sums.span().data(), means.span().data(), kSquares ? variances.span().data() : nullptr},
                 &answers.report);
  answers.sums = sums.to_host();
  answers.means = means.to_host();
  answers.variances = variances.to_host();
  return answers;
}

/// Of pixels that are whole numbers, so that sums and means are exact and variances nearly so.
template <class Sum, class Backend, class Input>
void expect_rectangles(Backend& backend, const TestImage<Input>& image, bool exclusive) {
  const auto edges = testing::make_rectangles({image.height, image.width}, 300);
  const Answers<Sum> answers = ask<Sum>(backend, image, rectangles_of(edges), exclusive);
  EXPECT_EQ(answers.report.first_outside, 3);
  for (std::size_t i = 0; i < answers.sums.size(); ++i) {
    const auto channels = static_cast<std::size_t>(image.channels);
    const auto right =
        testing::naive_rectangle(image, edges[i / channels], static_cast<std::int64_t>(i % channels));
    SCOPED_TRACE(i / channels);
    ASSERT_EQ(static_cast<long double>(answers.sums[i]), right.sum);
    if (right.pixels == 0) {
      ASSERT_TRUE(std::isnan(answers.means[i]));
      ASSERT_TRUE(answers.variances.empty() || std::isnan(answers.variances[i]));
      continue;
    }
    const auto pixels = static_cast<double>(right.pixels);
    const double mean = static_cast<double>(right.sum) / pixels;
    ASSERT_EQ(answers.means[i], mean);
    if (answers.variances.empty()) continue;
    const double mean_square = static_cast<double>(right.squares) / pixels;
    ASSERT_NEAR(answers.variances[i], mean_square - mean * mean, 8 * 0x1p-53 * mean_square);
    ASSERT_GE(answers.variances[i], 0);
  }
}

TYPED_TEST(TableQueries, AnswersEveryKindOfRectangle) {
  for (const ImageShape shape : {ImageShape{1, 1}, ImageShape{37, 53}, ImageShape{130, 140}}) {
    for (const int channels : {1, 3, 4}) {
      for (const bool exclusive : {false, true}) {
        const auto bytes = make_image<std::uint8_t>(shape, channels, 0, ImagePattern::kRandom);
        expect_rectangles<std::uint32_t>(this->backend(), bytes, exclusive);
        expect_rectangles<std::uint64_t>(this->backend(), bytes, exclusive);
        const auto words = make_image<std::int32_t>(shape, channels, 0, ImagePattern::kRandom);
        expect_rectangles<std::int64_t>(this->backend(), words, exclusive);
        const auto floats = make_image<float>(shape, channels, 0, ImagePattern::kIntegers);
        expect_rectangles<float>(this->backend(), floats, exclusive);
        expect_rectangles<double>(this->backend(), floats, exclusive);
      }
    }
  }
}

TYPED_TEST(TableQueries, FindsTheFirstRectangleThatIsNotInside) {
  const auto image = make_image<float>({20, 30}, 2, 0, ImagePattern::kIntegers);
  std::vector<Rectangle> rectangles(20000, Rectangle{2, 3, 20, 30});
  EXPECT_EQ(ask<double>(this->backend(), image, rectangles, false).report.first_outside, -1);
  rectangles[17003] = {0, 0, 21, 1};
  rectangles[17001] = {5, 5, 5, 9};
  EXPECT_EQ(ask<double>(this->backend(), image, rectangles, false).report.first_outside, 17001);
  EXPECT_EQ(ask<double>(this->backend(), image, {}, false).report.first_outside, -1);
}

TYPED_TEST(TableQueries, AddsTheOffsetsOfACenteredTableAgain) {
  constexpr std::int64_t kSide = 40;
  const auto image = make_image<float>({kSide, kSide}, 2, 0, ImagePattern::kIntegers);
  const auto centered = testing::map_image<float>(
      image, [](float pixel, std::int64_t channel) { return pixel - (channel == 0 ? 3.5f : 2.0f); });
  BackendArray<TypeParam, float> pixels(this->backend(), centered.elements);
  BackendArray<TypeParam, float> table(this->backend(), centered.elements.size());
  TableJob<float, float, TypeParam::kSpace> job;
  job.image = {pixels.const_span().data(), kSide, kSide, 2};
  job.sums = {table.span().data(), kSide, kSide, 2};
  this->executor().reserve_scratch(build_summed_area_table_scratch_bytes(job));
  build_summed_area_table(this->executor(), job);
  BackendArray<TypeParam, float> offsets(this->backend(), std::vector<float>{3.5f, 2.0f});
  BackendArray<TypeParam, Rectangle> asked(this->backend(), std::vector<Rectangle>{{3, 4, 30, 35}});
  BackendArray<TypeParam, float> sums(this->backend(), 2);
  BackendArray<TypeParam, double> means(this->backend(), 2);
  const TableView<float, TypeParam::kSpace> view{
      {kSide, kSide, 2, false}, table.span().data(), nullptr, offsets.const_span().data()};
  sum_rectangles(this->executor(), view, asked.const_span(), {sums.span().data(), means.span().data()},
                 nullptr);
  for (const int channel : {0, 1}) {
    const auto right = testing::naive_rectangle(image, {3, 4, 30, 35}, channel);
    EXPECT_EQ(sums.to_host()[static_cast<std::size_t>(channel)], static_cast<float>(right.sum));
    EXPECT_EQ(means.to_host()[static_cast<std::size_t>(channel)],
              static_cast<double>(right.sum) / static_cast<double>(right.pixels));
  }
}

template <class Backend>
struct LocalTable {
  LocalTable(Backend& backend, ImageShape shape, int channels)
      : elements(static_cast<std::size_t>(shape.height * shape.width * channels)),
        local(backend, elements),
        above(backend, static_cast<std::size_t>(local_above_elements(shape.height, shape.width, channels))),
        left(backend, static_cast<std::size_t>(local_left_elements(shape.height, shape.width, channels))) {}

  std::size_t elements;
  BackendArray<Backend, float> local;
  BackendArray<Backend, double> above;
  BackendArray<Backend, double> left;
};

/// Builds a tile-local table and asks it for rectangles, among them every pixel's S(y, x).
template <class Input, class Backend>
void expect_local_table(Backend& backend, ImageShape shape, int channels, ImagePattern pattern) {
  const auto image = make_image<Input>(shape, channels, 3, pattern);
  BackendArray<Backend, Input> pixels(backend, image.elements);
  LocalTable<Backend> table(backend, shape, channels);
  LocalTableJob<Input, Backend::kSpace> job;
  job.image = {pixels.const_span().data(), shape.height, shape.width, channels, image.row_stride};
  job.local = {table.local.span().data(), shape.height, shape.width, channels};
  job.above = table.above.span().data();
  job.left = table.left.span().data();
  const std::size_t scratch_bytes = build_local_summed_area_table_scratch_bytes(job);
  backend.executor().reserve_scratch(scratch_bytes);
  build_local_summed_area_table(backend.executor(), job);
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);

  auto edges = testing::make_rectangles(shape, 200);
  for (std::int32_t y = 1; y <= shape.height; y += 7) {
    for (std::int32_t x = 1; x <= shape.width; x += 5) edges.push_back({0, 0, y, x});
  }
  BackendArray<Backend, Rectangle> asked(backend, rectangles_of(edges));
  const std::size_t count = edges.size() * static_cast<std::size_t>(channels);
  BackendArray<Backend, float> sums(backend, count);
  BackendArray<Backend, double> means(backend, count);
  TableView<float, Backend::kSpace> view{{shape.height, shape.width, channels, false}, job.local.data};
  view.above = job.above;
  view.left = job.left;
  sum_rectangles(backend.executor(), view, asked.const_span(), {sums.span().data(), means.span().data()},
                 nullptr);
  const std::vector<double> got = means.to_host();
  const std::vector<float> got_sums = sums.to_host();
  const double magnitude = testing::magnitude_of(image, false);
  const double of_tile =
      std::min<double>(magnitude, 64 * 128 * (pattern == ImagePattern::kSpikes ? 1e4 : 7.0));
  const bool exact = pattern == ImagePattern::kIntegers;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto channel_count = static_cast<std::size_t>(channels);
    const auto right = testing::naive_rectangle(image, edges[i / channel_count],
                                                static_cast<std::int64_t>(i % channel_count));
    if (right.pixels == 0) {
      ASSERT_TRUE(std::isnan(got[i])) << i;
      continue;
    }
    const auto pixels_in = static_cast<double>(right.pixels);
    const double tolerance =
        exact ? 0
              : (4 * 192 * 0x1p-24 * of_tile +
                 8 * static_cast<double>(shape.height + shape.width) * 0x1p-53 * magnitude) /
                    pixels_in;
    ASSERT_NEAR(got[i], static_cast<double>(right.sum) / pixels_in, tolerance)
        << "rectangle " << i / channel_count;
    ASSERT_NEAR(got_sums[i], static_cast<float>(got[i] * pixels_in), 1e-6 * std::abs(got_sums[i])) << i;
  }
}

TYPED_TEST(TableQueries, AnswersFromTileLocalTables) {
  for (const ImageShape shape :
       {ImageShape{1, 1}, ImageShape{64, 128}, ImageShape{65, 129}, ImageShape{200, 301}}) {
    for (const ImagePattern pattern :
         {ImagePattern::kIntegers, ImagePattern::kRandom, ImagePattern::kSpikes}) {
      expect_local_table<float>(this->backend(), shape, 1, pattern);
      expect_local_table<float>(this->backend(), shape, 3, pattern);
      expect_local_table<Float16>(this->backend(), shape, 2, pattern);
    }
  }
}

template <class Backend>
class QueriesOfSmallImages : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(QueriesOfSmallImages, testing::Backends, testing::BackendNames);

TYPED_TEST(QueriesOfSmallImages, AreRight) {
  expect_boundaries<float>(this->backend(), {6, 11}, 1);
  const auto bytes = make_image<std::uint8_t>({130, 140}, 3, 0, ImagePattern::kRandom);
  expect_rectangles<std::uint64_t>(this->backend(), bytes, true);
  expect_local_table<float>(this->backend(), {65, 129}, 1, ImagePattern::kRandom);
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
