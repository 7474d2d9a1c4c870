#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/summed_area_table/summed_area_table.h"
#include "tests/cases/summed_area_table_boxes.h"
#include "tests/kernels/summed_area_table_building.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using testing::build;
using testing::build_job;
using testing::describe;
using testing::image_patterns;
using testing::ImagePattern;
using testing::ImageShape;
using testing::job_of;
using testing::make_image;
using testing::Tables;
using testing::TestImage;

template <class Backend>
class SummedAreaTableForms : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(SummedAreaTableForms, testing::Backends, testing::BackendNames);

/// Every form of table that a pair of types allows, of images of a few tiles.
template <class Sum, class Backend, class Input>
void expect_every_form(Backend& backend, const TestImage<Input>& image) {
  for (const bool exclusive : {false, true}) {
    SCOPED_TRACE(exclusive ? "exclusive" : "inclusive");
    auto job = job_of<Sum>(backend, image);
    job.exclusive = exclusive;
    EXPECT_EQ(verify_summed_area_table(image, build_job(backend, image.elements, job).sums.data(), exclusive),
              "");
    if constexpr (kSumsSquares<Input, Sum>) {
      const Tables<Sum> tables = build_job(backend, image.elements, job, true);
      EXPECT_EQ(verify_summed_area_table(image, tables.sums.data(), exclusive), "");
      EXPECT_EQ(verify_summed_area_table(squares_of(image), tables.squares.data(), exclusive), "");
    }
  }
}

const std::vector<ImageShape> kFewTiles = {{1, 1}, {3, 5}, {129, 127}, {97, 300}};

