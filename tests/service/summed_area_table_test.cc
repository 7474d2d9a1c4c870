#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/runtime/array_spec.h"
#include "tests/service/summed_area_table_fixture.h"
#include "tests/support/test_server.h"

namespace cumulus {
namespace {

using testing::expect_bad_field;
using testing::SummedAreaTableService;

TEST_F(SummedAreaTableService, SumsAnInlineImageInOneCall) {
  v1::BuildSummedAreaTableRequest request;
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {2, 3}, {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(build(request).ok());
  const auto* sums = testing::find_array(result_, "sums");
  ASSERT_NE(sums, nullptr);
  EXPECT_EQ(sums->inline_array().spec().element_type(), v1::FLOAT64);
  EXPECT_EQ(testing::values_of<double>(sums->inline_array()), (std::vector<double>{1, 3, 6, 5, 12, 21}));
  EXPECT_EQ(result_.timings().device(), "cpu");
}

TEST_F(SummedAreaTableService, OffersEveryPairOfElementAndAccumulator) {
  v1::BuildSummedAreaTableRequest bytes;
  testing::set_inline<std::uint8_t>(*bytes.mutable_image(), v1::UINT8, {1, 2}, {255, 1});
  ASSERT_TRUE(build(bytes).ok());
  EXPECT_EQ(testing::values_of<std::uint32_t>(result_.arrays(0).inline_array()),
            (std::vector<std::uint32_t>{255, 256}));
  bytes.set_accumulator(v1::UINT64);
  ASSERT_TRUE(build(bytes).ok());
  EXPECT_EQ(testing::values_of<std::uint64_t>(result_.arrays(0).inline_array()),
            (std::vector<std::uint64_t>{255, 256}));
  auto single = floats({1, 2});
  single.set_accumulator(v1::FLOAT32);
  ASSERT_TRUE(build(single).ok());
  EXPECT_EQ(testing::values_of<float>(result_.arrays(0).inline_array()), (std::vector<float>{1, 2}));
}

TEST_F(SummedAreaTableService, RefusesShapesThatAreNoImage) {
  expect_bad_field(build(floats({4})), "image", "[height, width]");
  expect_bad_field(build(floats({1, 1, 1, 1})), "image", "[height, width]");
  expect_bad_field(build(floats({0, 4})), "image", "at least 1");
  expect_bad_field(build(floats({4, 4, 5})), "image", "5 channels");
}

template <class T, class S>
struct Pair {
  v1::ElementType image;
  v1::ElementType accumulator;
  std::vector<T> pixels;
  std::vector<S> sums;
};

TEST_F(SummedAreaTableService, SumsEveryTypeInItsDefaultAccumulator) {
  const auto expect = [&]<class T, class S>(const Pair<T, S>& pair) {
    v1::BuildSummedAreaTableRequest request;
    testing::set_inline<T>(*request.mutable_image(), pair.image, {1, 2}, pair.pixels);
    ASSERT_TRUE(build(request).ok());
    EXPECT_EQ(result_.arrays(0).inline_array().spec().element_type(), pair.accumulator);
    EXPECT_EQ(values<S>("sums"), pair.sums);
  };
  expect(Pair<std::uint8_t, std::uint32_t>{v1::UINT8, v1::UINT32, {200, 100}, {200, 300}});
  expect(Pair<std::uint16_t, std::uint64_t>{v1::UINT16, v1::UINT64, {65535, 2}, {65535, 65537}});
  expect(
      Pair<std::uint32_t, std::uint64_t>{v1::UINT32, v1::UINT64, {4294967295, 2}, {4294967295, 4294967297}});
  expect(Pair<std::int32_t, std::int64_t>{v1::INT32, v1::INT64, {-5, 2}, {-5, -3}});
  expect(Pair<std::uint16_t, double>{v1::FLOAT16, v1::FLOAT64, {0x3C00, 0xC100}, {1, -1.5}});
  expect(Pair<float, double>{v1::FLOAT32, v1::FLOAT64, {0.5f, 2}, {0.5, 2.5}});
  expect(Pair<double, double>{v1::FLOAT64, v1::FLOAT64, {0.5, 2}, {0.5, 2.5}});
}

/// The table of the accumulator's comment in summed_area_table.proto, and nothing else.
TEST_F(SummedAreaTableService, TakesThesePairsOfElementAndAccumulatorOnly) {
  const std::map<v1::ElementType, std::set<v1::ElementType>> offered = {
      {v1::UINT8, {v1::UINT32, v1::UINT64}},
      {v1::UINT16, {v1::UINT32, v1::UINT64}},
      {v1::UINT32, {v1::UINT64}},
      {v1::INT32, {v1::INT64}},
      {v1::FLOAT16, {v1::FLOAT32, v1::FLOAT64}},
      {v1::FLOAT32, {v1::FLOAT32, v1::FLOAT64}},
      {v1::FLOAT64, {v1::FLOAT64}}};
  for (int element = v1::UINT8; element <= v1::ElementType_MAX; ++element) {
    const auto type = static_cast<v1::ElementType>(element);
    v1::BuildSummedAreaTableRequest request;
    testing::set_inline<std::uint8_t>(*request.mutable_image(), type, {1, 1},
                                      std::vector<std::uint8_t>(server::element_size(type)));
    const auto pairs = offered.find(type);
    if (pairs == offered.end()) expect_bad_field(build(request), "image", "UINT8 or UINT16");
    if (pairs == offered.end()) continue;
    for (int sum = v1::UINT8; sum <= v1::ElementType_MAX; ++sum) {
      const auto accumulator = static_cast<v1::ElementType>(sum);
      SCOPED_TRACE(v1::ElementType_Name(type) + " in " + v1::ElementType_Name(accumulator));
      request.set_accumulator(accumulator);
      if (!pairs->second.contains(accumulator)) {
        expect_bad_field(build(request), "accumulator", "is right");
        continue;
      }
      ASSERT_TRUE(build(request).ok());
      EXPECT_EQ(testing::find_array(result_, "sums")->inline_array().spec().element_type(), accumulator);
    }
  }
}

TEST_F(SummedAreaTableService, RefusesElementsAndAccumulatorsThatDoNotGoTogether) {
  v1::BuildSummedAreaTableRequest wide;
  testing::set_inline<std::int64_t>(*wide.mutable_image(), v1::INT64, {1, 1}, {1});
  expect_bad_field(build(wide), "image", "INT64; UINT8 or UINT16");
  auto wrong = floats({1, 1});
  wrong.set_accumulator(v1::UINT32);
  expect_bad_field(build(wrong), "accumulator", "FLOAT64 or FLOAT32");
  wrong.set_accumulator(static_cast<v1::ElementType>(99));
  expect_bad_field(build(wrong), "accumulator", "99");
  v1::BuildSummedAreaTableRequest words;
  testing::set_inline<std::int32_t>(*words.mutable_image(), v1::INT32, {1, 1}, {1});
  words.set_accumulator(v1::UINT64);
  expect_bad_field(build(words), "accumulator", "for INT32 images INT64 is right");
}

TEST_F(SummedAreaTableService, AnExclusiveTableBeginsWithZeros) {
  auto request = floats({2, 1, 2});
  request.set_exclusive(true);
  ASSERT_TRUE(build(request).ok());
  EXPECT_EQ(shape("sums"), (std::vector<std::int64_t>{3, 2, 2}));
  EXPECT_EQ(values<double>("sums"), (std::vector<double>{0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 2, 2}));
}

TEST_F(SummedAreaTableService, SumsSquaresBesides) {
  v1::BuildSummedAreaTableRequest request;
  testing::set_inline<std::uint8_t>(*request.mutable_image(), v1::UINT8, {1, 2}, {3, 200});
  request.set_squares(true);
  ASSERT_TRUE(build(request).ok());
  EXPECT_EQ(values<std::uint64_t>("sums"), (std::vector<std::uint64_t>{3, 203}));
  EXPECT_EQ(values<std::uint64_t>("squares"), (std::vector<std::uint64_t>{9, 40009}));
  request.set_accumulator(v1::UINT32);
  expect_bad_field(build(request), "accumulator", "for UINT8 images with squares UINT64 is right");
  v1::BuildSummedAreaTableRequest words;
  testing::set_inline<std::int32_t>(*words.mutable_image(), v1::INT32, {1, 1}, {1});
  words.set_squares(true);
  expect_bad_field(build(words), "squares", "no room");
}

TEST_F(SummedAreaTableService, SumsEachImageOfAPlanarStack) {
  v1::BuildSummedAreaTableRequest request;
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {2, 1, 3}, {1, 2, 3, 10, 20, 30});
  request.set_planar(true);
  ASSERT_TRUE(build(request).ok());
  EXPECT_EQ(shape("sums"), (std::vector<std::int64_t>{2, 1, 3}));
  EXPECT_EQ(values<double>("sums"), (std::vector<double>{1, 3, 6, 10, 30, 60}));
  auto flat = floats({2, 2});
  flat.set_planar(true);
  expect_bad_field(build(flat), "image", "[images, height, width]");
  auto none = floats({0, 2, 2});
  none.set_planar(true);
  expect_bad_field(build(none), "image", "at least one image");
}

TEST_F(SummedAreaTableService, LeavesThePaddingOfRowsOut) {
  v1::BuildSummedAreaTableRequest request;
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {2, 3}, {1, 2, 99, 3, 4, 99});
  request.set_width(2);
  ASSERT_TRUE(build(request).ok());
  EXPECT_EQ(shape("sums"), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(values<double>("sums"), (std::vector<double>{1, 3, 4, 10}));
  request.set_width(4);
  expect_bad_field(build(request), "width", "0 to 3");
  request.set_width(-1);
  expect_bad_field(build(request), "width", "is -1");
}

TEST_F(SummedAreaTableService, SumsPixelsLessTheirMean) {
  v1::BuildSummedAreaTableRequest request;
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {1, 2, 2}, {1, 10, 3, 30});
  request.set_precision(v1::MEAN_SUBTRACTED_SUMS);
  ASSERT_TRUE(build(request).ok());
  EXPECT_EQ(values<float>("sums"), (std::vector<float>{-1, -10, 0, 0}));
  EXPECT_EQ(values<float>("offsets"), (std::vector<float>{2, 20}));
  request.set_accumulator(v1::FLOAT64);
  expect_bad_field(build(request), "accumulator",
                   "for FLOAT32 images of MEAN_SUBTRACTED_SUMS FLOAT32 is right");
  request.clear_accumulator();
  request.set_squares(true);
  expect_bad_field(build(request), "squares", "MEAN_SUBTRACTED_SUMS");
  request.set_precision(static_cast<v1::SumPrecision>(7));
  expect_bad_field(build(request), "precision", "is 7");
  v1::BuildSummedAreaTableRequest bytes;
  testing::set_inline<std::uint8_t>(*bytes.mutable_image(), v1::UINT8, {1, 1}, {1});
  bytes.set_precision(v1::MEAN_SUBTRACTED_SUMS);
  expect_bad_field(build(bytes), "precision", "for UINT8 images PLAIN_SUMS");
}

TEST_F(SummedAreaTableService, SumsWithinTilesOnTopOfBases) {
  auto request = floats({65, 130});
  request.set_precision(v1::TILE_LOCAL_SUMS);
  ASSERT_TRUE(build(request).ok());
  EXPECT_EQ(values<float>("sums").back(), 2.0f);  // of the last tile's two pixels
  EXPECT_EQ(shape("above"), (std::vector<std::int64_t>{3, 131, 1}));
  EXPECT_EQ(shape("left"), (std::vector<std::int64_t>{2, 65, 3, 1}));
  v1::SumRectanglesRequest asked;
  testing::set_inline<float>(*asked.mutable_sums(), v1::FLOAT32, {65, 130}, values<float>("sums"));
  testing::set_inline<double>(*asked.mutable_above(), v1::FLOAT64, {3, 131, 1}, values<double>("above"));
  testing::set_inline<std::int32_t>(*asked.mutable_rectangles(), v1::INT32, {1, 4}, {60, 100, 65, 130});
  expect_bad_field(sum(asked), "left", "is missing");
  auto left = values<double>("left");
  testing::set_inline<double>(*asked.mutable_left(), v1::FLOAT64, {2, 65, 3, 1}, left);
  ASSERT_TRUE(sum(asked).ok());
  EXPECT_EQ(values<float>("sums"), std::vector<float>{150});
  left.pop_back();
  testing::set_inline<double>(*asked.mutable_left(), v1::FLOAT64, {389}, left);
  expect_bad_field(sum(asked), "left", "FLOAT64 [2, 65, 3, 1] is right");
  asked.set_exclusive(true);
  expect_bad_field(sum(asked), "above", "inclusive FLOAT32");

  asked.set_exclusive(false);
  testing::set_inline<double>(*asked.mutable_above(), v1::FLOAT64, {1, 131, 3},
                              std::vector<double>(std::size_t{3} * 131));
  expect_bad_field(sum(asked), "above", "FLOAT64 [3, 131, 1] is right");
  asked.clear_above();
  expect_bad_field(sum(asked), "above", "is missing");

  request.set_exclusive(true);
  expect_bad_field(build(request), "exclusive", "TILE_LOCAL_SUMS");
  request.set_exclusive(false);
  request.set_squares(true);
  expect_bad_field(build(request), "squares", "TILE_LOCAL_SUMS");
  request.set_squares(false);
  auto stack = floats({2, 3, 4});
  stack.set_planar(true);
  stack.set_precision(v1::TILE_LOCAL_SUMS);
  expect_bad_field(build(stack), "planar", "TILE_LOCAL_SUMS");
  request.set_accumulator(v1::FLOAT64);
  expect_bad_field(build(request), "accumulator", "FLOAT32 is right");
}

TEST_F(SummedAreaTableService, RefusesSumsThatCouldOverflowUnlessTheyMayWrap) {
  constexpr std::int64_t kColumns = 65538;  // of 65535 in 32 bits: one too many
  v1::BuildSummedAreaTableRequest request;
  testing::set_inline<std::uint16_t>(*request.mutable_image(), v1::UINT16, {1, kColumns},
                                     std::vector<std::uint16_t>(kColumns, 65535));
  request.set_accumulator(v1::UINT32);
  expect_bad_field(build(request), "accumulator", "UINT64, or overflow WRAP_OVERFLOW, is right");
  request.set_overflow(v1::WRAP_OVERFLOW);
  ASSERT_TRUE(build(request).ok());
  EXPECT_EQ(values<std::uint32_t>("sums").back(), static_cast<std::uint32_t>(65535ULL * kColumns));
  request.set_overflow(static_cast<v1::SumOverflow>(9));
  expect_bad_field(build(request), "overflow", "is 9");
  testing::set_inline<std::uint16_t>(*request.mutable_image(), v1::UINT16, {1, kColumns - 1},
                                     std::vector<std::uint16_t>(kColumns - 1, 65535));
  request.clear_overflow();
  ASSERT_TRUE(build(request).ok());
  EXPECT_EQ(values<std::uint32_t>("sums").back(), 65535U * 65537U);
}

}  // namespace
}  // namespace cumulus
