#include "server/pipeline/errors.h"

#include <absl/strings/cord.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cstdint>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

constexpr std::string_view kDomain = "cumulus";
constexpr std::string_view kTypeUrlPrefix = "type.googleapis.com/";
// Trailers of more than 8 KiB are refused by gRPC clients, and the text travels in them up to three times.
constexpr std::size_t kMaxTextBytes = 1024;

/// `text`, cut between characters where it is too long for a trailer.
std::string bounded(std::string_view text) {
  if (text.size() <= kMaxTextBytes) return std::string(text);
  constexpr std::string_view kCut = "...";
  return concat(cut_text(text, kMaxTextBytes - kCut.size()), kCut);
}

std::string type_url(const google::protobuf::Message& detail) {
  return concat(kTypeUrlPrefix, detail.GetDescriptor()->full_name());
}

void attach(absl::Status& status, const google::protobuf::Message& detail) {
  status.SetPayload(type_url(detail), absl::Cord(detail.SerializeAsString()));
}

google::rpc::ErrorInfo error_info(std::string_view reason) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain(std::string(kDomain));
  return info;
}

absl::Status make_status(absl::StatusCode code, std::string_view reason, std::string_view text) {
  absl::Status status(code, bounded(text));
  attach(status, error_info(reason));
  return status;
}

/// Of a status that is not OK; with its code as reason where it has none.
google::rpc::ErrorInfo info_of(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  const absl::optional<absl::Cord> payload = status.GetPayload(type_url(info));
  if (payload.has_value() && info.ParseFromString(std::string(*payload))) return info;
  return error_info(absl::StatusCodeToString(status.code()));
}

}  // namespace

absl::Status bad_field(std::string_view field, std::string_view what) {
  absl::Status status =
      make_status(absl::StatusCode::kInvalidArgument, "INVALID_FIELD", concat(field, ": ", what));
  google::rpc::BadRequest detail;
  google::rpc::BadRequest::FieldViolation& violation = *detail.add_field_violations();
  violation.set_field(bounded(field));
  violation.set_description(bounded(what));
  attach(status, detail);
  return status;
}

absl::Status bad_request(std::string_view reason, std::string_view what) {
  return make_status(absl::StatusCode::kInvalidArgument, reason, what);
}

absl::Status not_found(std::string_view reason, std::string_view what) {
  return make_status(absl::StatusCode::kNotFound, reason, what);
}

absl::Status exhausted(std::string_view subject, std::string_view what) {
  absl::Status status = make_status(absl::StatusCode::kResourceExhausted, "LIMIT_EXCEEDED", what);
  google::rpc::QuotaFailure detail;
  google::rpc::QuotaFailure::Violation& violation = *detail.add_violations();
  violation.set_subject(bounded(subject));
  violation.set_description(bounded(what));
  attach(status, detail);
  return status;
}

absl::Status unavailable(std::string_view reason, std::string_view what, absl::Duration retry_after) {
  absl::Status status = make_status(absl::StatusCode::kUnavailable, reason, what);
  google::rpc::RetryInfo detail;
  google::protobuf::Duration& delay = *detail.mutable_retry_delay();
  delay.set_seconds(absl::IDivDuration(retry_after, absl::Seconds(1), &retry_after));
  delay.set_nanos(static_cast<std::int32_t>(absl::ToInt64Nanoseconds(retry_after)));
  attach(status, detail);
  return status;
}

absl::Status no_answer(std::string_view reason, std::string_view what,
                       const std::map<std::string, std::string>& metadata) {
  absl::Status status = make_status(absl::StatusCode::kFailedPrecondition, reason, what);
  google::rpc::ErrorInfo info = error_info(reason);
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  attach(status, info);
  return status;
}

absl::Status unsupported(std::string_view reason, std::string_view what) {
  return make_status(absl::StatusCode::kUnimplemented, reason, what);
}

absl::Status unauthenticated(std::string_view reason, std::string_view what) {
  return make_status(absl::StatusCode::kUnauthenticated, reason, what);
}

absl::Status permission_denied(std::string_view reason, std::string_view what) {
  return make_status(absl::StatusCode::kPermissionDenied, reason, what);
}

absl::Status device_fault(std::string_view what) {
  return make_status(absl::StatusCode::kInternal, "DEVICE_FAULT", what);
}

std::string reason_of(const absl::Status& status) { return info_of(status).reason(); }

absl::Status with_context(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  absl::Status result(status.code(), bounded(concat(context, ": ", status.message())));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

absl::Status below_field(const absl::Status& status, std::string_view path,
                         const std::map<std::string, std::string>& metadata) {
  google::rpc::BadRequest fields;
  const absl::optional<absl::Cord> payload = status.GetPayload(type_url(fields));
  if (payload.has_value()) (void)fields.ParseFromString(std::string(*payload));
  const std::string_view joint = fields.field_violations().empty() ? ": " : ".";
  absl::Status result(status.code(), bounded(concat(path, joint, to_std_view(status.message()))));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& each) { result.SetPayload(url, each); });
  google::rpc::ErrorInfo info = info_of(status);
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  attach(result, info);
  if (fields.field_violations().empty()) return result;
  for (google::rpc::BadRequest::FieldViolation& violation : *fields.mutable_field_violations())
    violation.set_field(bounded(concat(path, ".", violation.field())));
  attach(result, fields);
  return result;
}

absl::Status with_servers_deadline(const absl::Status& status, absl::Duration limit) {
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError(concat(to_std_view(status.message()), "; the server allows ",
                                            absl::FormatDuration(limit), " (max_deadline)"));
}

grpc::Status to_grpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  absl::Status complete(status.code(), bounded(to_std_view(status.message())));
  attach(complete, error_info(absl::StatusCodeToString(status.code())));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { complete.SetPayload(url, payload); });

  google::rpc::Status envelope;
  envelope.set_code(static_cast<std::int32_t>(complete.code()));
  envelope.set_message(std::string(complete.message()));
  complete.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    google::protobuf::Any& detail = *envelope.add_details();
    detail.set_type_url(std::string(url));
    detail.set_value(std::string(payload));
  });
  return {static_cast<grpc::StatusCode>(complete.code()), std::string(complete.message()),
          envelope.SerializeAsString()};
}

}  // namespace cumulus::server
