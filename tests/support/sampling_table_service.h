#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/test_server.h"

namespace cumulus::testing {

class SamplingTableService : public ::testing::Test {
 protected:
  grpc::Status build(const v1::BuildSamplingTableRequest& request) {
    grpc::ClientContext context;
    return server_.operations->BuildSamplingTable(&context, request, &result_);
  }
  grpc::Status draw(const v1::DrawSamplesRequest& request) {
    grpc::ClientContext context;
    return server_.operations->DrawSamples(&context, request, &result_);
  }
  grpc::Status evaluate(const v1::EvaluateDensityRequest& request) {
    grpc::ClientContext context;
    return server_.operations->EvaluateDensity(&context, request, &result_);
  }
  static v1::BuildSamplingTableRequest weights(const std::vector<float>& values, std::int64_t width) {
    v1::BuildSamplingTableRequest request;
    set_inline(*request.mutable_weights(), v1::FLOAT32,
               {static_cast<std::int64_t>(values.size()) / width, width}, values);
    return request;
  }
  /// A request that draws from a table of two by two texels.
  v1::DrawSamplesRequest draw_request(v1::Projection projection = v1::LAT_LONG) {
    auto q = weights({1, 2, 3, 4}, 2);
    q.set_projection(projection);
    EXPECT_TRUE(build(q).ok());
    v1::DrawSamplesRequest request;
    *request.mutable_table()->mutable_inline_array() = result_.arrays(0).inline_array();
    request.set_count(16);
    return request;
  }
  /// A request for densities of a table of two by two texels.
  v1::EvaluateDensityRequest evaluate_request(const std::vector<float>& points, std::int64_t dimensions,
                                              v1::Projection projection = v1::LAT_LONG) {
    v1::EvaluateDensityRequest request;
    *request.mutable_table() = draw_request(projection).table();
    set_inline(*request.mutable_points(), v1::FLOAT32,
               {static_cast<std::int64_t>(points.size()) / dimensions, dimensions}, points);
    return request;
  }
  std::vector<float> floats(const std::string& name) {
    const auto* array = find_array(result_, name);
    if (array == nullptr) return {};
    return values_of<float>(array->inline_array());
  }

  TestServer server_;
  v1::OperationResult result_;
};

}  // namespace cumulus::testing
