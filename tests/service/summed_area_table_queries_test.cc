#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/service/summed_area_table_fixture.h"
#include "tests/support/test_server.h"

namespace cumulus {
namespace {

using testing::expect_bad_field;

class TableQueriesService : public testing::SummedAreaTableService {};

TEST_F(TableQueriesService, AnswersRectanglesClippedToTheImage) {
  ASSERT_TRUE(sum(two_rectangles()).ok());
  EXPECT_EQ(values<double>("sums"), (std::vector<double>{21, 11}));
  EXPECT_EQ(shape("sums"), std::vector<std::int64_t>{2});
  auto request = two_rectangles();
  request.add_statistics(v1::RECTANGLE_MEAN);
  request.add_statistics(v1::RECTANGLE_SUM);
  ASSERT_TRUE(sum(request).ok());
  EXPECT_EQ(result_.arrays(0).name(), "means");
  EXPECT_EQ(values<double>("means"), (std::vector<double>{3.5, 5.5}));
  EXPECT_EQ(values<double>("sums"), (std::vector<double>{21, 11}));
}

TEST_F(TableQueriesService, AnswersVariancesFromTheTableOfSquares) {
  auto request = two_rectangles();
  request.add_statistics(v1::RECTANGLE_VARIANCE);
  expect_bad_field(sum(request), "squares", "variances need");
  testing::set_inline<double>(*request.mutable_squares(), v1::FLOAT64, {2, 3}, {1, 5, 14, 17, 46, 91});
  ASSERT_TRUE(sum(request).ok());
  const auto variances = values<double>("variances");
  ASSERT_EQ(variances.size(), 2U);
  EXPECT_DOUBLE_EQ(variances[0], 91.0 / 6 - 3.5 * 3.5);
  EXPECT_DOUBLE_EQ(variances[1], 0.25);
}

TEST_F(TableQueriesService, AnswersOfExclusiveAndOfCenteredTables) {
  auto request = two_rectangles();
  testing::set_inline<double>(*request.mutable_sums(), v1::FLOAT64, {3, 4},
                              {0, 0, 0, 0, 0, 1, 3, 6, 0, 5, 12, 21});
  request.set_exclusive(true);
  ASSERT_TRUE(sum(request).ok());
  EXPECT_EQ(values<double>("sums"), (std::vector<double>{21, 11}));

  auto centered = two_rectangles();
  testing::set_inline<float>(*centered.mutable_sums(), v1::FLOAT32, {2, 3, 1}, {-2, -3, -3, -1, 0, 3});
  testing::set_inline<float>(*centered.mutable_offsets(), v1::FLOAT32, {1}, {3});
  ASSERT_TRUE(sum(centered).ok());
  EXPECT_EQ(values<float>("sums"), (std::vector<float>{21, 11}));
  EXPECT_EQ(shape("sums"), (std::vector<std::int64_t>{2, 1}));
}

TEST_F(TableQueriesService, AnswersNothingOfNoRectangles) {
  auto request = two_rectangles();
  testing::set_inline<std::int32_t>(*request.mutable_rectangles(), v1::INT32, {0, 4}, {});
  request.add_statistics(v1::RECTANGLE_MEAN);
  request.set_border(v1::REFUSE_RECTANGLES);
  ASSERT_TRUE(sum(request).ok());
  EXPECT_EQ(shape("means"), std::vector<std::int64_t>{0});
}

TEST_F(TableQueriesService, NamesTheFirstRectangleThatIsNotInside) {
  auto request = two_rectangles();
  request.set_border(v1::REFUSE_RECTANGLES);
  const grpc::Status status = sum(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(status.error_message().find("number 1 is empty or reaches beyond the image of 2 x 3"),
            std::string::npos)
      << status.error_message();
  testing::set_inline<std::int32_t>(*request.mutable_rectangles(), v1::INT32, {1, 4}, {0, 0, 2, 3});
  EXPECT_TRUE(sum(request).ok());
}

TEST_F(TableQueriesService, RefusesTablesAndRectanglesThatDoNotFit) {
  auto request = two_rectangles();
  testing::set_inline<std::uint8_t>(*request.mutable_sums(), v1::UINT8, {1, 1}, {1});
  expect_bad_field(sum(request), "sums", "UINT8; UINT32 or UINT64");
  request = two_rectangles();
  testing::set_inline<double>(*request.mutable_sums(), v1::FLOAT64, {1, 3}, {1, 2, 3});
  request.set_exclusive(true);
  expect_bad_field(sum(request), "sums", "at least 2 rows");
  request = two_rectangles();
  testing::set_inline<double>(*request.mutable_squares(), v1::FLOAT64, {3, 2}, {1, 2, 3, 4, 5, 6});
  expect_bad_field(sum(request), "squares", "as the sums");
  request = two_rectangles();
  testing::set_inline<float>(*request.mutable_offsets(), v1::FLOAT32, {1}, {1});
  expect_bad_field(sum(request), "offsets", "with FLOAT32 sums");
  for (const std::vector<std::int64_t>& wrong : {std::vector<std::int64_t>{8}, {4, 2}}) {
    request = two_rectangles();
    testing::set_inline<std::int32_t>(*request.mutable_rectangles(), v1::INT32, wrong,
                                      std::vector<std::int32_t>(8));
    expect_bad_field(sum(request), "rectangles", "INT32 [count, 4]");
  }
}

TEST_F(TableQueriesService, RefusesStatisticsAndBordersThatDoNotExist) {
  auto request = two_rectangles();
  request.add_statistics(v1::RECTANGLE_SUM);
  request.add_statistics(v1::RECTANGLE_SUM);
  expect_bad_field(sum(request), "statistics[1]", "a second time");
  request.set_statistics(1, v1::RECTANGLE_STATISTIC_UNSPECIFIED);
  expect_bad_field(sum(request), "statistics[1]", "is 0");
  request = two_rectangles();
  request.set_border(static_cast<v1::RectangleBorder>(5));
  expect_bad_field(sum(request), "border", "is 5");
  testing::set_inline<float>(*request.mutable_sums(), v1::FLOAT32, {1, 1}, {1});
  testing::set_inline<float>(*request.mutable_squares(), v1::FLOAT32, {1, 1}, {1});
  testing::set_inline<float>(*request.mutable_offsets(), v1::FLOAT32, {1}, {1});
  request.add_statistics(v1::RECTANGLE_VARIANCE);
  expect_bad_field(sum(request), "offsets", "PLAIN_SUMS");
}

TEST_F(TableQueriesService, FiltersABoxAndClipsItAtTheBorder) {
  v1::FilterBoxRequest request;
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {1, 4}, {1, 2, 3, 6});
  request.set_radius(1);
  request.set_boundary_x(v1::BOX_EXACT);
  request.set_boundary_y(v1::BOX_EXACT);
  ASSERT_TRUE(filter(request).ok());
  const auto* image = testing::find_array(result_, "image");
  ASSERT_NE(image, nullptr);
  const auto means = testing::values_of<float>(image->inline_array());
  ASSERT_EQ(means.size(), 4u);
  EXPECT_FLOAT_EQ(means[0], 1.5f);
  EXPECT_FLOAT_EQ(means[1], 2.0f);
  EXPECT_FLOAT_EQ(means[2], 11.0f / 3);
  EXPECT_FLOAT_EQ(means[3], 4.5f);
}

TEST_F(TableQueriesService, GoesOnBeyondTheEdgeAsAsked) {
  auto request = row_of_four();
  request.set_boundary_y(v1::BOX_CLAMP);
  const auto first_mean = [&](v1::BoxBoundary boundary) {
    request.set_boundary_x(boundary);
    EXPECT_TRUE(filter(request).ok());
    return values<float>("image").front();
  };
  EXPECT_FLOAT_EQ(first_mean(v1::BOX_BOUNDARY_UNSPECIFIED), 4.0f / 3);
  EXPECT_FLOAT_EQ(first_mean(v1::BOX_EXACT), 1.5f);
  EXPECT_FLOAT_EQ(first_mean(v1::BOX_ZERO), 1.0f);
  EXPECT_FLOAT_EQ(first_mean(v1::BOX_CLAMP), 4.0f / 3);
  EXPECT_FLOAT_EQ(first_mean(v1::BOX_REPEAT), 3.0f);
  EXPECT_FLOAT_EQ(first_mean(v1::BOX_REFLECT), 4.0f / 3);
  EXPECT_FLOAT_EQ(first_mean(v1::BOX_MIRROR), 5.0f / 3);
  request.set_boundary_x(static_cast<v1::BoxBoundary>(7));
  expect_bad_field(filter(request), "boundary_x", "BOX_MIRROR is right");
  request.set_boundary_x(v1::BOX_ZERO);
  request.set_boundary_y(static_cast<v1::BoxBoundary>(7));
  expect_bad_field(filter(request), "boundary_y", "is 7");
}

TEST_F(TableQueriesService, FiltersWithARadiusForEachAxis) {
  auto request = row_of_four();
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {2, 2}, {1, 2, 3, 6});
  request.set_radius_y(0);
  ASSERT_TRUE(filter(request).ok());
  EXPECT_EQ(values<float>("image"), (std::vector<float>{1.5f, 1.5f, 4.5f, 4.5f}));
  request.clear_radius_y();
  request.set_radius_x(0);
  ASSERT_TRUE(filter(request).ok());
  EXPECT_EQ(values<float>("image"), (std::vector<float>{2, 4, 2, 4}));
}

TEST_F(TableQueriesService, FiltersWithARadiusForEachPixel) {
  auto request = row_of_four();
  request.clear_radius();
  testing::set_inline<float>(*request.mutable_radius_map(), v1::FLOAT32, {1, 4}, {0, 1, 3, -2});
  ASSERT_TRUE(filter(request).ok());
  EXPECT_EQ(values<float>("image"), (std::vector<float>{1, 2, 3, 6}));
  request.set_radius(1);
  ASSERT_TRUE(filter(request).ok());
  EXPECT_FLOAT_EQ(values<float>("image")[2], 11.0f / 3);
  request.set_radius_x(0);
  ASSERT_TRUE(filter(request).ok());
  EXPECT_EQ(values<float>("image"), (std::vector<float>{1, 2, 3, 6}));
  testing::set_inline<float>(*request.mutable_radius_map(), v1::FLOAT32, {4}, {0, 1, 3, -2});
  expect_bad_field(filter(request), "radius_map", "FLOAT32 [1, 4]");
  testing::set_inline<std::int32_t>(*request.mutable_radius_map(), v1::INT32, {1, 4}, {0, 1, 3, -2});
  expect_bad_field(filter(request), "radius_map", "FLOAT32 [1, 4]");
}

TEST_F(TableQueriesService, AnswersTheDeviationToo) {
  auto request = row_of_four();
  request.set_deviation(true);
  ASSERT_TRUE(filter(request).ok());
  EXPECT_FLOAT_EQ(values<float>("deviation")[0], 0.5f);
  EXPECT_FLOAT_EQ(values<float>("deviation")[3], 1.5f);
  testing::set_inline<std::uint32_t>(*request.mutable_image(), v1::UINT32, {1, 1}, {1});
  expect_bad_field(filter(request), "deviation", "only the mean");
}

TEST_F(TableQueriesService, RefusesARadiusOutOfRange) {
  for (const int radius : {-1, 5}) {
    auto request = row_of_four();
    request.set_radius(radius);
    expect_bad_field(filter(request), "radius", "0 to 4");
    request = row_of_four();
    request.set_radius_x(radius);
    expect_bad_field(filter(request), "radius_x", "0 to 4");
    request = row_of_four();
    request.set_radius_y(radius);
    expect_bad_field(filter(request), "radius_y", "0 to 4");
  }
}

TEST_F(TableQueriesService, RefusesRequestsWithoutArraysOrWithOthers) {
  expect_bad_field(build({}), "image", "is missing");
  expect_bad_field(sum({}), "sums", "is missing");
  auto rectangles = two_rectangles();
  rectangles.clear_rectangles();
  expect_bad_field(sum(rectangles), "rectangles", "is missing");
  expect_bad_field(filter({}), "image", "is missing");
  auto request = row_of_four();
  testing::set_inline<std::int64_t>(*request.mutable_image(), v1::INT64, {1, 1}, {1});
  expect_bad_field(filter(request), "image", "INT64");
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {4}, {1, 2, 3, 6});
  expect_bad_field(filter(request), "image", "[height, width]");
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {1, 1, 5}, {1, 2, 3, 4, 5});
  expect_bad_field(filter(request), "image", "5 channels");
  testing::set_inline<std::uint32_t>(*request.mutable_image(), v1::UINT32, {1, 40000},
                                     std::vector<std::uint32_t>(40000));
  request.set_radius(32767);
  EXPECT_TRUE(filter(request).ok());
  request.set_radius(32768);
  expect_bad_field(filter(request), "radius", "0 to 32767");
}

}  // namespace
}  // namespace cumulus
