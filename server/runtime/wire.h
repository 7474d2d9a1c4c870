#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <string_view>

#include "cumulus/v1/array.pb.h"
#include "server/runtime/session_store.h"

namespace cumulus::server {

/// INVALID_ARGUMENT naming `field` where `duration` is out of protobuf's range or its parts disagree in sign.
absl::StatusOr<absl::Duration> to_absl(const google::protobuf::Duration& duration, std::string_view field);

google::protobuf::Duration to_proto(absl::Duration duration);
google::protobuf::Timestamp to_proto(absl::Time time);

void write_buffer(const ResidentBuffer& buffer, v1::Buffer& message);

/// A time to live: `fallback` where the request says nothing, else more than 0 and at most `max`.
absl::StatusOr<absl::Duration> checked_ttl(bool present, const google::protobuf::Duration& ttl,
                                           std::string_view field, absl::Duration fallback,
                                           absl::Duration max);

/// INVALID_ARGUMENT naming `field` where a request's id is longer than the log keeps.
absl::Status check_request_id(std::string_view id, std::string_view field);

}  // namespace cumulus::server
