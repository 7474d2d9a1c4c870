#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cumulus/sampling.h"
#include "tests/support/sampling_table_service.h"

namespace cumulus {
namespace {

using testing::expect_bad_field;
using testing::expect_reason;
using testing::SamplingTableService;

class SamplingTableMethodsService : public SamplingTableService {
 protected:
  /// The header of the table that `build` has answered with.
  sampling::TableHeader built_header() const {
    const std::string& bytes = result_.arrays(0).inline_array().data();
    sampling::TableHeader header;
    EXPECT_EQ(sampling::parse_header(bytes.data(), bytes.size(), bytes.size(), header),
              sampling::TableError::kNone);
    return header;
  }
  /// A request that draws from it.
  v1::DrawSamplesRequest draw_from_built(std::int64_t count) const {
    v1::DrawSamplesRequest request;
    *request.mutable_table()->mutable_inline_array() = result_.arrays(0).inline_array();
    request.set_count(count);
    return request;
  }
};

TEST_F(SamplingTableMethodsService, BuildsATableByEveryMethodThatDrawsTheSameSamples) {
  std::vector<float> expected;
  for (int method = v1::CUTPOINT_BINARY; method <= v1::ALIAS; ++method) {
    if (!v1::SamplingMethod_IsValid(method)) continue;  // a retired one
    auto q = weights({1, 0, 3, 4, 5, 6}, 3);
    q.set_method(static_cast<v1::SamplingMethod>(method));
    ASSERT_TRUE(build(q).ok()) << method;
    EXPECT_EQ(static_cast<int>(built_header().method), method);
    ASSERT_TRUE(draw(draw_from_built(64)).ok());
    if (expected.empty()) expected = floats("position");
    if (method != v1::ALIAS) {
      EXPECT_EQ(floats("position"), expected) << method;
    } else {
      EXPECT_NE(floats("position"), expected);
    }
  }
}

TEST_F(SamplingTableMethodsService, TheBalancedForestIsTheMethodUnlessAnotherIsAskedFor) {
  ASSERT_TRUE(build(weights({1, 2}, 2)).ok());
  const sampling::TableHeader header = built_header();
  EXPECT_EQ(header.method, sampling::Method::kBalancedForest);
}

TEST_F(SamplingTableMethodsService, TakesGuideSizes) {
  auto q = weights({1, 2, 3, 4, 5, 6}, 3);
  q.set_guide_size(7);
  q.set_marginal_guide_size(11);
  ASSERT_TRUE(build(q).ok());
  const sampling::TableHeader header = built_header();
  EXPECT_EQ(header.row_guide_size, 7u);
  EXPECT_EQ(header.marginal_guide_size, 11u);
}

TEST_F(SamplingTableMethodsService, RefusesWrongMethodsAndGuideSizes) {
  auto q = weights({1, 2}, 2);
  for (const int method : {-1, 10}) {
    q.set_method(static_cast<v1::SamplingMethod>(method));
    expect_bad_field(build(q), "method", std::to_string(method));
  }
  for (const sampling::RetiredMethod& retired : sampling::kRetiredMethods) {
    q.set_method(static_cast<v1::SamplingMethod>(retired.number));
    expect_bad_field(build(q), "method", retired.name);
    expect_bad_field(build(q), "method", "CUTPOINT_BINARY");
  }
  q.set_method(v1::CUTPOINT_BINARY);
  q.set_guide_size((1u << 24) + 1);
  expect_bad_field(build(q), "guide_size", "16777217");
  q.set_guide_size(0);
  q.set_marginal_guide_size((1u << 24) + 1);
  expect_bad_field(build(q), "marginal_guide_size", "16777217");
  for (const auto method : {v1::BINARY_SEARCH, v1::ALIAS}) {
    q.set_method(method);
    q.set_guide_size(1);
    expect_bad_field(build(q), "guide_size", v1::SamplingMethod_Name(method));
    q.set_guide_size(0);
    q.set_marginal_guide_size(1);
    expect_bad_field(build(q), "marginal_guide_size", v1::SamplingMethod_Name(method));
  }
}

TEST_F(SamplingTableMethodsService, TakesAListOfWeightsAsOneRow) {
  std::vector<float> values(40'000, 1.0F);
  values[39'999] = 40'000.0F;
  v1::BuildSamplingTableRequest q;
  testing::set_inline(*q.mutable_weights(), v1::FLOAT32, {40'000}, values);
  q.set_projection(v1::PLANE);
  ASSERT_TRUE(build(q).ok());
  v1::DrawSamplesRequest draws = draw_from_built(4096);
  ASSERT_TRUE(draw(draws).ok());
  const auto position = floats("position");
  int last = 0;
  for (std::size_t i = 0; i < position.size(); i += 2)
    last += sampling::cell_of(position[i], 40'000) == 39'999;
  EXPECT_NEAR(last, 2048, 2) << "the last has half of the weight, and Sobol's points are even";
}

TEST_F(SamplingTableMethodsService, BuildsAndDrawsTheLayersOfAVideo) {
  const std::vector<float> frames = {1, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 0};  // three of two by two
  v1::BuildSamplingTableRequest q;
  testing::set_inline(*q.mutable_weights(), v1::FLOAT32, {3, 2, 2}, frames);
  q.set_layered(true);
  q.set_projection(v1::PLANE);
  ASSERT_TRUE(build(q).ok());
  v1::DrawSamplesRequest draws = draw_from_built(50);
  const std::uint32_t bright[3][2] = {{0, 0}, {1, 1}, {1, 0}};  // x, y
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    draws.set_layer(layer);
    ASSERT_TRUE(draw(draws).ok());
    const auto position = floats("position");
    for (std::size_t i = 0; i < position.size(); i += 2) {
      ASSERT_EQ(sampling::cell_of(position[i], 2), bright[layer][0]);
      ASSERT_EQ(sampling::cell_of(position[i + 1], 2), bright[layer][1]);
    }
  }
  draws.set_layer(3);
  expect_bad_field(draw(draws), "layer", "3 layers");
}

TEST_F(SamplingTableMethodsService, InterpolatesBetweenWeightsWhereThatIsAskedFor) {
  auto q = weights({0, 1}, 2);
  q.set_projection(v1::PLANE);
  q.set_interpolation(v1::BILINEAR);
  ASSERT_TRUE(build(q).ok());
  EXPECT_EQ(built_header().interpolation, sampling::Interpolation::kBilinear);
  const v1::DrawSamplesRequest draws = draw_from_built(4096);
  ASSERT_TRUE(draw(draws).ok());
  const auto position = floats("position");
  const auto drawn_pdf = floats("pdf");
  v1::EvaluateDensityRequest evaluation;
  *evaluation.mutable_table() = draws.table();
  testing::set_inline(*evaluation.mutable_points(), v1::FLOAT32, {4096, 2}, position);
  ASSERT_TRUE(evaluate(evaluation).ok());
  EXPECT_EQ(floats("pdf"), drawn_pdf);
  // 0 up to 1/4, where the first texel has its centre, then growing to 2 at 3/4, the centre of the other.
  for (std::size_t i = 0; i < drawn_pdf.size(); ++i) {
    const double u = static_cast<double>(position[2 * i]);
    ASSERT_GT(u, 0.25);
    const double expected = u < 0.75 ? 4 * (u - 0.25) : 2.0;
    ASSERT_NEAR(static_cast<double>(drawn_pdf[i]), expected, 1e-6 * expected) << u;
  }
}

TEST_F(SamplingTableMethodsService, RefusesAnInterpolationThatIsNone) {
  auto q = weights({1, 2}, 2);
  q.set_interpolation(static_cast<v1::Interpolation>(3));
  expect_bad_field(build(q), "interpolation", "3; CONSTANT or BILINEAR");
}

TEST_F(SamplingTableMethodsService, NamesTheLayerThatIsWrong) {
  v1::BuildSamplingTableRequest q;
  q.set_layered(true);
  testing::set_inline<float>(*q.mutable_weights(), v1::FLOAT32, {3, 1, 2}, {1, 1, 0, 0, 1, 1});
  grpc::Status status = build(q);
  expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "ALL_WEIGHTS_ZERO");
  EXPECT_NE(status.error_message().find("layer 1"), std::string::npos) << status.error_message();
  testing::set_inline<float>(*q.mutable_weights(), v1::FLOAT32, {3, 1, 2}, {1, 1, 1, 1, 1, -1});
  status = build(q);
  expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "INVALID_WEIGHT");
  EXPECT_NE(status.error_message().find("layer 2, row 0, column 1"), std::string::npos)
      << status.error_message();
  testing::set_inline<float>(*q.mutable_weights(), v1::FLOAT32, {2}, {1, 1});
  expect_bad_field(build(q), "weights", "[layers, height, width]");
  testing::set_inline<std::uint8_t>(*q.mutable_weights(), v1::UINT8, {65537, 1},
                                    std::vector<std::uint8_t>(65537, 1));
  expect_bad_field(build(q), "weights", "65537 layers");
}

}  // namespace
}  // namespace cumulus
