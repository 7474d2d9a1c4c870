#include "library/transfer_retry.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "cumulus/errors.h"
#include "library/outage.h"
#include "proto/steady_time.h"

namespace cumulus {

absl::Duration transfer_allowance(std::size_t bytes) {
  return absl::Seconds(static_cast<std::int64_t>(bytes >> 24));
}

bool TransferRetry::wait_after(const absl::Status& failure) {
  constexpr int kMaxBreaks = 6;
  if (!absl::IsUnavailable(failure)) return false;
  const std::optional<absl::Duration> asked = retry_delay(failure);
  if (!asked.has_value() && ++breaks_ > kMaxBreaks) return false;
  const absl::Duration delay = std::max(asked.value_or(absl::ZeroDuration()), back_off_.next());
  if (steady_now() + delay >= deadline_) return false;
  return wait_unless_cancelled(delay, cancellation_);
}

bool FewerConnections::wait_after(const absl::Status& failure) {
  constexpr std::string_view kSubject = ":max_transfers";
  const std::vector<QuotaViolation> violations = quota_violations(failure);
  const bool too_many = std::any_of(violations.begin(), violations.end(), [&](const QuotaViolation& each) {
    const std::size_t size = each.subject.size();
    return size >= kSubject.size() && each.subject.substr(size - kSubject.size()) == kSubject;
  });
  if (!too_many || tries_ == 0) return false;
  --tries_;
  connections_ = 1;
  return wait_unless_cancelled(back_off_.next(), cancellation_);
}

void TransferRetry::note_progress() {
  breaks_ = 0;
  back_off_ = BackOff();
}

}  // namespace cumulus
