#pragma once

#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace cumulus::testing {

/// The google.rpc details that came with an error.
inline google::rpc::Status details_of(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

template <class Detail>
Detail detail_of(const grpc::Status& status) {
  Detail detail;
  bool found = false;
  const google::rpc::Status details = details_of(status);
  for (const auto& any : details.details()) found = found || any.UnpackTo(&detail);
  EXPECT_TRUE(found) << status.error_message() << " has no " << Detail::descriptor()->full_name();
  return detail;
}

/// Expects `status` to be INVALID_ARGUMENT for `field`, with `what` in its text and ErrorInfo beside it.
inline void expect_bad_field(const grpc::Status& status, const std::string& field, const std::string& what) {
  ASSERT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_NE(status.error_message().find(what), std::string::npos) << status.error_message();
  const auto request = detail_of<google::rpc::BadRequest>(status);
  ASSERT_EQ(request.field_violations_size(), 1);
  EXPECT_EQ(request.field_violations(0).field(), field);
  EXPECT_EQ(detail_of<google::rpc::ErrorInfo>(status).domain(), "cumulus");
}

inline void expect_reason(const grpc::Status& status, grpc::StatusCode code, const std::string& reason) {
  ASSERT_EQ(status.error_code(), code) << status.error_message();
  EXPECT_EQ(detail_of<google::rpc::ErrorInfo>(status).reason(), reason) << status.error_message();
}

}  // namespace cumulus::testing
