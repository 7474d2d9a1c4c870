#include "server/runtime/alarm.h"

#include <chrono>

#include "proto/steady_time.h"

namespace cumulus::server {

void Alarm::ask(absl::Time when) {
  const std::int64_t nanos = absl::ToUnixNanos(when);
  if (earliest_ <= nanos) return;
  const std::lock_guard lock(mutex_);
  if (earliest_ <= nanos) return;
  earliest_ = nanos;
  changed_.notify_one();
}

bool Alarm::wait() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const std::int64_t left = earliest_ == kNever ? kNever : earliest_ - absl::ToUnixNanos(steady_now());
    if (left <= 0) {
      earliest_ = kNever;
      return true;
    }
    if (left == kNever) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, std::chrono::nanoseconds(left));
    }
  }
  return false;
}

void Alarm::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_one();
}

}  // namespace cumulus::server
