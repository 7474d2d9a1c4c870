#include "kernels/summed_area_table/summed_area_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "kernels/summed_area_table/cpu/build.h"
#include "tests/cases/summed_area_table_case.h"
#include "tests/kernels/summed_area_table_building.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::build;
using testing::build_job;
using testing::for_every_image;
using ::testing::HasSubstr;
using testing::ImagePattern;
using testing::ImageShape;
using testing::job_of;
using testing::kSummedAreaTableShapes;
using testing::make_image;
using testing::TestImage;

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

/// And on strips that keep an H200 busy: its kernel for large images.
TYPED_TEST(SummedAreaTable, MatchesTheOracleOnManyTiles) {
  for (const ImageShape shape :
       {ImageShape{2500, 1701}, ImageShape{1, 300000}, ImageShape{300000, 1}, ImageShape{3100, 3840}}) {
    const auto bytes = make_image<std::uint8_t>(shape, 1, 0, ImagePattern::kRandom);
    EXPECT_EQ(verify_summed_area_table(bytes, build<std::uint32_t>(this->backend(), bytes).data()), "");
    const auto floats = make_image<float>(shape, 1, 0, ImagePattern::kRandom);
    EXPECT_EQ(verify_summed_area_table(floats, build<double>(this->backend(), floats).data()), "");
    EXPECT_EQ(verify_summed_area_table(floats, build<float>(this->backend(), floats).data()), "");
  }
}

/// Of one inclusive table: images that are too large for tiles that stay in registers, and too narrow or too
/// low for strips.
TYPED_TEST(SummedAreaTable, MatchesTheOracleBetweenSmallAndLargeImages) {
  for (const ImageShape shape :
       {ImageShape{3000, 2000}, ImageShape{2560, 2560}, ImageShape{1000, 4500}, ImageShape{4200, 2044}}) {
    for (const int padding : {0, 4}) {
      const auto image = make_image<float>(shape, 1, padding, ImagePattern::kCancelling);
      EXPECT_EQ(verify_summed_area_table(image, build<float>(this->backend(), image).data()), "");
    }
  }
}

TYPED_TEST(SummedAreaTable, WrapsAroundModulo2To32) {
  const auto image = make_image<std::uint8_t>({4200, 4100}, 1, 0, ImagePattern::kConstant);
  EXPECT_EQ(verify_summed_area_table(image, build<std::uint32_t>(this->backend(), image).data()), "");
  EXPECT_EQ(verify_summed_area_table(image, build<std::uint64_t>(this->backend(), image).data()), "");
}

