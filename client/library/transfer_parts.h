#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "cumulus/session.h"
#include "library/cancellation.h"

namespace cumulus {

/// Bytes that one connection moves: from `begin` on, before `end`.
struct TransferPart {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// `bytes` in at most `connections` parts of whole chunks, of about one size; one part where there are none.
std::vector<TransferPart> split_transfer(std::size_t bytes, int connections);

/// The parts of one transfer, which move at the same time.
class TransferParts {
 public:
  TransferParts(std::vector<TransferPart> parts, const std::optional<Cancellation>& cancellation,
                TransferProgress progress, TransferArrival arrived = {});

  enum class EndsWith { kAllParts, kAnyPart };
  /// Calls `move` for each part, the first on this thread and the others on threads of their own. OK where
  /// all of them, or any, answer so; else the first failure, after which the others are stopped.
  absl::Status run(EndsWith end, const std::function<absl::Status(std::size_t index)>& move);

  const TransferPart& part(std::size_t index) const { return parts_[index]; }
  std::size_t count() const { return parts_.size(); }
  /// That the part has come so far; tells the caller, from one thread at a time.
  void report(std::size_t index, std::size_t done);
  /// Likewise, where a part is no range but what its thread gets hold of: that it has brought these bytes.
  void report_piece(std::size_t index, const TransferPart& piece);

  /// Cancelled when the transfer has failed, or its caller cancels it.
  const Cancellation& stop() const { return stop_; }
  /// Cancelled then, and once the transfer is complete: what tries a part again is needed no more.
  const Cancellation& settled() const { return settled_; }

 private:
  /// Moves that part, and has those after it moved: each thread begins the next one before it moves its own.
  void run_from(std::size_t index, EndsWith end, const std::function<absl::Status(std::size_t index)>& move);
  void take_result(EndsWith end, const absl::Status& result);
  void tell(const TransferPart& piece) const;

  const std::vector<TransferPart> parts_;
  const TransferProgress progress_;
  const TransferArrival arrived_;
  const Cancellation stop_;
  const Cancellation settled_;
  const CancellationScope scope_;
  std::mutex progress_mutex_;
  std::vector<std::size_t> done_;
  std::mutex mutex_;
  bool complete_ = false;
  absl::Status failure_;
};

}  // namespace cumulus
