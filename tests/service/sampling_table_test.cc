#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cumulus/sampling.h"
#include "tests/support/sampling_table_service.h"

namespace cumulus {
namespace {

using testing::expect_bad_field;
using testing::expect_reason;
using testing::SamplingTableService;

TEST_F(SamplingTableService, BuildsATableThatThePublicHeaderReads) {
  ASSERT_TRUE(build(weights({1, 0, 3, 4, 5, 6}, 3)).ok());
  const auto* table = testing::find_array(result_, "table");
  ASSERT_NE(table, nullptr);
  const std::string& bytes = table->inline_array().data();
  sampling::TableView view;
  ASSERT_EQ(sampling::parse_header(bytes.data(), bytes.size(), bytes.size(), view.header),
            sampling::TableError::kNone);
  view.data = reinterpret_cast<const unsigned char*>(bytes.data());
  EXPECT_EQ(view.header.width, 3u);
  EXPECT_EQ(view.header.height, 2u);
  EXPECT_EQ(sampling::pdf(view, 0.5f, 0.25f), 0.0f) << "the texel without weight";
  EXPECT_GT(sampling::pdf(view, 0.1f, 0.25f), 0.0f);
}

TEST_F(SamplingTableService, DrawsPositionsDirectionsAndDensities) {
  ASSERT_TRUE(draw(draw_request()).ok());
  const auto position = floats("position");
  const auto direction = floats("direction");
  const auto pdf = floats("pdf");
  ASSERT_EQ(position.size(), 32u);
  ASSERT_EQ(direction.size(), 48u);
  ASSERT_EQ(pdf.size(), 16u);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_GE(position[2 * i], 0.0f);
    EXPECT_LT(position[2 * i], 1.0f);
    EXPECT_GT(pdf[i], 0.0f);
    EXPECT_NEAR(std::hypot(direction[3 * i], direction[3 * i + 1], direction[3 * i + 2]), 1.0f, 1e-5f);
  }
}

TEST_F(SamplingTableService, APlaneHasNoDirections) {
  ASSERT_TRUE(draw(draw_request(v1::PLANE)).ok());
  EXPECT_EQ(testing::find_array(result_, "direction"), nullptr);
  EXPECT_EQ(result_.arrays_size(), 2);
}

TEST_F(SamplingTableService, PartsOfASequenceAreThePartsOfTheWhole) {
  for (const v1::Sequence sequence : {v1::SOBOL, v1::RANDOM, v1::HAMMERSLEY}) {
    auto q = draw_request();
    q.set_sequence(sequence);
    q.set_seed(7);
    q.set_total(16);
    ASSERT_TRUE(draw(q).ok());
    const auto whole = floats("position");
    q.set_first_index(10);
    q.set_count(6);
    ASSERT_TRUE(draw(q).ok());
    EXPECT_EQ(floats("position"), std::vector<float>(whole.begin() + 20, whole.end()));
  }
}

TEST_F(SamplingTableService, NamesTheFirstInvalidWeight) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const float wrong : {nan, inf, -1.0f}) {
    const grpc::Status status = build(weights({1, 1, 1, 1, wrong, wrong}, 3));
    expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "INVALID_WEIGHT");
    EXPECT_NE(status.error_message().find("row 1, column 1"), std::string::npos) << status.error_message();
    EXPECT_EQ(testing::detail_of<google::rpc::ErrorInfo>(status).metadata().at("column"), "1");
  }
}

TEST_F(SamplingTableService, ClampsInvalidWeightsWhereThatIsAskedFor) {
  auto q = weights({1, std::numeric_limits<float>::quiet_NaN(), 1, -1}, 2);
  q.set_invalid_weights(v1::REFUSE);
  expect_reason(build(q), grpc::StatusCode::FAILED_PRECONDITION, "INVALID_WEIGHT");
  q.set_invalid_weights(v1::CLAMP);
  EXPECT_TRUE(build(q).ok());
  q = weights({-1, -1}, 2);
  q.set_invalid_weights(v1::CLAMP);
  expect_reason(build(q), grpc::StatusCode::FAILED_PRECONDITION, "ALL_WEIGHTS_ZERO");
}

TEST_F(SamplingTableService, AnAllZeroMapHasNoAnswer) {
  expect_reason(build(weights({0, 0, 0, 0}, 2)), grpc::StatusCode::FAILED_PRECONDITION, "ALL_WEIGHTS_ZERO");
  EXPECT_TRUE(testing::eventually([&] { return server_.reserved_bytes() == 0; }));
}

