#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

/// What a server says about an error beyond its code and text. Every status that comes from a server
/// carries these details as payloads; a status made by this library, or by the network, has none, and
/// the functions answer with nothing.
namespace cumulus {

/// Why, as a constant to compare with: "INVALID_FIELD", "QUEUE_FULL", "SESSION_EXPIRED",
/// "BUFFER_EVICTED", "INSTANCE_RESTARTED", "DEVICE_FAULT", ...
std::string error_reason(const absl::Status& status);

/// Facts about the error by name, for example the first offending position of an input.
std::map<std::string, std::string> error_metadata(const absl::Status& status);

struct FieldViolation {
  std::string field;        // path of the request's field: "weights.inline_array.spec.shape[1]"
  std::string description;  // what would be right
};
/// The fields that are wrong, of an INVALID_ARGUMENT.
std::vector<FieldViolation> field_violations(const absl::Status& status);

struct QuotaViolation {
  std::string subject;  // what ran out: "device:cuda0", "session:..."
  std::string description;
};
/// What ran out, of a RESOURCE_EXHAUSTED.
std::vector<QuotaViolation> quota_violations(const absl::Status& status);

/// How long to wait before the call is worth repeating, of an UNAVAILABLE. The library has already
/// repeated the call within its deadline when a caller sees this.
std::optional<absl::Duration> retry_delay(const absl::Status& status);

}  // namespace cumulus
