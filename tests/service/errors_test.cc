#include "server/pipeline/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

using ::testing::EndsWith;

google::rpc::Status envelope_of(const grpc::Status& status) {
  google::rpc::Status envelope;
  EXPECT_TRUE(envelope.ParseFromString(status.error_details()));
  return envelope;
}

/// The detail of that type; the test fails where there is none or there are several.
template <class Detail>
Detail detail_of(const grpc::Status& status) {
  const google::rpc::Status envelope = envelope_of(status);
  Detail found;
  int count = 0;
  for (const google::protobuf::Any& any : envelope.details()) count += any.UnpackTo(&found) ? 1 : 0;
  EXPECT_EQ(count, 1) << Detail::descriptor()->full_name();
  return found;
}

std::string reason_of(const absl::Status& status) {
  const auto info = detail_of<google::rpc::ErrorInfo>(to_grpc(status));
  EXPECT_EQ(info.domain(), "cumulus");
  return info.reason();
}

TEST(Errors, ABadFieldNamesItsPathAndWhatWouldBeRight) {
  const grpc::Status status =
      to_grpc(bad_field("image.inline_array.spec.shape[1]", "is -1; extents are at least 0"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "image.inline_array.spec.shape[1]: is -1; extents are at least 0");
  const auto detail = detail_of<google::rpc::BadRequest>(status);
  ASSERT_EQ(detail.field_violations_size(), 1);
  EXPECT_EQ(detail.field_violations(0).field(), "image.inline_array.spec.shape[1]");
  EXPECT_EQ(detail.field_violations(0).description(), "is -1; extents are at least 0");
}

TEST(Errors, EveryKindHasItsCodeAndItsReason) {
  struct Kind {
    absl::Status status;
    grpc::StatusCode code;
    std::string reason;
  };
  const std::vector<Kind> kinds = {
      {bad_field("a", "b"), grpc::StatusCode::INVALID_ARGUMENT, "INVALID_FIELD"},
      {bad_request("CHECKSUM_MISMATCH", "b"), grpc::StatusCode::INVALID_ARGUMENT, "CHECKSUM_MISMATCH"},
      {not_found("BUFFER_EVICTED", "b"), grpc::StatusCode::NOT_FOUND, "BUFFER_EVICTED"},
      {exhausted("device:cpu", "b"), grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED"},
      {unavailable("DRAINING", "b", absl::Seconds(1)), grpc::StatusCode::UNAVAILABLE, "DRAINING"},
      {no_answer("ALL_ZERO", "b"), grpc::StatusCode::FAILED_PRECONDITION, "ALL_ZERO"},
      {unsupported("NO_IMAGES", "b"), grpc::StatusCode::UNIMPLEMENTED, "NO_IMAGES"},
      {device_fault("b"), grpc::StatusCode::INTERNAL, "DEVICE_FAULT"},
  };
  for (const Kind& kind : kinds) {
    EXPECT_EQ(to_grpc(kind.status).error_code(), kind.code) << kind.reason;
    EXPECT_EQ(reason_of(kind.status), kind.reason);
  }
}

TEST(Errors, TheEnvelopeRepeatsCodeAndText) {
  const grpc::Status status = to_grpc(not_found("SESSION_EXPIRED", "sessions/x has expired"));
  const google::rpc::Status envelope = envelope_of(status);
  EXPECT_EQ(envelope.code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(envelope.message(), status.error_message());
}

TEST(Errors, AnExhaustedLimitNamesItsSubject) {
  const auto detail = detail_of<google::rpc::QuotaFailure>(to_grpc(exhausted("device:cuda0", "no memory")));
  ASSERT_EQ(detail.violations_size(), 1);
  EXPECT_EQ(detail.violations(0).subject(), "device:cuda0");
  EXPECT_EQ(detail.violations(0).description(), "no memory");
}

TEST(Errors, UnavailableSaysWhenToTryAgain) {
  const auto detail =
      detail_of<google::rpc::RetryInfo>(to_grpc(unavailable("QUEUE_FULL", "full", absl::Milliseconds(2250))));
  EXPECT_EQ(detail.retry_delay().seconds(), 2);
  EXPECT_EQ(detail.retry_delay().nanos(), 250'000'000);
}

TEST(Errors, NoAnswerCarriesTheFirstOffendingPosition) {
  const auto info =
      detail_of<google::rpc::ErrorInfo>(to_grpc(no_answer("UNBALANCED", "no partner", {{"position", "17"}})));
  EXPECT_EQ(info.reason(), "UNBALANCED");
  EXPECT_EQ(info.metadata().at("position"), "17");
}

TEST(Errors, ContextComesBeforeTheTextAndKeepsTheDetails) {
  const grpc::Status status = to_grpc(with_context(bad_field("image", "is missing"), "FilterBox"));
  EXPECT_EQ(status.error_message(), "FilterBox: image: is missing");
  const auto detail = detail_of<google::rpc::BadRequest>(status);
  EXPECT_EQ(detail.field_violations(0).field(), "image");
  EXPECT_TRUE(with_context(absl::OkStatus(), "FilterBox").ok());
}

TEST(Errors, AStatusFromElsewhereGetsItsCodeAsReason) {
  EXPECT_EQ(reason_of(absl::DeadlineExceededError("late")), "DEADLINE_EXCEEDED");
  EXPECT_EQ(reason_of(absl::CancelledError("gone")), "CANCELLED");
  EXPECT_TRUE(to_grpc(absl::OkStatus()).ok());
}

TEST(Errors, ALongTextIsCutBetweenCharactersToFitATrailer) {
  std::string text;
  while (text.size() < 100'000) text += "\u00fc";  // two bytes each
  const grpc::Status status = to_grpc(with_context(bad_field("name", text), "x"));
  EXPECT_LT(status.error_details().size(), 4096u);
  EXPECT_THAT(status.error_message(), EndsWith("\u00fc..."));
  EXPECT_THAT(detail_of<google::rpc::BadRequest>(status).field_violations(0).description(),
              EndsWith("\u00fc..."));
}

TEST(Errors, TextsAreCutBetweenCharacters) {
  EXPECT_EQ(cut_text("a\u00fcb", 4), "a\u00fcb");
  EXPECT_EQ(cut_text("a\u00fcb", 3), "a\u00fc");
  EXPECT_EQ(cut_text("a\u00fcb", 2), "a");
  EXPECT_EQ(cut_text("\u20ac", 2), "");
  EXPECT_EQ(cut_text("", 2), "");
}

}  // namespace
}  // namespace cumulus::server