TEST_F(SamplingTableService, RefusesWrongWeights) {
  v1::BuildSamplingTableRequest q;
  expect_bad_field(build(q), "weights", "is missing");
  testing::set_inline<double>(*q.mutable_weights(), v1::FLOAT64, {1, 1}, {1});
  expect_bad_field(build(q), "weights", "FLOAT64");
  testing::set_inline<float>(*q.mutable_weights(), v1::FLOAT32, {1, 1, 5}, {1, 1, 1, 1, 1});
  expect_bad_field(build(q), "weights", "5 channels");
  testing::set_inline(*q.mutable_weights(), v1::UINT8, {2, 32769}, std::vector<std::uint8_t>(2 * 32769, 1));
  expect_bad_field(build(q), "weights", "32768");
  q = weights({1}, 1);
  q.set_projection(static_cast<v1::Projection>(9));
  expect_bad_field(build(q), "projection", "9");
  q = weights({1, 2, 3, 4, 5, 6}, 3);
  q.set_projection(v1::EQUAL_AREA);
  expect_bad_field(build(q), "weights", "2 x 3 pixels; an EQUAL_AREA map is square");
  q = weights({1}, 1);
  q.set_invalid_weights(static_cast<v1::InvalidWeights>(7));
  expect_bad_field(build(q), "invalid_weights", "7");
}

TEST_F(SamplingTableService, AnAllZeroMapIsUniformWhereThatIsAskedFor) {
  auto q = weights({0, 0, 0, 0}, 2);
  q.set_uniform_if_all_zero(true);
  ASSERT_TRUE(build(q).ok());
  v1::DrawSamplesRequest drawing;
  *drawing.mutable_table()->mutable_inline_array() = result_.arrays(0).inline_array();
  drawing.set_count(64);
  ASSERT_TRUE(draw(drawing).ok());
  for (const float pdf : floats("pdf")) EXPECT_NEAR(pdf, 0.0795774715F, 1e-7F);
}

TEST_F(SamplingTableService, CompensationLeavesWhatIsAboveTheMean) {
  auto q = weights({1, 2, 3, 6}, 2);
  q.set_projection(v1::PLANE);
  q.set_mis_compensation(true);
  ASSERT_TRUE(build(q).ok());
  v1::DrawSamplesRequest drawing;
  *drawing.mutable_table()->mutable_inline_array() = result_.arrays(0).inline_array();
  drawing.set_count(64);
  ASSERT_TRUE(draw(drawing).ok());
  for (const float pdf : floats("pdf")) EXPECT_NEAR(pdf, 4.0F, 1e-5F) << "of four texels only one is above 3";
}

TEST_F(SamplingTableService, LuminanceIsSelectable) {
  const auto share_of_first = [&](v1::Luminance luminance, const std::vector<float>& coefficients) {
    v1::BuildSamplingTableRequest q;
    testing::set_inline<float>(*q.mutable_weights(), v1::FLOAT32, {1, 2, 3}, {1, 0, 0, 0, 1, 1});
    q.set_projection(v1::PLANE);
    q.set_luminance(luminance);
    for (const float coefficient : coefficients) q.add_luminance_coefficients(coefficient);
    EXPECT_TRUE(build(q).ok());
    const std::string& bytes = result_.arrays(0).inline_array().data();
    sampling::TableView view;
    EXPECT_EQ(sampling::parse_header(bytes.data(), bytes.size(), bytes.size(), view.header),
              sampling::TableError::kNone);
    view.data = reinterpret_cast<const unsigned char*>(bytes.data());
    return sampling::pdf(view, 0.25F, 0.5F) / 2;
  };
  EXPECT_NEAR(share_of_first(v1::LUMINANCE_UNSPECIFIED, {}), 0.2126F, 1e-6F);
  EXPECT_NEAR(share_of_first(v1::REC_709, {}), 0.2126F, 1e-6F);
  EXPECT_NEAR(share_of_first(v1::REC_2020, {}), 0.2627F, 1e-6F);
  EXPECT_NEAR(share_of_first(v1::ACESCG, {}), 0.2722287F, 1e-6F);
  EXPECT_NEAR(share_of_first(v1::AVERAGE, {}), 1.0F / 3.0F, 1e-6F);
  EXPECT_NEAR(share_of_first(v1::CUSTOM, {3, 0, 1}), 0.75F, 1e-6F);
}

