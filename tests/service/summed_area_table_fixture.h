#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/test_server.h"

namespace cumulus::testing {

/// A server, and requests that are right.
class SummedAreaTableService : public ::testing::Test {
 protected:
  grpc::Status build(const v1::BuildSummedAreaTableRequest& request) {
    grpc::ClientContext context;
    return server_.operations->BuildSummedAreaTable(&context, request, &result_);
  }
  grpc::Status sum(const v1::SumRectanglesRequest& request) {
    grpc::ClientContext context;
    return server_.operations->SumRectangles(&context, request, &result_);
  }
  grpc::Status filter(const v1::FilterBoxRequest& request) {
    grpc::ClientContext context;
    return server_.operations->FilterBox(&context, request, &result_);
  }
  static v1::BuildSummedAreaTableRequest floats(const std::vector<std::int64_t>& shape) {
    v1::BuildSummedAreaTableRequest request;
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    set_inline(*request.mutable_image(), v1::FLOAT32, shape,
               std::vector<float>(static_cast<std::size_t>(count), 1));
    return request;
  }

  template <class T>
  std::vector<T> values(const std::string& name) {
    const auto* array = find_array(result_, name);
    EXPECT_NE(array, nullptr) << name;
    return array == nullptr ? std::vector<T>() : values_of<T>(array->inline_array());
  }
  std::vector<std::int64_t> shape(const std::string& name) {
    const auto* array = find_array(result_, name);
    EXPECT_NE(array, nullptr) << name;
    if (array == nullptr) return {};
    const auto& extents = array->inline_array().spec().shape();
    return {extents.begin(), extents.end()};
  }
  /// A table of 2 x 3 pixels 1 2 3 / 4 5 6 and two rectangles in it.
  static v1::SumRectanglesRequest two_rectangles() {
    v1::SumRectanglesRequest request;
    set_inline<double>(*request.mutable_sums(), v1::FLOAT64, {2, 3}, {1, 3, 6, 5, 12, 21});
    set_inline<std::int32_t>(*request.mutable_rectangles(), v1::INT32, {2, 4}, {0, 0, 2, 3, 1, 1, 9, 9});
    return request;
  }
  static v1::FilterBoxRequest row_of_four() {
    v1::FilterBoxRequest request;
    set_inline<float>(*request.mutable_image(), v1::FLOAT32, {1, 4}, {1, 2, 3, 6});
    request.set_radius(1);
    request.set_boundary_x(v1::BOX_EXACT);
    request.set_boundary_y(v1::BOX_EXACT);
    return request;
  }

  TestServer server_;
  v1::OperationResult result_;
};

}  // namespace cumulus::testing