/// 44 of 45 images have interleaved channels or padded rows or both.
template <class Input, class Sum, class Backend>
void expect_every_form_of(Backend& backend) {
  for (const ImageShape shape : kFewTiles) {
    for (const int channels : {1, 3, 4}) {
      for (const int padding : {0, 5}) {
        for (const ImagePattern pattern : image_patterns<Input>()) {
          SCOPED_TRACE(describe(shape, channels, padding, pattern));
          expect_every_form<Sum>(backend, make_image<Input>(shape, channels, padding, pattern));
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TYPED_TEST(SummedAreaTableForms, OffersEveryFormOfBytesAndShorts) {
  expect_every_form_of<std::uint8_t, std::uint32_t>(this->backend());
  expect_every_form_of<std::uint8_t, std::uint64_t>(this->backend());
  expect_every_form_of<std::uint16_t, std::uint32_t>(this->backend());
  expect_every_form_of<std::uint16_t, std::uint64_t>(this->backend());
}

TYPED_TEST(SummedAreaTableForms, OffersEveryFormOfWords) {
  expect_every_form_of<std::uint32_t, std::uint64_t>(this->backend());
  expect_every_form_of<std::int32_t, std::int64_t>(this->backend());
}

TYPED_TEST(SummedAreaTableForms, OffersEveryFormOfHalves) {
  expect_every_form_of<Float16, float>(this->backend());
  expect_every_form_of<Float16, double>(this->backend());
}

TYPED_TEST(SummedAreaTableForms, OffersEveryFormOfFloatsAndDoubles) {
  expect_every_form_of<float, float>(this->backend());
  expect_every_form_of<float, double>(this->backend());
  expect_every_form_of<double, double>(this->backend());
}

TYPED_TEST(SummedAreaTableForms, SumsSignedPixelsOfBothSigns) {
  auto image = make_image<std::int32_t>({70, 200}, 1, 0, ImagePattern::kRandom);
  for (std::size_t i = 0; i < image.elements.size(); i += 2) image.elements[i] = ~image.elements[i];
  image.elements[0] = std::numeric_limits<std::int32_t>::min();
  const auto table = build<std::int64_t>(this->backend(), image);
  EXPECT_EQ(verify_summed_area_table(image, table.data()), "");
  EXPECT_LT(table[0], 0);
}

/// A stack of images, each with rows of its own below it that must not be summed.
template <class Input, class Sum, class Backend>
void expect_planes(Backend& backend, ImageShape shape, int channels, int planes) {
  constexpr std::int64_t kGap = 3;
  const auto stack =
      make_image<Input>({(shape.height + kGap) * planes, shape.width}, channels, 0, ImagePattern::kRandom);
  auto job = job_of<Sum>(backend, stack);
  job.image.height = shape.height;
  job.planes = planes;
  job.plane_stride = (shape.height + kGap) * stack.row_stride;
  for (const bool exclusive : {false, true}) {
    job.exclusive = exclusive;
    const auto tables = build_job(backend, stack.elements, job, kSumsSquares<Input, Sum>);
    const std::int64_t border = exclusive ? 1 : 0;
    const std::int64_t table = (shape.height + border) * (shape.width + border) * channels;
    for (int plane = 0; plane < planes; ++plane) {
      TestImage<Input> image(shape, channels);
      std::copy_n(stack.row(plane * (shape.height + kGap)), image.elements.size(), image.elements.begin());
      SCOPED_TRACE(plane);
      EXPECT_EQ(verify_summed_area_table(image, tables.sums.data() + plane * table, exclusive), "");
      if constexpr (kSumsSquares<Input, Sum>) {
        EXPECT_EQ(
            verify_summed_area_table(squares_of(image), tables.squares.data() + plane * table, exclusive),
            "");
      }
    }
  }
}

TYPED_TEST(SummedAreaTableForms, SumsEachPlaneByItself) {
  expect_planes<float, float>(this->backend(), {64, 128}, 1, 5);
  expect_planes<float, double>(this->backend(), {65, 131}, 3, 4);
  expect_planes<std::uint8_t, std::uint32_t>(this->backend(), {200, 150}, 2, 3);
  expect_planes<std::uint16_t, std::uint64_t>(this->backend(), {30, 300}, 3, 3);
  expect_planes<Float16, float>(this->backend(), {1, 1}, 4, 700);
}

/// Builds the table of a stack of two images less their means; checks the means too.
template <class Input, class Backend>
void expect_centered(Backend& backend, ImageShape shape, int channels) {
  const auto stack = make_image<Input>({2 * shape.height, shape.width}, channels, 3, ImagePattern::kRandom);
  auto job = job_of<float>(backend, stack);
  job.image.height = shape.height;
  job.planes = 2;
  job.plane_stride = shape.height * stack.row_stride;
  BackendArray<Backend, Input> pixels(backend, stack.elements);
  job.image.data = pixels.const_span().data();
  BackendArray<Backend, float> means(backend, static_cast<std::size_t>(2 * channels));
  backend.executor().reserve_scratch(average_image_scratch_bytes(job));
  average_image(backend.executor(), job, means.span());
  const std::vector<float> offsets = means.to_host();
  job.offsets = means.const_span().data();
  const auto tables = build_job(backend, stack.elements, job);
  for (int plane = 0; plane < 2; ++plane) {
    TestImage<Input> image(shape, channels);
    for (std::int64_t y = 0; y < shape.height; ++y)
      std::copy_n(stack.row(plane * shape.height + y), image.row_elements(), image.row(y));
    const float* mean = offsets.data() + plane * channels;
    for (int channel = 0; channel < channels; ++channel) {
      const auto all = testing::naive_rectangle(
          image, {0, 0, static_cast<std::int32_t>(shape.height), static_cast<std::int32_t>(shape.width)},
          channel);
      EXPECT_NEAR(mean[channel], static_cast<double>(all.sum) / static_cast<double>(all.pixels), 0x1p-24);
    }
    const auto centered = testing::map_image<float>(
        image, [&](Input pixel, std::int64_t channel) { return static_cast<float>(pixel) - mean[channel]; });
    EXPECT_EQ(
        verify_summed_area_table(centered, tables.sums.data() + plane * image.height * image.row_elements()),
        "");
  }
}

TYPED_TEST(SummedAreaTableForms, SubtractsTheMeanFirst) {
  for (const ImageShape shape : {ImageShape{1, 1}, ImageShape{65, 129}, ImageShape{130, 300}}) {
    expect_centered<float>(this->backend(), shape, 1);
    expect_centered<float>(this->backend(), shape, 3);
    expect_centered<Float16>(this->backend(), shape, 2);
  }
}

/// Every kernel that build_summed_area_table may launch, on images of two or three rows and columns of tiles:
/// small enough for compute-sanitizer's racecheck, under which a block that waits for another is slow.
template <class Backend>
class SummedAreaTableOfSmallImages : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(SummedAreaTableOfSmallImages, testing::Backends, testing::BackendNames);

template <class Input, class Sum, class Backend>
void expect_every_kernel(Backend& backend) {
  for (const int channels : {1, 2, 3, 4}) {
    SCOPED_TRACE(channels);
    const ImageShape shape{130, channels == 3 ? 130 : 260 / channels};
    expect_every_form<Sum>(backend, make_image<Input>(shape, channels, 0, ImagePattern::kRandom));
  }
  expect_planes<Input, Sum>(backend, {64, 128}, 1, 2);
}

TYPED_TEST(SummedAreaTableOfSmallImages, HaveEveryFormOfIntegers) {
  expect_every_kernel<std::uint8_t, std::uint32_t>(this->backend());
  expect_every_kernel<std::uint8_t, std::uint64_t>(this->backend());
  expect_every_kernel<std::uint16_t, std::uint32_t>(this->backend());
  expect_every_kernel<std::uint16_t, std::uint64_t>(this->backend());
  expect_every_kernel<std::uint32_t, std::uint64_t>(this->backend());
  expect_every_kernel<std::int32_t, std::int64_t>(this->backend());
}

TYPED_TEST(SummedAreaTableOfSmallImages, HaveEveryFormOfFloats) {
  expect_every_kernel<Float16, float>(this->backend());
  expect_every_kernel<Float16, double>(this->backend());
  expect_every_kernel<float, float>(this->backend());
  expect_every_kernel<float, double>(this->backend());
  expect_every_kernel<double, double>(this->backend());
}

TYPED_TEST(SummedAreaTableOfSmallImages, AreSummedLessTheirMeans) {
  expect_centered<float>(this->backend(), {65, 129}, 3);
  expect_centered<Float16>(this->backend(), {65, 129}, 1);
}

}  // namespace
}  // namespace cumulus
