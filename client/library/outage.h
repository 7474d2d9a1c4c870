#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <optional>

#include "cumulus/operation.h"
#include "library/connection.h"

namespace cumulus {

/// Whether the call's end says nothing but that the connection or its server is gone: what a server says
/// carries a reason.
bool is_break(const absl::Status& status);

/// Whether the call's session, or what it lay on, is gone or going: a break; a server that does not know the
/// session, or has restarted; a device that has failed.
bool is_loss(const absl::Status& status);

/// Waits; false, at once, where the call is cancelled.
bool wait_unless_cancelled(absl::Duration delay, const std::optional<Cancellation>& cancellation);

/// How long one call goes on when what it needs is lost.
class Outage {
 public:
  Outage(absl::Time deadline, absl::Duration longest, std::optional<Cancellation> cancellation);

  /// It counts from the first of these calls.
  void begin();
  /// True, after a short wait, where the call is to go on after `failure`, which is a loss.
  bool wait_after(const absl::Status& failure);

  /// As wait_after, for the call itself, which a server may not survive: not too often.
  bool may_repeat_after(const absl::Status& failure);

  /// For a call on the way to its recovery: the same cancellation, and what is left of the time.
  CallOptions options() const;

 private:
  const absl::Time deadline_;
  const absl::Duration longest_;
  const std::optional<Cancellation> cancellation_;
  BackOff back_off_;
  int repeats_ = 0;
  absl::Time since_ = absl::InfiniteFuture();
};

}  // namespace cumulus
