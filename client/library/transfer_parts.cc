#include "library/transfer_parts.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

#include "library/transfer.h"

namespace cumulus {

std::vector<TransferPart> split_transfer(std::size_t bytes, int connections) {
  const std::size_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  const std::size_t count =
      std::clamp<std::size_t>(chunks, 1, static_cast<std::size_t>(std::max(connections, 1)));
  std::vector<TransferPart> parts(count);
  for (std::size_t i = 0; i < count; ++i) {
    parts[i] = {chunks * i / count * kChunkBytes, std::min(bytes, chunks * (i + 1) / count * kChunkBytes)};
  }
  return parts;
}

TransferParts::TransferParts(std::vector<TransferPart> parts, const std::optional<Cancellation>& cancellation,
                             TransferProgress progress, TransferArrival arrived)
    : parts_(std::move(parts)),
      progress_(std::move(progress)),
      arrived_(std::move(arrived)),
      scope_(cancellation,
             [stop = stop_, settled = settled_] {
               stop.cancel();
               settled.cancel();
             }),
      done_(parts_.size()) {}

absl::Status TransferParts::run(EndsWith end, const std::function<absl::Status(std::size_t index)>& move) {
  run_from(0, end, move);
  return complete_ ? absl::OkStatus() : failure_;
}

void TransferParts::run_from(std::size_t index, EndsWith end,
                             const std::function<absl::Status(std::size_t index)>& move) {
  std::thread next;
  try {
    if (index + 1 < parts_.size()) next = std::thread([&, this] { run_from(index + 1, end, move); });
  } catch (const std::system_error& error) {
    take_result(end, absl::ResourceExhaustedError(absl::StrCat("no thread for a transfer: ", error.what())));
  }
  take_result(end, move(index));
  if (next.joinable()) next.join();
}

void TransferParts::take_result(EndsWith end, const absl::Status& result) {
  {
    const std::lock_guard lock(mutex_);
    if (result.ok()) {
      complete_ |= end == EndsWith::kAnyPart;
    } else {
      failure_.Update(result);
    }
  }
  if (!result.ok()) stop_.cancel();
  if (!result.ok() || end == EndsWith::kAnyPart) settled_.cancel();
}

void TransferParts::report(std::size_t index, std::size_t done) {
  if (!progress_ && !arrived_) return;
  const std::lock_guard lock(progress_mutex_);
  const std::size_t before = std::exchange(done_[index], done);
  tell({parts_[index].begin + before, parts_[index].begin + done});
}

void TransferParts::report_piece(std::size_t index, const TransferPart& piece) {
  if (!progress_ && !arrived_) return;
  const std::lock_guard lock(progress_mutex_);
  done_[index] += piece.end - piece.begin;
  tell(piece);
}

void TransferParts::tell(const TransferPart& piece) const {
  if (arrived_) arrived_(static_cast<std::int64_t>(piece.begin), static_cast<std::int64_t>(piece.end));
  if (!progress_) return;
  progress_(static_cast<std::int64_t>(std::accumulate(done_.begin(), done_.end(), std::size_t{0})),
            static_cast<std::int64_t>(parts_.back().end));
}

}  // namespace cumulus
