#include "library/transfer_retry.h"

#include <algorithm>

#include "cumulus/errors.h"
#include "library/outage.h"

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
  if (absl::Now() + delay >= deadline_) return false;
  return wait_unless_cancelled(delay, cancellation_);
}

void TransferRetry::note_progress() {
  breaks_ = 0;
  back_off_ = BackOff();
}

}  // namespace cumulus