TEST_F(SamplingTableService, TakesHalfFloats) {
  v1::BuildSamplingTableRequest q;
  testing::set_inline<std::uint16_t>(*q.mutable_weights(), v1::FLOAT16, {1, 2}, {0x3C00, 0x4200});  // 1 and 3
  q.set_projection(v1::PLANE);
  ASSERT_TRUE(build(q).ok());
  v1::EvaluateDensityRequest asking;
  *asking.mutable_table()->mutable_inline_array() = result_.arrays(0).inline_array();
  testing::set_inline<float>(*asking.mutable_points(), v1::FLOAT32, {2, 2}, {0.25F, 0.5F, 0.75F, 0.5F});
  ASSERT_TRUE(evaluate(asking).ok());
  EXPECT_NEAR(floats("pdf")[0], 0.5F, 1e-6F);
  EXPECT_NEAR(floats("pdf")[1], 1.5F, 1e-6F);
}

TEST_F(SamplingTableService, RefusesWrongLuminances) {
  auto q = weights({1, 1, 1}, 1);
  q.set_luminance(static_cast<v1::Luminance>(9));
  expect_bad_field(build(q), "luminance", "is 9; REC_709");
  q.set_luminance(v1::REC_709);
  q.add_luminance_coefficients(1);
  expect_bad_field(build(q), "luminance_coefficients", "unless luminance is CUSTOM");
  q.set_luminance(v1::CUSTOM);
  expect_bad_field(build(q), "luminance_coefficients", "has 1 elements; 3");
  q.add_luminance_coefficients(1);
  q.add_luminance_coefficients(-1);
  expect_bad_field(build(q), "luminance_coefficients[2]", "is -1");
  q.set_luminance_coefficients(2, std::numeric_limits<float>::infinity());
  expect_bad_field(build(q), "luminance_coefficients[2]", "is inf");
  for (int i = 0; i < 3; ++i) q.set_luminance_coefficients(i, 0);
  expect_bad_field(build(q), "luminance_coefficients", "are all 0");
}

TEST_F(SamplingTableService, RefusesWhatIsNoTable) {
  const auto good = draw_request();
  auto q = good;
  q.clear_table();
  expect_bad_field(draw(q), "table", "is missing");
  testing::set_inline<float>(*q.mutable_table(), v1::FLOAT32, {1}, {1});
  expect_bad_field(draw(q), "table", "UINT8 [bytes]");
  testing::set_inline(*q.mutable_table(), v1::UINT8, {600}, std::vector<std::uint8_t>(600, 0));
  expect_bad_field(draw(q), "table", "first eight bytes");
  q = good;
  auto& array = *q.mutable_table()->mutable_inline_array();
  array.mutable_data()->pop_back();
  array.mutable_spec()->set_shape(0, array.spec().shape(0) - 1);
  expect_bad_field(draw(q), "table", "size in bytes");
}

TEST_F(SamplingTableService, RefusesARangeOutsideTheSequence) {
  auto q = draw_request();
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{-1}, (std::int64_t{1} << 31) + 1}) {
    q.set_count(count);
    expect_bad_field(draw(q), "count", std::to_string(count));
  }
  q = draw_request();
  for (const std::int64_t first : {std::int64_t{-1}, (std::int64_t{1} << 32) - 15, INT64_MAX}) {
    q.set_first_index(first);
    expect_bad_field(draw(q), "first_index", std::to_string(first));
  }
  q = draw_request();
  for (const std::int64_t total : {std::int64_t{-1}, std::int64_t{15}, (std::int64_t{1} << 32) + 1}) {
    q.set_total(total);
    expect_bad_field(draw(q), "total", std::to_string(total));
  }
  q = draw_request();
  q.set_sequence(static_cast<v1::Sequence>(9));
  expect_bad_field(draw(q), "sequence", "9");
}

