#include "kernels/summed_area_table/summed_area_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
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
using testing::kSummedAreaTableShapes;
using testing::make_image;
using testing::TestImage;

template <class Backend, class Input>
ImageView<const Input, Backend::kSpace> view_of(const TestImage<Input>& image,
                                                Span<const Input, Backend::kSpace> at) {
  return {at.data(), image.height, image.width, image.channels, image.row_stride};
}

/// Builds the table in fresh, poisoned memory; checks that exactly the stated scratch was taken.
template <class Sum, class Backend, class Input>
std::vector<Sum> build(Backend& backend, const TestImage<Input>& image) {
  BackendArray<Backend, Input> pixels(backend, image.elements);
  BackendArray<Backend, Sum> table(backend, static_cast<std::size_t>(image.height * image.row_elements()));
  const auto view = view_of<Backend>(image, pixels.const_span());
  const ImageView<Sum, Backend::kSpace> sums(table.span().data(), image.height, image.width, image.channels);
  const std::size_t scratch_bytes = build_summed_area_table_scratch_bytes(view, sums);
  backend.executor().reserve_scratch(scratch_bytes);
  build_summed_area_table(backend.executor(), view, sums);
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  return table.to_host();
}

template <class Backend, class Input>
std::vector<float> filter(Backend& backend, const TestImage<Input>& image, std::int64_t radius) {
  BackendArray<Backend, Input> pixels(backend, image.elements);
  BackendArray<Backend, float> means(backend, static_cast<std::size_t>(image.height * image.row_elements()));
  const auto view = view_of<Backend>(image, pixels.const_span());
  const ImageView<float, Backend::kSpace> filtered(means.span().data(), image.height, image.width,
                                                   image.channels);
  const std::size_t scratch_bytes = filter_box_scratch_bytes(view, radius, filtered);
  backend.executor().reserve_scratch(scratch_bytes);
  filter_box(backend.executor(), view, radius, filtered);
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  return means.to_host();
}

std::string describe(ImageShape shape, std::int64_t channels, std::int64_t padding, ImagePattern pattern) {
  return std::string(name_of(pattern)) + ", " + std::to_string(shape.height) + " x " +
         std::to_string(shape.width) + " x " + std::to_string(channels) + ", rows padded by " +
         std::to_string(padding);
}

