#include "library/outage.h"

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "cumulus/errors.h"
#include "library/cancellation.h"
#include "proto/steady_time.h"

namespace cumulus {

bool is_break(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:  // of calls that nobody cancelled, whose server closed the connection
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
      return error_reason(status).empty();
    default:
      return false;
  }
}

bool is_loss(const absl::Status& status) {
  if (status.ok()) return false;
  const std::string reason = error_reason(status);
  if (absl::IsNotFound(status)) {
    return reason == "INSTANCE_RESTARTED" || reason == "SESSION_NOT_FOUND" || reason == "SESSION_EXPIRED";
  }
  return is_break(status) || reason == "DEVICE_FAULT" || reason == "DRAINING";
}

bool wait_unless_cancelled(absl::Duration delay, const std::optional<Cancellation>& cancellation) {
  // Not absl::Notification, whose time-outs follow the machine's clock.
  const auto cancelled = std::make_shared<std::promise<void>>();
  const CancellationScope scope(cancellation, [cancelled] { cancelled->set_value(); });
  return cancelled->get_future().wait_for(absl::ToChronoNanoseconds(delay)) == std::future_status::timeout;
}

Outage::Outage(absl::Time deadline, absl::Duration longest, std::optional<Cancellation> cancellation)
    : deadline_(deadline), longest_(longest), cancellation_(std::move(cancellation)) {}

void Outage::begin() { since_ = std::min(since_, steady_now()); }

bool Outage::wait_after(const absl::Status& failure) {
  if (!is_loss(failure) || (cancellation_.has_value() && cancellation_->cancelled())) return false;
  begin();
  const absl::Time now = steady_now();
  const absl::Duration delay = back_off_.next();
  if (now + delay - since_ > longest_ || now + delay >= deadline_) return false;
  return wait_unless_cancelled(delay, cancellation_);
}

bool Outage::may_repeat_after(const absl::Status& failure) {
  constexpr int kMaxRepeats = 8;
  return ++repeats_ <= kMaxRepeats && wait_after(failure);
}

CallOptions Outage::options() const {
  CallOptions options;
  options.timeout = deadline_ - steady_now();
  options.cancellation = cancellation_;
  return options;
}

}  // namespace cumulus