TEST_F(SamplingTableService, PartsReachToTheEndOfTheSequence) {
  auto q = draw_request();
  for (const v1::Sequence sequence : {v1::SOBOL, v1::RANDOM, v1::HAMMERSLEY}) {
    q.set_sequence(sequence);
    q.set_first_index((std::int64_t{1} << 32) - 16);
    ASSERT_TRUE(draw(q).ok());
    const auto position = floats("position");
    ASSERT_EQ(position.size(), 32u);
    const std::string& table = q.table().inline_array().data();
    sampling::TableView view;
    ASSERT_EQ(sampling::parse_header(table.data(), table.size(), table.size(), view.header),
              sampling::TableError::kNone);
    view.data = reinterpret_cast<const unsigned char*>(table.data());
    const std::uint32_t last = 0xFFFFFFFFu;
    const sampling::FixedPoint2 point = sequence == v1::SOBOL ? sampling::sobol_point(last)
                                        : sequence == v1::RANDOM
                                            ? sampling::random_point(last, 0)
                                            : sampling::hammersley_point(last, std::uint64_t{1} << 32);
    const sampling::Sample expected = sampling::sample(view, point.x, point.y);
    EXPECT_EQ(position[30], expected.u);
    EXPECT_EQ(position[31], expected.v);
  }
}

TEST_F(SamplingTableService, EvaluatesTheDensityThatItDraws) {
  for (const v1::Projection projection : {v1::LAT_LONG, v1::PLANE, v1::EQUAL_AREA}) {
    auto q = draw_request(projection);
    q.set_sequence(v1::RANDOM);
    ASSERT_TRUE(draw(q).ok());
    const auto pdf = floats("pdf");
    const auto position = floats("position");
    const auto direction = floats("direction");
    ASSERT_TRUE(evaluate(evaluate_request(position, 2, projection)).ok());
    EXPECT_EQ(floats("pdf"), pdf);
    if (projection == v1::PLANE) continue;
    ASSERT_TRUE(evaluate(evaluate_request(direction, 3, projection)).ok());
    EXPECT_EQ(floats("pdf"), pdf);
  }
}

TEST_F(SamplingTableService, RefusesPointsThatHaveNoDensity) {
  const auto good = evaluate_request({0.5F, 0.5F}, 2);
  auto q = good;
  q.clear_points();
  expect_bad_field(evaluate(q), "points", "is missing");
  q = good;
  q.clear_table();
  expect_bad_field(evaluate(q), "table", "is missing");
  testing::set_inline(*q.mutable_table(), v1::UINT8, {600}, std::vector<std::uint8_t>(600, 0));
  expect_bad_field(evaluate(q), "table", "first eight bytes");
  q = good;
  testing::set_inline<double>(*q.mutable_points(), v1::FLOAT64, {1, 2}, {0.5, 0.5});
  expect_bad_field(evaluate(q), "points", "FLOAT64");
  testing::set_inline<float>(*q.mutable_points(), v1::FLOAT32, {2}, {0.5F, 0.5F});
  expect_bad_field(evaluate(q), "points", "[2]");
  testing::set_inline<float>(*q.mutable_points(), v1::FLOAT32, {1, 4}, {0, 0, 0, 0});
  expect_bad_field(evaluate(q), "points", "[count, 3], directions");
  testing::set_inline<float>(*q.mutable_points(), v1::FLOAT32, {0, 2}, {});
  expect_bad_field(evaluate(q), "points", "[0, 2]");
  expect_bad_field(evaluate(evaluate_request({0, 1, 0}, 3, v1::PLANE)), "points",
                   "a plane has no directions");
}

TEST_F(SamplingTableService, TheDensityOfPointsOutsideAndOfNoPointsIsDefined) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(
      evaluate(evaluate_request({-3.0F, 0.0F, 7.0F, 2.0F, nan, nan, 0.0F, 0.0F, 0.9F, 0.9F}, 2)).ok());
  const auto pdf = floats("pdf");
  ASSERT_EQ(pdf.size(), 5u);
  EXPECT_EQ(pdf[0], pdf[3]);
  EXPECT_EQ(pdf[1], pdf[4]);
  EXPECT_EQ(pdf[2], pdf[3]);
  ASSERT_TRUE(evaluate(evaluate_request({nan, nan, nan, 0, 0, 0}, 3)).ok());
  for (const float density : floats("pdf")) EXPECT_TRUE(std::isfinite(density));
}

// The server checks a table's header and nothing else of it; what it holds may be anything.
TEST_F(SamplingTableService, GarbageInATableIsHarmless) {
  auto q = draw_request();
  std::string& bytes = *q.mutable_table()->mutable_inline_array()->mutable_data();
  std::memset(bytes.data() + sampling::kHeaderBytes, 0xFF, bytes.size() - sampling::kHeaderBytes);
  EXPECT_TRUE(draw(q).ok());
}

}  // namespace
}  // namespace cumulus
