#include "server/runtime/transfer/transfer.h"

#include <absl/time/clock.h>

#include <utility>
#include <vector>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/logging.h"

namespace cumulus::server {

Transfer::Transfer(Options options) : options_(std::move(options)), begin_time_(absl::Now()) {}

void Transfer::check(absl::Time now) {
  if (now >= options_.deadline) {
    give_up(absl::DeadlineExceededError("the deadline passed before the transfer was complete"));
    return;
  }
  const std::int64_t since = waiting_since_;
  if (since != kNotWaiting && now - absl::FromUnixNanos(since) > options_.max_stall) {
    give_up(absl::DeadlineExceededError(concat("the client moved nothing for ",
                                               absl::FormatDuration(options_.max_stall),
                                               "; begin the transfer again")));
  }
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
  waiting_since_ = absl::GetCurrentTimeNanos();
  use_call(operation);
}

void Transfer::client_moved() { waiting_since_ = kNotWaiting; }

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
  log_call({.method = std::string(options_.method),
            .request_id = request_id_,
            .client = options_.client,
            .principal = options_.principal.name,
            .bytes = bytes_,
            .seconds = absl::ToDoubleSeconds(absl::Now() - begin_time_),
            .status = status});
  finish(to_grpc(with_context(status, options_.method)));
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
}

void TransferWatch::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, absl::ToChronoNanoseconds(interval_), [this] { return stopping_; })) {
    std::vector<std::shared_ptr<Transfer>> alive;
    transfers_.remove_if([&](const std::weak_ptr<Transfer>& transfer) {
      std::shared_ptr<Transfer> held = transfer.lock();
      if (held == nullptr) return true;
      alive.push_back(std::move(held));
      return false;
    });
    lock.unlock();  // a transfer that ends, or ends here, may begin another
    for (const std::shared_ptr<Transfer>& transfer : alive) transfer->check(absl::Now());
    alive.clear();
    lock.lock();
  }
}

}  // namespace cumulus::server
