#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/test_server.h"

namespace cumulus {
namespace {

using testing::expect_bad_field;
using testing::expect_reason;
using testing::find_array;
using testing::set_inline;
using testing::TestServer;
using testing::values_of;
using Shape = std::vector<std::int64_t>;

Shape shape_of(const v1::ArraySpec& spec) { return {spec.shape().begin(), spec.shape().end()}; }

class RunLengthService : public ::testing::Test {
 protected:
  grpc::Status encode(const v1::EncodeRunLengthsRequest& request) {
    grpc::ClientContext context;
    result_.Clear();
    return server_.operations->EncodeRunLengths(&context, request, &result_);
  }
  grpc::Status decode(const v1::DecodeRunLengthsRequest& request) {
    grpc::ClientContext context;
    result_.Clear();
    return server_.operations->DecodeRunLengths(&context, request, &result_);
  }
  const v1::InlineArray& output(const std::string& name) {
    static const v1::InlineArray kNone;
    const v1::NamedArray* array = find_array(result_, name);
    EXPECT_NE(array, nullptr) << name;
    return array != nullptr ? array->inline_array() : kNone;
  }
  /// 1 1 2 | 2 2 3
  static v1::EncodeRunLengthsRequest bytes() {
    v1::EncodeRunLengthsRequest request;
    set_inline<std::uint8_t>(*request.mutable_array(), v1::UINT8, {2, 3}, {1, 1, 2, 2, 2, 3});
    return request;
  }
  static v1::DecodeRunLengthsRequest runs(const std::vector<std::uint32_t>& lengths = {2, 3, 1}) {
    v1::DecodeRunLengthsRequest request;
    const auto count = static_cast<std::int64_t>(lengths.size());
    std::vector<std::uint8_t> symbols;
    for (std::size_t i = 0; i < lengths.size(); ++i) symbols.push_back(static_cast<std::uint8_t>(i + 1));
    set_inline(*request.mutable_symbols(), v1::UINT8, {count}, symbols);
    set_inline(*request.mutable_lengths(), v1::UINT32, {count}, lengths);
    request.set_max_output_bytes(100);
    return request;
  }

