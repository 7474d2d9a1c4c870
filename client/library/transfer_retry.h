#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstddef>
#include <optional>

#include "cumulus/operation.h"
#include "library/connection.h"

namespace cumulus {

/// What a transfer of this size may take beyond ConnectOptions::call_timeout: a second for 16 MiB.
absl::Duration transfer_allowance(std::size_t bytes);

/// Whether and when an interrupted transfer begins again: after UNAVAILABLE only; as often as the
/// deadline allows where the server says when to come back, a few times in a row where the connection broke.
class TransferRetry {
 public:
  TransferRetry(absl::Time deadline, const std::optional<Cancellation>& cancellation)
      : deadline_(deadline), cancellation_(cancellation) {}

  /// True, after the wait, where the transfer is to be tried again.
  bool wait_after(const absl::Status& failure);

  /// The transfer moved on: breaks are counted anew.
  void note_progress();

 private:
  absl::Time deadline_;
  std::optional<Cancellation> cancellation_;
  BackOff back_off_;
  int breaks_ = 0;
};

/// Where the client has fewer transfers left (Capabilities.max_transfers) than one over several connections
/// takes: one connection is enough, once the server has noticed that the others are given up.
class FewerConnections {
 public:
  FewerConnections(int connections, const std::optional<Cancellation>& cancellation)
      : connections_(connections), tries_(connections > 1 ? kTries : 0), cancellation_(cancellation) {}

  int connections() const { return connections_; }
  /// True, after a wait, where the transfer is to be tried again, over one connection.
  bool wait_after(const absl::Status& failure);

 private:
  static constexpr int kTries = 6;

  int connections_;
  int tries_;
  std::optional<Cancellation> cancellation_;
  BackOff back_off_;
};

}  // namespace cumulus
