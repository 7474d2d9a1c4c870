#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>
#include <grpcpp/support/status.h>

#include <map>
#include <string>
#include <string_view>

namespace cumulus::server {

// Bad requests and other answers that are no fault of the device. Each carries google.rpc.ErrorInfo
// (domain "cumulus", reason as stated) as a payload, and what else the table in docs/architecture.md asks
// for. Texts say what was wrong and what would be right.

/// INVALID_ARGUMENT, BadRequest with `field` (a path as "image.inline_array.spec.shape[1]"), reason
/// INVALID_FIELD. The status text is "field: what".
absl::Status bad_field(std::string_view field, std::string_view what);

/// INVALID_ARGUMENT without a field, for example a checksum that does not match.
absl::Status bad_request(std::string_view reason, std::string_view what);

/// NOT_FOUND; reasons: BUFFER_NOT_FOUND, BUFFER_EVICTED, BUFFER_EXPIRED, SESSION_NOT_FOUND,
/// SESSION_EXPIRED, INSTANCE_RESTARTED, REGION_NOT_FOUND.
absl::Status not_found(std::string_view reason, std::string_view what);

/// RESOURCE_EXHAUSTED with QuotaFailure; `subject` is what ran out ("device:cuda0", "session:...").
absl::Status exhausted(std::string_view subject, std::string_view what);

/// UNAVAILABLE with RetryInfo: the only retryable code. Reasons: QUEUE_FULL, NO_MEMORY_NOW, DRAINING.
absl::Status unavailable(std::string_view reason, std::string_view what, absl::Duration retry_after);

/// FAILED_PRECONDITION: well-formed input that has no answer. `metadata` names the first offending
/// position where there is one.
absl::Status no_answer(std::string_view reason, std::string_view what,
                       const std::map<std::string, std::string>& metadata = {});

/// UNIMPLEMENTED: this build or server cannot do it.
absl::Status unsupported(std::string_view reason, std::string_view what);

/// UNAUTHENTICATED: nobody knows who asks. Reasons: CREDENTIALS_MISSING, CREDENTIALS_MALFORMED,
/// TOKEN_UNKNOWN.
absl::Status unauthenticated(std::string_view reason, std::string_view what);

/// PERMISSION_DENIED: it is known who asks, and that one may not. Reason: ROLE_FORBIDS.
absl::Status permission_denied(std::string_view reason, std::string_view what);

/// INTERNAL, reason DEVICE_FAULT.
absl::Status device_fault(std::string_view what);

/// The reason in the ErrorInfo of a status that is not OK; the name of its code where it has none.
std::string reason_of(const absl::Status& status);

/// `status` with `context` (for example the operation's name) put before its text, payloads kept.
absl::Status with_context(const absl::Status& status, std::string_view context);

/// `status` of a message that is the field `path` of the request: its fields are named from the request on.
/// Its ErrorInfo has `metadata` besides.
absl::Status below_field(const absl::Status& status, std::string_view path,
                         const std::map<std::string, std::string>& metadata);

/// `status`; behind the text of a DEADLINE_EXCEEDED that it was the server's own limit.
absl::Status with_servers_deadline(const absl::Status& status, absl::Duration limit);

/// The only translation: code, text, and payloads as details of a google.rpc.Status in the
/// grpc-status-details-bin trailer. A status without ErrorInfo gets one, with its code as reason.
grpc::Status to_grpc(const absl::Status& status);

}  // namespace cumulus::server
