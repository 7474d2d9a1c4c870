#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/summed_area_table/queries.h"
#include "tests/cases/summed_area_table_boxes.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using testing::ImagePattern;
using testing::ImageShape;
using testing::make_image;
using testing::TestImage;

template <class Backend>
class RectangleSums : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(RectangleSums, testing::Backends, testing::BackendNames);

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
  backend.executor().reserve_scratch(
      build_summed_area_table_scratch_bytes(job, backend.executor().numbers()));
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

TYPED_TEST(RectangleSums, AnswersEveryKindOfRectangle) {
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

TYPED_TEST(RectangleSums, FindsTheFirstRectangleThatIsNotInside) {
  const auto image = make_image<float>({20, 30}, 2, 0, ImagePattern::kIntegers);
  std::vector<Rectangle> rectangles(20000, Rectangle{2, 3, 20, 30});
  EXPECT_EQ(ask<double>(this->backend(), image, rectangles, false).report.first_outside, -1);
  rectangles[17003] = {0, 0, 21, 1};
  rectangles[17001] = {5, 5, 5, 9};
  EXPECT_EQ(ask<double>(this->backend(), image, rectangles, false).report.first_outside, 17001);
  EXPECT_EQ(ask<double>(this->backend(), image, {}, false).report.first_outside, -1);
}

TYPED_TEST(RectangleSums, AddsTheOffsetsOfACenteredTableAgain) {
  constexpr std::int64_t kSide = 40;
  const auto image = make_image<float>({kSide, kSide}, 2, 0, ImagePattern::kIntegers);
  const auto centered = testing::map_image<float>(
      image, [](float pixel, std::int64_t channel) { return pixel - (channel == 0 ? 3.5f : 2.0f); });
  BackendArray<TypeParam, float> pixels(this->backend(), centered.elements);
  BackendArray<TypeParam, float> table(this->backend(), centered.elements.size());
  TableJob<float, float, TypeParam::kSpace> job;
  job.image = {pixels.const_span().data(), kSide, kSide, 2};
  job.sums = {table.span().data(), kSide, kSide, 2};
  this->executor().reserve_scratch(build_summed_area_table_scratch_bytes(job, this->executor().numbers()));
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
  const std::size_t scratch_bytes =
      build_local_summed_area_table_scratch_bytes(job, backend.executor().numbers());
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

TYPED_TEST(RectangleSums, AnswersFromTileLocalTables) {
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
class RectanglesOfSmallImages : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(RectanglesOfSmallImages, testing::Backends, testing::BackendNames);

TYPED_TEST(RectanglesOfSmallImages, AreRight) {
  const ImageShape shape{65, 129};
  const auto bytes = make_image<std::uint8_t>(shape, 3, 0, ImagePattern::kRandom);
  expect_rectangles<std::uint32_t>(this->backend(), bytes, false);
  expect_rectangles<std::uint64_t>(this->backend(), bytes, true);
  const auto words = make_image<std::int32_t>(shape, 1, 0, ImagePattern::kRandom);
  expect_rectangles<std::int64_t>(this->backend(), words, false);
  const auto floats = make_image<float>(shape, 1, 0, ImagePattern::kIntegers);
  expect_rectangles<float>(this->backend(), floats, false);
  expect_rectangles<double>(this->backend(), floats, true);
}

TYPED_TEST(RectanglesOfSmallImages, AreRightFromTileLocalTables) {
  expect_local_table<float>(this->backend(), {65, 129}, 1, ImagePattern::kRandom);
  expect_local_table<Float16>(this->backend(), {65, 129}, 2, ImagePattern::kRandom);
}

}  // namespace
}  // namespace cumulus
