#include "server/runtime/wire.h"

#include <absl/strings/str_cat.h>

#include <cstdint>

#include "proto/steady_time.h"
#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

constexpr std::int64_t kMaxSeconds = 315576000000;  // the protobuf type's own range, about 10 000 years
constexpr std::int32_t kNanosPerSecond = 1000000000;

}  // namespace

absl::StatusOr<absl::Duration> to_absl(const google::protobuf::Duration& duration, std::string_view field) {
  const bool in_range = duration.seconds() >= -kMaxSeconds && duration.seconds() <= kMaxSeconds &&
                        duration.nanos() > -kNanosPerSecond && duration.nanos() < kNanosPerSecond;
  const bool signs_agree = (duration.seconds() <= 0 || duration.nanos() >= 0) &&
                           (duration.seconds() >= 0 || duration.nanos() <= 0);
  if (!in_range || !signs_agree) {
    return bad_field(field, absl::StrCat("has seconds ", duration.seconds(), " and nanos ", duration.nanos(),
                                         "; nanos has the sign of seconds and lies within a second"));
  }
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

google::protobuf::Duration to_proto(absl::Duration duration) {
  google::protobuf::Duration message;
  message.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  message.set_nanos(static_cast<std::int32_t>(absl::ToInt64Nanoseconds(duration)));
  return message;
}

google::protobuf::Timestamp to_proto(absl::Time time) {
  google::protobuf::Timestamp message;
  message.set_seconds(absl::ToUnixSeconds(time));
  message.set_nanos(
      static_cast<std::int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(message.seconds()))));
  return message;
}

void write_buffer(const ResidentBuffer& buffer, v1::Buffer& message) {
  message.set_name(buffer.name);
  write_array_spec(buffer.shape, *message.mutable_spec());
  message.set_size_bytes(static_cast<std::int64_t>(buffer.shape.bytes()));
  *message.mutable_create_time() = to_proto(on_the_clock(buffer.create_time));
  if (buffer.expire_time != absl::InfiniteFuture())
    *message.mutable_expire_time() = to_proto(on_the_clock(buffer.expire_time));
  message.set_evictable(buffer.evictable);
}

absl::StatusOr<absl::Duration> checked_ttl(bool present, const google::protobuf::Duration& ttl,
                                           std::string_view field, absl::Duration fallback,
                                           absl::Duration max) {
  if (!present) return fallback;
  const absl::StatusOr<absl::Duration> duration = to_absl(ttl, field);
  if (!duration.ok()) return duration.status();
  if (*duration <= absl::ZeroDuration() || *duration > max) {
    return bad_field(field, absl::StrCat("is ", absl::FormatDuration(*duration), "; more than 0 and at most ",
                                         absl::FormatDuration(max), " (max_ttl) is right"));
  }
  return duration;
}

absl::Status check_request_id(std::string_view id, std::string_view field) {
  constexpr std::size_t kMaxBytes = 128;
  if (id.size() <= kMaxBytes) return absl::OkStatus();
  return bad_field(field, absl::StrCat("has ", id.size(), " bytes; at most ", kMaxBytes, " are kept"));
}

}  // namespace cumulus::server
