#include "server/runtime/transfer/transfer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "proto/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {

Transfer::Transfer(Options options) : options_(std::move(options)), begin_time_(steady_now()) {}

void Transfer::check(absl::Time now) {
  if (options_.drain != nullptr && options_.drain->over()) {
    give_up(draining());
    return;
  }
  if (now >= options_.deadline.time) {
    give_up(options_.deadline.named(
        absl::DeadlineExceededError("the deadline passed before the transfer was complete")));
    return;
  }
  const std::int64_t since = waiting_since_;
  if (since != kNotWaiting && now - absl::FromUnixNanos(std::max(since, moved_at())) > options_.max_stall) {
    give_up(absl::DeadlineExceededError(concat("the client moved nothing for ",
                                               absl::FormatDuration(options_.max_stall),
                                               ", the limit (stalled_transfer); begin the transfer again")));
    return;
  }
  if (options_.min_rate > 0) check_rate(now);
}

std::int64_t Transfer::current_wait(std::int64_t now) const {
  const std::int64_t since = waiting_since_;
  return since == kNotWaiting
             ? 0
             : std::max<std::int64_t>(0, now - std::max<std::int64_t>(since, measured_since_));
}

void Transfer::check_rate(absl::Time now) {
  const std::int64_t nanos = absl::ToUnixNanos(now);
  const absl::Duration waited = absl::Nanoseconds(waited_ + current_wait(nanos));
  if (waited < options_.max_stall) return;
  const std::size_t moved = moved_bytes();
  const std::size_t came = moved - bytes_then_;
  if (static_cast<double>(came) < static_cast<double>(options_.min_rate) * absl::ToDoubleSeconds(waited)) {
    give_up(absl::DeadlineExceededError(
        concat("the client sent ", came, " bytes while it was waited for for ", absl::FormatDuration(waited),
               "; at least ", options_.min_rate,
               " a second are asked for (min_upload_rate): upload again over a faster connection")));
    return;
  }
  bytes_then_ = moved;
  measured_since_ = nanos;
  waited_ = 0;
}

absl::Status Transfer::take_share() {
  if (!options_.handles.ok()) return options_.handles;
  absl::StatusOr<TransferShares::Share> share = options_.shares->begin(options_.principal);
  if (!share.ok()) return share.status();
  share_ = *std::move(share);
  return absl::OkStatus();
}

absl::StatusOr<TransferShares::Announcement> Transfer::announce(std::size_t bytes,
                                                                std::size_t fallback) const {
  const std::size_t own = options_.principal.limits.max_upload_bytes;
  return options_.shares->announce(options_.principal, bytes, own > 0 ? own : fallback);
}

void Transfer::use_call(const std::function<void()>& operation) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ++uses_;
  }
  operation();
  absl::Status status;
  {
    const std::lock_guard lock(mutex_);
    if (--uses_ > 0 || !ended_) return;
    status = status_;
  }
  finish_and_log(status);
}

void Transfer::wait_for_client(const std::function<void()>& operation) {
  waiting_since_ = absl::ToUnixNanos(steady_now());
  use_call(operation);
}

void Transfer::client_moved() {
  waited_ += current_wait(absl::ToUnixNanos(steady_now()));
  waiting_since_ = kNotWaiting;
}

bool Transfer::end(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    ended_ = true;
    status_ = status;
    if (uses_ > 0) return true;  // the last of them finishes the call
  }
  finish_and_log(status);
  return true;
}

bool Transfer::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void Transfer::finish_and_log(const absl::Status& status) {
  const CallRecord record{.method = std::string(options_.method),
                          .request_id = request_id_,
                          .client = options_.client,
                          .principal = options_.principal.name,
                          .bytes = bytes_,
                          .seconds = absl::ToDoubleSeconds(steady_now() - begin_time_),
                          .status = status,
                          .trace = options_.trace};
  options_.telemetry.count(record);
  {
    const std::lock_guard lock(mutex_);
    share_ = {};
  }
  finish(to_grpc(with_context(status, options_.method)));
  log_call(record);  // who waits for the answer need not wait for it
}

TransferWatch::TransferWatch(absl::Duration interval) : interval_(interval), thread_([this] { run(); }) {}

TransferWatch::~TransferWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void TransferWatch::add(std::weak_ptr<Transfer> transfer) {
  const std::lock_guard lock(mutex_);
  transfers_.push_back(std::move(transfer));
  if (transfers_.size() == 1) wake_.notify_one();
}

void TransferWatch::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !transfers_.empty(); });
    if (wake_.wait_for(lock, absl::ToChronoNanoseconds(interval_), [this] { return stopping_; })) return;
    std::vector<std::shared_ptr<Transfer>> alive;
    transfers_.remove_if([&](const std::weak_ptr<Transfer>& transfer) {
      std::shared_ptr<Transfer> held = transfer.lock();
      if (held == nullptr) return true;
      alive.push_back(std::move(held));
      return false;
    });
    lock.unlock();  // a transfer that ends, or ends here, may begin another
    for (const std::shared_ptr<Transfer>& transfer : alive) transfer->check(steady_now());
    alive.clear();
    lock.lock();
  }
}

}  // namespace cumulus::server
