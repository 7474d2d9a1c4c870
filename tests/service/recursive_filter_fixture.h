#pragma once

#include <gtest/gtest.h>

#include "tests/cases/recursive_filter_case.h"
#include "tests/support/test_server.h"

namespace cumulus::testing {

/// A server, and requests for it.
class RecursiveFilterServer : public ::testing::Test {
 protected:
  using Request = v1::ApplyRecursiveFilterRequest;

  grpc::Status apply(const Request& request) {
    grpc::ClientContext context;
    return server_.operations->ApplyRecursiveFilter(&context, request, &result_);
  }
  /// A request without a filter.
  static Request request_for(const FilterImage& image) {
    Request request;
    set_inline(*request.mutable_image(), v1::FLOAT32,
               {image.shape.height, image.shape.width, image.shape.channels}, image.elements);
    return request;
  }

  TestServer server_;
  v1::OperationResult result_;
};

}  // namespace cumulus::testing