TYPED_TEST(SummedAreaTable, GivesTheSameBitsEachTime) {
  for (const int padding : {3, 0}) {
    const auto image = make_image<float>({3100, 3840}, 1, padding, ImagePattern::kCancelling);
    const auto singles = build<float>(this->backend(), image);
    const auto doubles = build<double>(this->backend(), image);
    for (int repeat = 0; repeat < 4; ++repeat) {
      EXPECT_TRUE(build<float>(this->backend(), image) == singles);
      EXPECT_TRUE(build<double>(this->backend(), image) == doubles);
    }
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

TYPED_TEST(SummedAreaTable, RefusesViewsThatDoNotFit) {
  using Job = TableJob<float, double, TypeParam::kSpace>;
  using Image = ImageView<const float, TypeParam::kSpace>;
  using Sums = ImageView<double, TypeParam::kSpace>;
  const auto text_of = [&](const Job& job) -> std::string {
    try {
      build_summed_area_table(this->executor(), job);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(text_of({Image(nullptr, 0, 4), Sums(nullptr, 0, 4)}),
              HasSubstr("the image is 0 x 4 x 1; it must have at least one"));
  EXPECT_THAT(text_of({Image(nullptr, 4, 4, 5), Sums(nullptr, 4, 4, 5)}), HasSubstr("1 to 4 channels"));
  EXPECT_THAT(text_of({Image(nullptr, 4, 4, 3, 11), Sums(nullptr, 4, 4, 3)}),
              HasSubstr("rows are 11 elements apart"));
  EXPECT_THAT(text_of({Image(nullptr, 4, 4), Sums(nullptr, 4, 5)}),
              HasSubstr("the output is 4 x 5 x 1; the image is 4 x 4 x 1"));
  EXPECT_THAT(text_of({Image(nullptr, 4, 4), Sums(nullptr, 4, 4, 1, 8)}),
              HasSubstr("must be dense, 4 apart"));
  EXPECT_THAT(text_of({Image(nullptr, 4, 4), Sums(nullptr, 4, 4), 1, 0, true}),
              HasSubstr("its table has a row and a column more"));
  EXPECT_THAT(text_of({Image(nullptr, 4, 4), Sums(nullptr, 4, 4), 0}), HasSubstr("there are 0 images"));
  const float offset = 0;
  EXPECT_THAT(text_of({Image(nullptr, 4, 4), Sums(nullptr, 4, 4), 1, 0, false, nullptr, &offset}),
              HasSubstr("offsets are for float sums"));
}

TYPED_TEST(SummedAreaTable, DoesNotStartForACallerWhoHasLeft) {
  struct Always : Interrupt {
    bool requested() const override { return true; }
  } always;
  this->executor().set_interrupt(&always);
  const auto image = make_image<float>({8, 8}, 1, 0, ImagePattern::kRandom);
  EXPECT_THROW(build<double>(this->backend(), image), Interrupted);
}

TEST(SummedAreaTableOnTheCpu, DoesNotDependOnTheNumberOfThreads) {
  for (const int channels : {1, 3}) {
    const auto image = make_image<float>({1000, 801}, channels, 0, ImagePattern::kCancelling);
    const HostImage<const float> view(image.elements.data(), image.height, image.width, image.channels);
    std::vector<std::vector<double>> tables;
    for (const int threads : {1, 2, 5}) {
      CpuExecutor executor(threads);
      std::vector<double>& table = tables.emplace_back(image.elements.size());
      build_summed_area_table(executor, TableJob<float, double, Space::kHost>{
                                            view, {table.data(), image.height, image.width, image.channels}});
    }
    EXPECT_TRUE(tables[0] == tables[1]) << channels;
    EXPECT_TRUE(tables[0] == tables[2]) << channels;
  }
}

template <class Vectors, class Input, class Sum>
void expect_right_with() {
  CpuExecutor executor;
  for_every_image<Input>({{1, 1}, {31, 37}, {129, 129}}, [&](const TestImage<Input>& image) {
    std::vector<Sum> sums(static_cast<std::size_t>(image.height * image.row_elements()));
    TableJob<Input, Sum, Space::kHost> job;
    job.image = {image.elements.data(), image.height, image.width, image.channels, image.row_stride};
    job.sums = {sums.data(), image.height, image.width, image.channels};
    summed_area_table::build_with<Vectors>(executor, job);
    EXPECT_EQ(verify_summed_area_table(image, sums.data()), "");
  });
}

template <class Vectors>
void expect_every_pair_right_with() {
  expect_right_with<Vectors, std::uint8_t, std::uint32_t>();
  expect_right_with<Vectors, std::uint8_t, std::uint64_t>();
  expect_right_with<Vectors, std::uint16_t, std::uint32_t>();
  expect_right_with<Vectors, std::uint16_t, std::uint64_t>();
  expect_right_with<Vectors, std::uint32_t, std::uint64_t>();
  expect_right_with<Vectors, std::int32_t, std::int64_t>();
  expect_right_with<Vectors, float, float>();
  expect_right_with<Vectors, float, double>();
  expect_right_with<Vectors, double, double>();
}

// Other tests take the widest vectors that the machine has.
TEST(SummedAreaTableOnTheCpu, MatchesTheOracleWithPlainVectors) {
  expect_every_pair_right_with<PlainVectors>();
}

TEST(SummedAreaTableOnTheCpu, MatchesTheOracleWithWideVectors) {
  if (!has_wide_vectors()) GTEST_SKIP() << "this processor has no AVX2";
  expect_every_pair_right_with<WideVectors>();
}

template <class Sum, class Input>
void expect_right_past_the_caches(ImageShape shape) {
  testing::CpuBackend backend;
  const auto image = make_image<Input>(shape, 1, 0, ImagePattern::kRandom);
  auto job = job_of<Sum>(backend, image);
  for (const bool exclusive : {false, true}) {
    job.exclusive = exclusive;
    EXPECT_EQ(verify_summed_area_table(image, build_job(backend, image.elements, job).sums.data(), exclusive),
              "")
        << shape.height << " x " << shape.width << (exclusive ? ", exclusive" : "");
  }
}

// Tables so large that they are written past the caches, a line of 64 bytes at a time; of rows that begin
// with lines and that do not, and that are shorter than one.
TEST(SummedAreaTableOnTheCpu, MatchesTheOracleWhereTablesDoNotStayInTheCaches) {
  for (const ImageShape shape : {ImageShape{1501, 4112}, ImageShape{1501, 4109}, ImageShape{700'001, 9}}) {
    expect_right_past_the_caches<float, float>(shape);
    expect_right_past_the_caches<double, float>(shape);
    expect_right_past_the_caches<std::uint32_t, std::uint8_t>(shape);
  }
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

}  // namespace
}  // namespace cumulus
