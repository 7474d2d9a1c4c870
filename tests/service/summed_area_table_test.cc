#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/support/test_server.h"

namespace cumulus {
namespace {

using testing::expect_bad_field;
using testing::TestServer;

class SummedAreaTableService : public ::testing::Test {
 protected:
  grpc::Status build(const v1::BuildSummedAreaTableRequest& request) {
    grpc::ClientContext context;
    return server_.operations->BuildSummedAreaTable(&context, request, &result_);
  }
  grpc::Status filter(const v1::FilterBoxRequest& request) {
    grpc::ClientContext context;
    return server_.operations->FilterBox(&context, request, &result_);
  }
  static v1::BuildSummedAreaTableRequest floats(const std::vector<std::int64_t>& shape) {
    v1::BuildSummedAreaTableRequest request;
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    testing::set_inline(*request.mutable_image(), v1::FLOAT32, shape,
                        std::vector<float>(static_cast<std::size_t>(count), 1));
    return request;
  }

  TestServer server_;
  v1::OperationResult result_;
};

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

TEST_F(SummedAreaTableService, RefusesElementsAndAccumulatorsThatDoNotGoTogether) {
  v1::BuildSummedAreaTableRequest doubles;
  testing::set_inline<double>(*doubles.mutable_image(), v1::FLOAT64, {1, 1}, {1});
  expect_bad_field(build(doubles), "image", "FLOAT64; UINT8 or FLOAT32 is right");
  auto wrong = floats({1, 1});
  wrong.set_accumulator(v1::UINT32);
  expect_bad_field(build(wrong), "accumulator", "FLOAT64 or FLOAT32");
  wrong.set_accumulator(static_cast<v1::ElementType>(99));
  expect_bad_field(build(wrong), "accumulator", "99");
}

TEST_F(SummedAreaTableService, FiltersABoxAndClipsItAtTheBorder) {
  v1::FilterBoxRequest request;
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {1, 4}, {1, 2, 3, 6});
  request.set_radius(1);
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

TEST_F(SummedAreaTableService, RefusesARadiusOutOfRange) {
  v1::FilterBoxRequest request;
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {1, 4}, {1, 2, 3, 6});
  for (const int radius : {-1, 5}) {
    request.set_radius(radius);
    expect_bad_field(filter(request), "radius", "0 to 4");
  }
}

}  // namespace
}  // namespace cumulus