  TestServer server_;
  v1::OperationResult result_;
};

TEST_F(RunLengthService, EncodesAnInlineArrayIntoExactlyItsRuns) {
  ASSERT_TRUE(encode(bytes()).ok());
  EXPECT_EQ(shape_of(output("symbols").spec()), Shape{3});
  EXPECT_EQ(output("symbols").spec().element_type(), v1::UINT8);
  EXPECT_EQ(output("lengths").spec().element_type(), v1::UINT32);
  EXPECT_EQ(values_of<std::uint8_t>(output("symbols")), (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_EQ(values_of<std::uint32_t>(output("lengths")), (std::vector<std::uint32_t>{2, 3, 1}));
}

TEST_F(RunLengthService, EncodesRowsEndsAndWideLengths) {
  auto request = bytes();
  request.set_scope(v1::EACH_LINE);
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(values_of<std::uint32_t>(output("lengths")), (std::vector<std::uint32_t>{2, 1, 2, 1}));
  request.set_form(v1::RUN_ENDS);
  request.set_length_type(v1::UINT64);
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(values_of<std::uint64_t>(output("lengths")), (std::vector<std::uint64_t>{2, 3, 5, 6}));
}

TEST_F(RunLengthService, EncodesPixels) {
  v1::EncodeRunLengthsRequest request;
  set_inline<float>(*request.mutable_array(), v1::FLOAT32, {2, 2, 2}, {1, 2, 1, 2, 1, 2, 2, 2});
  request.set_pixels(true);
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(shape_of(output("symbols").spec()), (Shape{2, 2}));
  EXPECT_EQ(values_of<float>(output("symbols")), (std::vector<float>{1, 2, 2, 2}));
  EXPECT_EQ(values_of<std::uint32_t>(output("lengths")), (std::vector<std::uint32_t>{3, 1}));
  request.set_scope(v1::EACH_LINE);
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(values_of<std::uint32_t>(output("lengths")), (std::vector<std::uint32_t>{2, 1, 1}));
}

/// Two images of 2 x 3: 1 1 2 | 1 2 2 and 2 2 2 | 2 2 3.
v1::EncodeRunLengthsRequest two_images() {
  v1::EncodeRunLengthsRequest request;
  set_inline<std::uint8_t>(*request.mutable_array(), v1::UINT8, {2, 2, 3},
                           {1, 1, 2, 1, 2, 2, 2, 2, 2, 2, 2, 3});
  return request;
}

TEST_F(RunLengthService, EncodesTheImagesOfABatchEachByItself) {
  auto request = two_images();
  request.set_scope(v1::EACH_IMAGE);
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(values_of<std::uint32_t>(output("lengths")), (std::vector<std::uint32_t>{2, 1, 1, 2, 5, 1}));
  EXPECT_EQ(values_of<std::int64_t>(output("first_runs")), (std::vector<std::int64_t>{0, 4, 6}));
  request.set_scope(v1::EACH_LINE);
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(values_of<std::int64_t>(output("first_runs")), (std::vector<std::int64_t>{0, 2, 4, 5, 7}));
}

TEST_F(RunLengthService, TakesImagesColumnByColumn) {
  auto request = two_images();
  request.set_order(v1::BY_COLUMNS);
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(result_.arrays_size(), 2);
  EXPECT_EQ(values_of<std::uint8_t>(output("symbols")), (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_EQ(values_of<std::uint32_t>(output("lengths")), (std::vector<std::uint32_t>{3, 8, 1}));
  request.set_scope(v1::EACH_LINE);
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(values_of<std::int64_t>(output("first_runs")), (std::vector<std::int64_t>{0, 1, 3, 4, 5, 6, 8}));

  auto back = runs({3, 8, 1});
  back.set_order(v1::BY_COLUMNS);
  for (const std::int64_t extent : {2, 2, 3}) back.add_shape(extent);
  ASSERT_TRUE(decode(back).ok());
  EXPECT_EQ(output("array").data(), two_images().array().inline_array().data());
  *back.mutable_lengths()->mutable_inline_array() = runs({3, 8, 2}).lengths().inline_array();
  expect_reason(decode(back), grpc::StatusCode::FAILED_PRECONDITION, "WRONG_ELEMENT_COUNT");
  EXPECT_EQ(server_.reserved_bytes(), 0u);
}

TEST_F(RunLengthService, TakesPixelsColumnByColumn) {
  v1::EncodeRunLengthsRequest request;
  set_inline<std::uint8_t>(*request.mutable_array(), v1::UINT8, {2, 2, 3},
                           {1, 1, 2, 1, 2, 2, 1, 1, 2, 2, 2, 3});
  request.set_pixels(true);
  request.set_order(v1::BY_COLUMNS);
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(values_of<std::uint32_t>(output("lengths")), (std::vector<std::uint32_t>{2, 1, 1}));
  EXPECT_EQ(values_of<std::uint8_t>(output("symbols")),
            (std::vector<std::uint8_t>{1, 1, 2, 1, 2, 2, 2, 2, 3}));
}

TEST_F(RunLengthService, RefusesColumnsAndImagesOfWhatHasNone) {
  v1::EncodeRunLengthsRequest request;
  set_inline<std::uint8_t>(*request.mutable_array(), v1::UINT8, {3}, {1, 2, 3});
  request.set_order(v1::BY_COLUMNS);
  expect_bad_field(encode(request), "array", "is UINT8 [3]; images are [..., height, width]");
  request.set_order(v1::BY_ROWS);
  request.set_scope(v1::EACH_IMAGE);
  expect_bad_field(encode(request), "array", "images are [..., height, width]");
  request.set_order(static_cast<v1::RunOrder>(9));
  expect_bad_field(encode(request), "order", "is 9; BY_ROWS or BY_COLUMNS is right");
  auto back = runs();
  back.set_order(v1::BY_COLUMNS);
  expect_bad_field(decode(back), "shape", "is missing; order BY_COLUMNS needs [..., height, width]");
  back.add_shape(6);
  expect_bad_field(decode(back), "shape", "is UINT8 [6]; images are");
  back.set_order(static_cast<v1::RunOrder>(9));
  expect_bad_field(decode(back), "order", "is 9; BY_ROWS or BY_COLUMNS is right");
}

TEST_F(RunLengthService, AnEmptyArrayHasNoRuns) {
  v1::EncodeRunLengthsRequest request;
  set_inline<float>(*request.mutable_array(), v1::FLOAT32, {0, 7}, {});
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(shape_of(output("symbols").spec()), Shape{0});
  request.set_scope(v1::EACH_IMAGE);
  request.set_order(v1::BY_COLUMNS);
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(values_of<std::int64_t>(output("first_runs")), std::vector<std::int64_t>{0});
  ASSERT_TRUE(decode(runs({})).ok());
  EXPECT_EQ(shape_of(output("array").spec()), Shape{0});
}

TEST_F(RunLengthService, KeepsBuffersOfExactlyTheResultsSize) {
  v1::EncodeRunLengthsRequest request;
  std::vector<std::uint16_t> values(20000, 7);
  values.back() = 8;
  set_inline(*request.mutable_array(), v1::UINT16, {20000}, values);
  const std::string session = server_.create_session();
  request.mutable_options()->set_session(session);
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(find_array(result_, "symbols")->buffer().size_bytes(), 4);
  EXPECT_EQ(find_array(result_, "lengths")->buffer().size_bytes(), 8);
  EXPECT_EQ(server_.reserved_bytes(), 2 * kBlockAlignment);

  v1::DecodeRunLengthsRequest back;
  back.mutable_options()->set_session(session);
  back.mutable_options()->mutable_output()->mutable_inline_array();
  back.mutable_symbols()->set_buffer(find_array(result_, "symbols")->buffer().name());
  back.mutable_lengths()->set_buffer(find_array(result_, "lengths")->buffer().name());
  back.set_max_output_bytes(1 << 20);
  ASSERT_TRUE(decode(back).ok());
  EXPECT_TRUE(values_of<std::uint16_t>(output("array")) == values);
  back.mutable_options()->clear_output();
  ASSERT_TRUE(decode(back).ok());
  EXPECT_EQ(find_array(result_, "array")->buffer().size_bytes(), 40000);
}

TEST_F(RunLengthService, AnswersInlineWhereverTheRunsAreFewEnough) {
  v1::EncodeRunLengthsRequest request;
  std::vector<std::uint8_t> values(1000000, 7);
  set_inline(*request.mutable_array(), v1::UINT8, {1000000}, values);
  ASSERT_TRUE(encode(request).ok());
  EXPECT_EQ(values_of<std::uint32_t>(output("lengths")), std::vector<std::uint32_t>{1000000});
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i);
  set_inline(*request.mutable_array(), v1::UINT8, {1000000}, values);
  const grpc::Status status = encode(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("the outputs have 5000000 bytes"), std::string::npos)
      << status.error_message();
  EXPECT_EQ(server_.reserved_bytes(), 0u);
}

TEST_F(RunLengthService, RefusesMoreRunsThanThereIsRoomFor) {
  auto request = bytes();
  request.set_max_runs(2);
  const grpc::Status status = encode(request);
  expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "TOO_MANY_RUNS");
  EXPECT_NE(status.error_message().find("it has 3 runs; max_runs makes room for 2"), std::string::npos);
  request.set_max_runs(3);
  EXPECT_TRUE(encode(request).ok());
  request.set_max_runs(-1);
  expect_bad_field(encode(request), "max_runs", "is -1");
}

TEST_F(RunLengthService, RefusesWrongEncodeParameters) {
  expect_bad_field(encode({}), "array", "is missing");
  auto request = bytes();
  request.set_length_type(v1::UINT16);
  expect_bad_field(encode(request), "length_type", "is UINT16; UINT32 or UINT64 is right");
  request = bytes();
  request.set_form(static_cast<v1::RunLengthForm>(9));
  expect_bad_field(encode(request), "form", "is 9; RUN_COUNTS or RUN_ENDS is right");
  request = bytes();
  request.set_scope(static_cast<v1::RunScope>(9));
  expect_bad_field(encode(request), "scope", "is 9; WHOLE_ARRAY, EACH_LINE or EACH_IMAGE is right");
  request = bytes();
  request.set_overflow(static_cast<v1::RunOverflow>(9));
  expect_bad_field(encode(request), "overflow", "is 9; REFUSE_LONG_RUNS or SPLIT_LONG_RUNS is right");
  request.set_overflow(v1::SPLIT_LONG_RUNS);
  EXPECT_TRUE(encode(request).ok());
  request.set_scope(v1::EACH_LINE);
  expect_bad_field(encode(request), "overflow", "counts of the whole array");
}

TEST_F(RunLengthService, RefusesPixelsOfTooManyChannelsOrBytes) {
  v1::EncodeRunLengthsRequest request;
  request.set_pixels(true);
  set_inline<std::uint8_t>(*request.mutable_array(), v1::UINT8, {5}, {1, 2, 3, 4, 5});
  expect_bad_field(encode(request), "array", "at least two extents");
  set_inline<std::uint8_t>(*request.mutable_array(), v1::UINT8, {1, 5}, {1, 2, 3, 4, 5});
  expect_bad_field(encode(request), "array", "5 channels; 1 to 4 is right");
  set_inline<double>(*request.mutable_array(), v1::FLOAT64, {1, 3}, {1, 2, 3});
  expect_bad_field(encode(request), "array", "24 bytes; at most 16 is right");
}

TEST_F(RunLengthService, DecodesIntoAShapeThatTheRunsFill) {
  auto request = runs();
  ASSERT_TRUE(decode(request).ok());
  EXPECT_EQ(shape_of(output("array").spec()), Shape{6});
  EXPECT_EQ(values_of<std::uint8_t>(output("array")), (std::vector<std::uint8_t>{1, 1, 2, 2, 2, 3}));
  for (const std::int64_t extent : {2, 3}) request.add_shape(extent);
  ASSERT_TRUE(decode(request).ok());
  EXPECT_EQ(shape_of(output("array").spec()), (Shape{2, 3}));
  for (const std::int64_t columns : {2, 4}) {
    request.set_shape(1, columns);
    expect_reason(decode(request), grpc::StatusCode::FAILED_PRECONDITION, "WRONG_ELEMENT_COUNT");
  }
}

TEST_F(RunLengthService, DecodesPixelsAndEnds) {
  v1::DecodeRunLengthsRequest request;
  set_inline<std::uint8_t>(*request.mutable_symbols(), v1::UINT8, {2, 3}, {1, 2, 3, 4, 5, 6});
  set_inline<std::uint64_t>(*request.mutable_lengths(), v1::UINT64, {2}, {2, 3});
  request.set_pixels(true);
  request.set_form(v1::RUN_ENDS);
  request.set_max_output_bytes(9);
  ASSERT_TRUE(decode(request).ok());
  EXPECT_EQ(shape_of(output("array").spec()), (Shape{3, 3}));
  EXPECT_EQ(values_of<std::uint8_t>(output("array")), (std::vector<std::uint8_t>{1, 2, 3, 1, 2, 3, 4, 5, 6}));
  for (const std::int64_t extent : {1, 3, 3}) request.add_shape(extent);
  ASSERT_TRUE(decode(request).ok());
  request.set_shape(2, 2);
  expect_bad_field(decode(request), "shape", "the symbols' 3 channels");
}

TEST_F(RunLengthService, RefusesRunsThatAddUpToTooMuch) {
  auto request = runs();
  request.set_max_output_bytes(5);
  const grpc::Status status = decode(request);
  expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "ARRAY_TOO_LONG");
  EXPECT_NE(status.error_message().find("add up to 6 elements; max_output_bytes allows 5"),
            std::string::npos);
  expect_reason(decode(runs({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF})), grpc::StatusCode::FAILED_PRECONDITION,
                "ARRAY_TOO_LONG");
}

TEST_F(RunLengthService, RefusesEndsThatDescend) {
  auto request = runs({5, 9, 8});
  request.set_form(v1::RUN_ENDS);
  const grpc::Status status = decode(request);
  expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "DESCENDING_ENDS");
  EXPECT_NE(status.error_message().find("run 2 ends before"), std::string::npos);
}

TEST_F(RunLengthService, RefusesWrongDecodeParameters) {
  expect_bad_field(decode({}), "symbols", "is missing");
  auto request = runs();
  request.clear_lengths();
  expect_bad_field(decode(request), "lengths", "is missing");
  request = runs();
  set_inline<std::uint8_t>(*request.mutable_lengths(), v1::UINT8, {3}, {1, 2, 3});
  expect_bad_field(decode(request), "lengths", "UINT32 or UINT64 is right");
  set_inline<std::uint32_t>(*request.mutable_lengths(), v1::UINT32, {2}, {1, 2});
  expect_bad_field(decode(request), "lengths", "each of the 3 symbols");
  request = runs();
  request.mutable_symbols()->mutable_inline_array()->mutable_spec()->add_shape(1);
  expect_bad_field(decode(request), "symbols", "[runs], or [runs, channels] with pixels, is right");
  request = runs();
  request.set_form(static_cast<v1::RunLengthForm>(9));
  expect_bad_field(decode(request), "form", "is 9");
}

TEST_F(RunLengthService, RefusesSizesOutOfRange) {
  auto request = runs();
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 60}) {
    request.set_max_output_bytes(bytes);
    expect_bad_field(decode(request), "max_output_bytes", "at least 1");
  }
  request = runs();
  request.add_shape(-3);
  expect_bad_field(decode(request), "shape[0]", "is -3; extents are at least 0");
  request.set_shape(0, 101);
  expect_bad_field(decode(request), "shape", "of 101 bytes; max_output_bytes is 100");
  for (int i = 0; i < 8; ++i) request.add_shape(1);
  expect_bad_field(decode(request), "shape", "has 9 extents; at most 8");
  request.clear_shape();
  for (int i = 0; i < 3; ++i) request.add_shape(std::int64_t{1} << 40);
  expect_bad_field(decode(request), "shape", "max_output_bytes is 100");
}

}  // namespace
}  // namespace cumulus