/// Calls check(image) for every shape, number of channels, padding and pattern.
template <class Input, class Check>
void for_every_image(const std::vector<ImageShape>& shapes, const Check& check) {
  for (const ImageShape shape : shapes) {
    for (const int channels : {1, 2, 3, 4}) {
      for (const int padding : {0, channels == 1 ? 16 : 5}) {
        for (const ImagePattern pattern : image_patterns<Input>()) {
          SCOPED_TRACE(describe(shape, channels, padding, pattern));
          check(make_image<Input>(shape, channels, padding, pattern));
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

template <class Backend>
class SummedAreaTable : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(SummedAreaTable, testing::Backends, testing::BackendNames);

TYPED_TEST(SummedAreaTable, MatchesTheOracleOnEveryImageOfBytes) {
  for_every_image<std::uint8_t>(kSummedAreaTableShapes, [&](const TestImage<std::uint8_t>& image) {
    EXPECT_EQ(verify_summed_area_table(image, build<std::uint32_t>(this->backend(), image).data()), "");
    EXPECT_EQ(verify_summed_area_table(image, build<std::uint64_t>(this->backend(), image).data()), "");
  });
}

TYPED_TEST(SummedAreaTable, MatchesTheOracleOnEveryImageOfFloats) {
  for_every_image<float>(kSummedAreaTableShapes, [&](const TestImage<float>& image) {
    EXPECT_EQ(verify_summed_area_table(image, build<double>(this->backend(), image).data()), "");
    EXPECT_EQ(verify_summed_area_table(image, build<float>(this->backend(), image).data()), "");
  });
}

TYPED_TEST(SummedAreaTable, MatchesTheOracleOnManyTiles) {
  for (const ImageShape shape : {ImageShape{2500, 1701}, ImageShape{1, 300000}, ImageShape{300000, 1}}) {
    const auto bytes = make_image<std::uint8_t>(shape, 1, 0, ImagePattern::kRandom);
    EXPECT_EQ(verify_summed_area_table(bytes, build<std::uint32_t>(this->backend(), bytes).data()), "");
    const auto floats = make_image<float>(shape, 1, 0, ImagePattern::kRandom);
    EXPECT_EQ(verify_summed_area_table(floats, build<double>(this->backend(), floats).data()), "");
    EXPECT_EQ(verify_summed_area_table(floats, build<float>(this->backend(), floats).data()), "");
  }
}

TYPED_TEST(SummedAreaTable, WrapsAroundModulo2To32) {
  const auto image = make_image<std::uint8_t>({4200, 4100}, 1, 0, ImagePattern::kConstant);
  EXPECT_EQ(verify_summed_area_table(image, build<std::uint32_t>(this->backend(), image).data()), "");
  EXPECT_EQ(verify_summed_area_table(image, build<std::uint64_t>(this->backend(), image).data()), "");
}

TYPED_TEST(SummedAreaTable, GivesTheSameBitsEachTime) {
  const auto image = make_image<float>({1000, 2001}, 1, 3, ImagePattern::kCancelling);
  const auto singles = build<float>(this->backend(), image);
  const auto doubles = build<double>(this->backend(), image);
  for (int repeat = 0; repeat < 4; ++repeat) {
    EXPECT_TRUE(build<float>(this->backend(), image) == singles);
    EXPECT_TRUE(build<double>(this->backend(), image) == doubles);
  }
}

TYPED_TEST(SummedAreaTable, SpreadsNanBelowAndToTheRightOnly) {
  auto image = make_image<float>({300, 400}, 1, 0, ImagePattern::kIntegers);
  image.row(130)[150] = std::numeric_limits<float>::quiet_NaN();
  const auto table = build<double>(this->backend(), image);
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      ASSERT_EQ(std::isnan(table[static_cast<std::size_t>(y * image.width + x)]), y >= 130 && x >= 150)
          << "row " << y << ", column " << x;
    }
  }
}

TYPED_TEST(SummedAreaTable, TakesTheStatedScratchAtItsPeak) {
  const auto image = make_image<std::uint8_t>({500, 700}, 2, 0, ImagePattern::kRandom);
  filter(this->backend(), image, 4);
  ImageView<const std::uint8_t, TypeParam::kSpace> pixels(nullptr, 500, 700, 2);
  ImageView<float, TypeParam::kSpace> filtered(nullptr, 500, 700, 2);
  EXPECT_EQ(this->executor().scratch_arena().high_water_bytes(),
            filter_box_scratch_bytes(pixels, 4, filtered));
}

TYPED_TEST(SummedAreaTable, RefusesViewsThatDoNotFit) {
  using Image = ImageView<const float, TypeParam::kSpace>;
  using Sums = ImageView<double, TypeParam::kSpace>;
  const auto text_of = [&](const Image& image, const Sums& sums) -> std::string {
    try {
      build_summed_area_table(this->executor(), image, sums);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(text_of({nullptr, 0, 4}, {nullptr, 0, 4}),
              HasSubstr("the image is 0 x 4 x 1; it must have at least one"));
  EXPECT_THAT(text_of({nullptr, 4, 4, 5}, {nullptr, 4, 4, 5}), HasSubstr("1 to 4 channels"));
  EXPECT_THAT(text_of({nullptr, 4, 4, 3, 11}, {nullptr, 4, 4, 3}), HasSubstr("rows are 11 elements apart"));
  EXPECT_THAT(text_of({nullptr, 4, 4}, {nullptr, 4, 5}),
              HasSubstr("the output is 4 x 5 x 1; the image is 4 x 4 x 1"));
  EXPECT_THAT(text_of({nullptr, 4, 4}, {nullptr, 4, 4, 1, 8}), HasSubstr("must be dense, 4 apart"));
  EXPECT_THROW(filter_box(this->executor(), Image{nullptr, 4, 4}, -1,
                          ImageView<float, TypeParam::kSpace>{nullptr, 4, 4}),
               std::invalid_argument);
}

TYPED_TEST(SummedAreaTable, DoesNotStartForACallerWhoHasLeft) {
  struct Always : Interrupt {
    bool requested() const override { return true; }
  } always;
  this->executor().set_interrupt(&always);
  const auto image = make_image<float>({8, 8}, 1, 0, ImagePattern::kRandom);
  EXPECT_THROW(build<double>(this->backend(), image), Interrupted);
}

const std::vector<ImageShape> kBoxShapes = {{1, 1}, {1, 40}, {40, 1}, {7, 5}, {31, 67}, {66, 65}};

TYPED_TEST(SummedAreaTable, FiltersBytesAsTheNaiveBoxDoes) {
  for_every_image<std::uint8_t>(kBoxShapes, [&](const TestImage<std::uint8_t>& image) {
    for (const std::int64_t radius : {0, 1, 6, 64, 1000}) {
      EXPECT_EQ(verify_box_filter(image, radius, filter(this->backend(), image, radius).data()), "")
          << radius;
    }
  });
}

TYPED_TEST(SummedAreaTable, FiltersFloatsAsTheNaiveBoxDoes) {
  for_every_image<float>(kBoxShapes, [&](const TestImage<float>& image) {
    for (const std::int64_t radius : {0, 1, 6, 64, 1000}) {
      EXPECT_EQ(verify_box_filter(image, radius, filter(this->backend(), image, radius).data()), "")
          << radius;
    }
  });
}

TYPED_TEST(SummedAreaTable, FiltersExactlyWhereBoxesOverflow32Bits) {
  const auto image = make_image<std::uint8_t>({4200, 4100}, 1, 0, ImagePattern::kConstant);
  ASSERT_FALSE(summed_area_table::box_sums_fit_32_bits(image.height, image.width, 5000));
  for (const float mean : filter(this->backend(), image, 5000)) ASSERT_EQ(mean, 255.0f);
  ASSERT_TRUE(summed_area_table::box_sums_fit_32_bits(image.height, image.width, 2000));
  for (const float mean : filter(this->backend(), image, 2000)) ASSERT_EQ(mean, 255.0f);
}

/// Builds the table, then asks it for every rectangle; of whole numbers, so that all is exact.
template <class Sum, class Backend, class Input>
void expect_exact_rectangles(Backend& backend, const TestImage<Input>& image) {
  const auto edges = testing::make_rectangles({image.height, image.width}, 300);
  std::vector<Rectangle> rectangles;
  for (const auto& edge : edges) rectangles.push_back({edge[0], edge[1], edge[2], edge[3]});
  BackendArray<Backend, Rectangle> asked(backend, rectangles);
  BackendArray<Backend, Sum> table(backend, build<Sum>(backend, image));
  BackendArray<Backend, Sum> sums(backend, rectangles.size() * static_cast<std::size_t>(image.channels));
  BackendArray<Backend, double> means(backend, rectangles.size() * static_cast<std::size_t>(image.channels));
  const ImageView<const Sum, Backend::kSpace> view(table.span().data(), image.height, image.width,
                                                   image.channels);
  sum_rectangles(backend.executor(), view, asked.const_span(), sums.span());
  average_rectangles(backend.executor(), view, asked.const_span(), means.span());
  const std::vector<Sum> got_sums = sums.to_host();
  const std::vector<double> got_means = means.to_host();
  for (std::size_t i = 0; i < got_sums.size(); ++i) {
    const auto channels = static_cast<std::size_t>(image.channels);
    const auto right =
        testing::naive_rectangle(image, edges[i / channels], static_cast<std::int64_t>(i % channels));
    ASSERT_EQ(static_cast<long double>(got_sums[i]), right.sum) << "rectangle " << i / channels;
    if (right.pixels == 0) {
      ASSERT_TRUE(std::isnan(got_means[i])) << "rectangle " << i / channels;
    } else {
      ASSERT_EQ(got_means[i], static_cast<double>(right.sum) / static_cast<double>(right.pixels));
    }
  }
}

TYPED_TEST(SummedAreaTable, SumsAndAveragesEveryKindOfRectangle) {
  for (const ImageShape shape : {ImageShape{1, 1}, ImageShape{37, 53}, ImageShape{130, 140}}) {
    for (const int channels : {1, 3, 4}) {
      const auto bytes = make_image<std::uint8_t>(shape, channels, 0, ImagePattern::kRandom);
      expect_exact_rectangles<std::uint32_t>(this->backend(), bytes);
      expect_exact_rectangles<std::uint64_t>(this->backend(), bytes);
      const auto floats = make_image<float>(shape, channels, 0, ImagePattern::kIntegers);
      expect_exact_rectangles<float>(this->backend(), floats);
      expect_exact_rectangles<double>(this->backend(), floats);
    }
  }
}

TYPED_TEST(SummedAreaTable, RefusesResultsThatDoNotMatchTheRectangles) {
  const ImageView<const double, TypeParam::kSpace> table(nullptr, 4, 4, 2);
  const Span<const Rectangle, TypeParam::kSpace> rectangles(nullptr, 3);
  EXPECT_THROW(
      sum_rectangles(this->executor(), table, rectangles, Span<double, TypeParam::kSpace>(nullptr, 3)),
      std::invalid_argument);
}

TEST(SummedAreaTableOnTheCpu, DoesNotDependOnTheNumberOfThreads) {
  const auto image = make_image<float>({1000, 801}, 3, 0, ImagePattern::kCancelling);
  const HostImage<const float> view(image.elements.data(), image.height, image.width, image.channels);
  std::vector<std::vector<double>> tables;
  for (const int threads : {1, 2, 5}) {
    CpuExecutor executor(threads);
    std::vector<double>& table = tables.emplace_back(image.elements.size());
    build_summed_area_table(executor, view, {table.data(), image.height, image.width, image.channels});
  }
  EXPECT_TRUE(tables[0] == tables[1]);
  EXPECT_TRUE(tables[0] == tables[2]);
}

/// One build with all its memory, on an executor of its own.
struct BuildOnCuda {
  BuildOnCuda(CudaDevice& device, ImageShape shape)
      : image(make_image<float>(shape, 1, 0, ImagePattern::kRandom)),
        executor(device),
        pixels(executor.allocate(image.elements.size() * sizeof(float))),
        table(executor.allocate(image.elements.size() * sizeof(double))),
        host(image.elements.size()) {
    executor.upload({reinterpret_cast<const std::byte*>(image.elements.data()), pixels.bytes()},
                    {pixels.data(), pixels.bytes()});
    executor.reserve_scratch(build_summed_area_table_scratch_bytes(view(), sums()));
  }

  DeviceImage<const float> view() const {
    return {pixels.as<const float>(host.size()).data(), image.height, image.width};
  }
  DeviceImage<double> sums() const {
    return {table.as<double>(host.size()).data(), image.height, image.width};
  }
  void start() {
    executor.reuse_scratch();
    build_summed_area_table(executor, view(), sums());
  }
  std::string verify() {
    executor.download({table.data(), table.bytes()},
                      {reinterpret_cast<std::byte*>(host.data()), table.bytes()});
    executor.synchronize();
    return verify_summed_area_table(image, host.data());
  }

  TestImage<float> image;
  CudaExecutor executor;
  DeviceMemory pixels;
  DeviceMemory table;
  std::vector<double> host;
};

TEST(SummedAreaTableOnCuda, IsRightWhileManyAreBuiltAtOnce) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
  CudaDevice device(0);
  std::vector<std::unique_ptr<BuildOnCuda>> builds;
  for (int i = 0; i < 64; ++i) {
    builds.push_back(
        std::make_unique<BuildOnCuda>(device, ImageShape{1 + 37 * i % 1500, 1 + 211 * i % 2300}));
  }
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const auto& build : builds) build->start();
  }
  for (const auto& build : builds) EXPECT_EQ(build->verify(), "");
}

TEST(SummedAreaTableVerifier, RefusesOneWrongInteger) {
  testing::CpuBackend backend;
  const auto image = make_image<std::uint8_t>({40, 50}, 3, 0, ImagePattern::kRandom);
  auto table = build<std::uint32_t>(backend, image);
  table[4321] += 1;
  EXPECT_THAT(verify_summed_area_table(image, table.data()), HasSubstr("row 28, element 121 of the row"));
}

TEST(SummedAreaTableVerifier, RefusesOneFloatOffByOneBitWhereSumsAreExact) {
  testing::CpuBackend backend;
  const auto image = make_image<float>({40, 50}, 1, 0, ImagePattern::kIntegers);
  auto table = build<float>(backend, image);
  table[1999] = std::nextafter(table[1999], 0.0f);
  EXPECT_THAT(verify_summed_area_table(image, table.data()), HasSubstr("row 39, element 49 of the row"));
}

TEST(SummedAreaTableVerifier, RefusesAFloatBeyondTheBoundAndNan) {
  testing::CpuBackend backend;
  const auto image = make_image<float>({40, 50}, 1, 0, ImagePattern::kRandom);
  const auto table = build<float>(backend, image);
  auto wrong = table;
  wrong[1999] *= 1 + 2 * 90 * 0x1p-24f;
  EXPECT_NE(verify_summed_area_table(image, wrong.data()), "");
  wrong = table;
  wrong[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(verify_summed_area_table(image, wrong.data()), "");
}

TEST(SummedAreaTableVerifier, RefusesOneWrongMean) {
  testing::CpuBackend backend;
  const auto bytes = make_image<std::uint8_t>({40, 50}, 1, 0, ImagePattern::kRandom);
  auto means = filter(backend, bytes, 3);
  means[77] = std::nextafter(means[77], 0.0f);
  EXPECT_THAT(verify_box_filter(bytes, 3, means.data()), HasSubstr("element 77"));
  const auto floats = make_image<float>({40, 50}, 1, 0, ImagePattern::kRandom);
  means = filter(backend, floats, 3);
  means[78] *= 1 + 0x1p-21f;
  EXPECT_THAT(verify_box_filter(floats, 3, means.data()), HasSubstr("element 78"));
}

}  // namespace
}  // namespace cumulus
