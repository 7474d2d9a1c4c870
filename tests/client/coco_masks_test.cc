#include "cumulus/coco_masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/cases/coco_mask_case.h"

namespace cumulus {
namespace {

using testing::golden_masks;
using testing::GoldenMask;
using ::testing::HasSubstr;
using testing::pixels_of;

/// The serial oracle: the lengths, by the plain loop over columns.
std::vector<std::uint32_t> naive_counts(const std::vector<std::uint8_t>& mask, std::int64_t height,
                                        std::int64_t width) {
  std::vector<std::uint32_t> counts = {0};
  std::uint8_t value = 0;
  for (std::int64_t x = 0; x < width; ++x) {
    for (std::int64_t y = 0; y < height; ++y) {
      const std::uint8_t here = mask[static_cast<std::size_t>(y * width + x)];
      if (here != value) counts.push_back(0);
      ++counts.back();
      value = here;
    }
  }
  return counts;
}

TEST(CocoPolygons, AreTheMasksThatPycocotoolsMakes) {
  std::ifstream file(testing::test_data("coco_polygons.txt"));
  int lines = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::size_t count = 0;
  while (file >> height >> width >> count) {
    std::vector<std::vector<double>> polygons(count);
    for (std::vector<double>& polygon : polygons) {
      std::size_t numbers = 0;
      file >> numbers;
      polygon.resize(numbers);
      for (double& number : polygon) file >> number;
    }
    std::string text;
    file >> text;
    const auto counts = coco_counts_of_polygons(polygons, height, width);
    ASSERT_TRUE(counts.ok()) << counts.status();
    EXPECT_EQ(coco_string(*counts), text) << "line " << lines + 1;
    ++lines;
  }
  EXPECT_GT(lines, 50);
}

TEST(CocoPolygons, AreRefusedWhereTheyAreNone) {
  const auto refused = [](const std::vector<double>& polygon, std::int64_t height = 4,
                          std::int64_t width = 4) {
    return !coco_counts_of_polygons({{polygon}}, height, width).ok();
  };
  EXPECT_FALSE(refused({0, 0, 1, 0, 1, 1}));
  EXPECT_TRUE(refused({0, 0, 1, 0}));
  EXPECT_TRUE(refused({0, 0, 1, 0, 1, 1, 2}));
  EXPECT_TRUE(refused({0, 0, 1, 0, 1, std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_TRUE(refused({0, 0, 1, 0, 1, 1e9}));
  EXPECT_TRUE(refused({0, 0, 1, 0, 1, 1}, -1, 4));
  EXPECT_TRUE(refused({0, 0, 1, 0, 1, 1}, 1 << 20, 1 << 20));
  const auto nothing = coco_counts_of_polygons({}, 2, 3);
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(*nothing, std::vector<std::uint32_t>{6});
}

std::string refusal(std::string_view text, std::int64_t height, std::int64_t width) {
  const auto counts = coco_counts(text, height, width);
  return counts.ok() ? "accepted" : std::string(counts.status().message());
}

TEST(CocoMasks, AreWrittenAndReadAsPycocotoolsDoes) {
  const std::vector<GoldenMask> all = golden_masks();
  ASSERT_EQ(all.size(), 12u);
  for (const GoldenMask& golden : all) {
    SCOPED_TRACE(golden.name);
    const auto counts = naive_counts(pixels_of(golden), golden.height, golden.width);
    EXPECT_EQ(coco_string(counts), golden.text);
    const auto read = coco_counts(golden.text, golden.height, golden.width);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, counts);
    EXPECT_EQ(coco_area(*read), golden.area);
    EXPECT_EQ(coco_box(*read, golden.height), golden.box);
  }
}

TEST(CocoMasks, KeepEveryLengthOf32Bits) {
  const std::vector<std::uint32_t> counts = {0, 0xFFFFFFFF, 0,  1,  0xFFFFFFFF, 0x80000000,
                                             0, 0,          15, 16, 31,         32};
  std::int64_t pixels = 0;
  for (const std::uint32_t count : counts) pixels += count;
  const auto read = coco_counts(coco_string(counts), pixels, 1);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, counts);
}

TEST(CocoMasks, OfNoPixelsAreEmptyTexts) {
  EXPECT_EQ(refusal("", 0, 5), "accepted");
  EXPECT_EQ(coco_area({}), 0);
  EXPECT_EQ(coco_box({}, 5), CocoBox{});
}

TEST(CocoMasks, RefuseTextsThatAreNone) {
  EXPECT_THAT(refusal("5/5", 5, 2), HasSubstr("at character 1 there is byte 47; '0' to 'o' are right"));
  EXPECT_THAT(refusal("5\xff", 5, 2), HasSubstr("there is byte 255"));
  EXPECT_THAT(refusal(std::string_view("5\0", 2), 5, 2), HasSubstr("there is byte 0"));
  EXPECT_THAT(refusal("5S", 5, 2), HasSubstr("at character 1 a number is cut off"));
  EXPECT_THAT(refusal("ooooooooo", 5, 2), HasSubstr("more than 7 characters"));
  EXPECT_THAT(refusal("", 5, 2), HasSubstr("10 of the 10 pixels of 5 x 2 missing"));
  EXPECT_THAT(refusal("54", 5, 2), HasSubstr("1 of the 10 pixels"));
  EXPECT_THAT(refusal("56", 5, 2), HasSubstr("at character 1 the runs have more than the 10 pixels"));
  EXPECT_THAT(refusal("O", 5, 2), HasSubstr("a run has the length -1"));
  EXPECT_THAT(refusal("0000000000000N", 5, 2), HasSubstr("at character 13 a run has the length -2"));
  EXPECT_THAT(refusal("1", -1, 5), HasSubstr("-1"));
  EXPECT_THAT(refusal("PPPPPP4", std::int64_t{1} << 17, 1 << 16),
              HasSubstr("a run has the length 4294967296; 0 to 2^32 - 1 is right"));
}

TEST(CocoMasks, SurviveRandomTexts) {
  std::mt19937 random(11);
  for (int round = 0; round < 200000; ++round) {
    std::string text(random() % 12, ' ');
    for (char& c : text) c = static_cast<char>('0' + random() % 64);
    const auto counts = coco_counts(text, 40, 50);
    if (!counts.ok()) continue;
    EXPECT_LE(coco_area(*counts), 2000);
    EXPECT_TRUE(coco_counts(coco_string(*counts), 40, 50).ok());
  }
}

TEST(CocoMasks, OfABatchBecomeTexts) {
  // Two masks of 2 x 2: columns 0 0 | 1 1, and 1 0 | 0 0.
  const std::vector<std::uint8_t> symbols = {0, 1, 1, 0};
  const std::vector<std::uint32_t> lengths = {2, 2, 1, 3};
  const std::vector<std::int64_t> first_runs = {0, 2, 4};
  const auto texts = coco_strings(ArrayView(symbols), ArrayView(lengths), ArrayView(first_runs));
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(*texts, (std::vector<std::string>{"22", "013"}));
  const auto runs = coco_runs(*texts, 2, 2);
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_EQ(runs->symbols, (std::vector<std::uint8_t>{0, 1, 0, 1, 0}));
  EXPECT_EQ(runs->lengths, (std::vector<std::uint32_t>{2, 2, 0, 1, 3}));
}

TEST(CocoMasks, OfABatchSayWhichOneIsWrong) {
  const std::vector<std::uint8_t> symbols = {0, 7};
  const std::vector<std::uint32_t> lengths = {4, 4};
  const auto text_of = [&](const std::vector<std::int64_t>& first_runs) {
    return std::string(
        coco_strings(ArrayView(symbols), ArrayView(lengths), ArrayView(first_runs)).status().message());
  };
  EXPECT_THAT(text_of({0, 1, 2}), HasSubstr("mask 1: it has the value 7"));
  EXPECT_THAT(text_of({0, 3, 2}), HasSubstr("not those of one batch"));
  EXPECT_THAT(text_of({0, 1}), HasSubstr("not those of one batch"));
  EXPECT_THAT(text_of({}), HasSubstr("not those of one batch"));
  EXPECT_THAT(
      std::string(
          coco_strings(ArrayView(lengths), ArrayView(lengths), ArrayView(lengths)).status().message()),
      HasSubstr("symbols is an array of uint32; uint8 is right"));
  const std::vector<std::string> texts = {"4", "5"};
  EXPECT_THAT(std::string(coco_runs(texts, 2, 2).status().message()), HasSubstr("mask 1: not a COCO mask"));
}

}  // namespace
}  // namespace cumulus
