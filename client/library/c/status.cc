#include <absl/strings/cord.h>
#include <absl/strings/string_view.h>

#include <new>
#include <vector>

#include "cumulus/cumulus.h"
#include "cumulus/errors.h"
#include "google/rpc/status.pb.h"
#include "library/c/handles.h"

namespace cumulus::c {
namespace {

/// As the trailer grpc-status-details-bin had it; empty where there was none.
std::string details_of(const absl::Status& status) {
  google::rpc::Status details;
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    google::protobuf::Any& detail = *details.add_details();
    detail.set_type_url(std::string(type));
    detail.set_value(std::string(payload));
  });
  return details.SerializeAsString();
}

}  // namespace

static_assert(static_cast<int>(absl::StatusCode::kUnauthenticated) == CUMULUS_UNAUTHENTICATED &&
              static_cast<int>(absl::StatusCode::kDataLoss) == CUMULUS_DATA_LOSS &&
              static_cast<int>(absl::StatusCode::kInvalidArgument) == CUMULUS_INVALID_ARGUMENT);

cumulus_code report(cumulus_status* status, const Outcome& outcome) {
  const auto code = static_cast<cumulus_code>(outcome.status.code());
  if (status == nullptr) return code;
  *status = cumulus_status();
  if (outcome.ok()) return code;
  status->message = std::string(outcome.status.message());
  status->field = outcome.field;
  const std::vector<FieldViolation> violations = field_violations(outcome.status);
  if (status->field.empty() && !violations.empty()) status->field = violations.front().field;
  status->reason = error_reason(outcome.status);
  status->details = details_of(outcome.status);
  status->code = code;
  return code;
}

cumulus_code report_fixed(cumulus_status* status, cumulus_code code, const char* message) noexcept {
  if (status == nullptr) return code;
  status->code = code;
  status->message.clear();
  status->field.clear();
  status->reason.clear();
  status->details.clear();
  status->fixed_message = message;
  return code;
}

}  // namespace cumulus::c

const char* cumulus_version(void) { return CUMULUS_VERSION; }

cumulus_status* cumulus_status_create(void) { return new (std::nothrow) cumulus_status(); }

void cumulus_status_release(cumulus_status* status) { delete status; }

cumulus_code cumulus_status_code(const cumulus_status* status) {
  return status == nullptr ? CUMULUS_OK : status->code;
}

const char* cumulus_status_message(const cumulus_status* status) {
  if (status == nullptr) return "";
  return status->fixed_message != nullptr ? status->fixed_message : status->message.c_str();
}

const char* cumulus_status_field(const cumulus_status* status) {
  return status == nullptr ? "" : status->field.c_str();
}

const char* cumulus_status_reason(const cumulus_status* status) {
  return status == nullptr ? "" : status->reason.c_str();
}

const void* cumulus_status_details(const cumulus_status* status, size_t* size) {
  *size = status == nullptr ? 0 : status->details.size();
  return status == nullptr ? nullptr : status->details.data();
}
