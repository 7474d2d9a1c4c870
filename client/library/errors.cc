#include "cumulus/errors.h"

#include <absl/strings/cord.h>

#include "google/rpc/error_details.pb.h"
#include "library/wire.h"

namespace cumulus {
namespace {

template <class Detail>
std::optional<Detail> detail_of(const absl::Status& status) {
  const auto payload = status.GetPayload("type.googleapis.com/" + Detail::descriptor()->full_name());
  Detail detail;
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

}  // namespace

std::string error_reason(const absl::Status& status) {
  const auto info = detail_of<google::rpc::ErrorInfo>(status);
  return info.has_value() ? info->reason() : "";
}

std::map<std::string, std::string> error_metadata(const absl::Status& status) {
  const auto info = detail_of<google::rpc::ErrorInfo>(status);
  if (!info.has_value()) return {};
  return {info->metadata().begin(), info->metadata().end()};
}

std::vector<FieldViolation> field_violations(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  if (const auto bad = detail_of<google::rpc::BadRequest>(status)) {
    for (const auto& violation : bad->field_violations()) {
      violations.push_back({violation.field(), violation.description()});
    }
  }
  return violations;
}

std::vector<QuotaViolation> quota_violations(const absl::Status& status) {
  std::vector<QuotaViolation> violations;
  if (const auto quota = detail_of<google::rpc::QuotaFailure>(status)) {
    for (const auto& violation : quota->violations()) {
      violations.push_back({violation.subject(), violation.description()});
    }
  }
  return violations;
}

std::optional<absl::Duration> retry_delay(const absl::Status& status) {
  const auto retry = detail_of<google::rpc::RetryInfo>(status);
  if (!retry.has_value()) return std::nullopt;
  return wire::decode_duration(retry->retry_delay());
}

}  // namespace cumulus
