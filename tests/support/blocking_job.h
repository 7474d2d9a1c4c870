#pragma once

#include <absl/time/clock.h>

#include <atomic>
#include <future>
#include <memory>
#include <utility>

#include "server/runtime/device_queue.h"

namespace cumulus::testing {

/// Holds a lane of a CPU device from the moment it runs until `release`.
class BlockingJob : public server::Job {
 public:
  explicit BlockingJob(server::JobClass job_class = server::JobClass::kInteractive,
                       absl::Time deadline = absl::InfiniteFuture(),
                       server::Principal principal = {"test", {}})
      : class_(job_class), deadline_(deadline), principal_(std::move(principal)) {}

  void submit(server::Lane& /*lane*/) noexcept override {
    running_.set_value();
    released_.get_future().wait();
  }
  bool finish(server::Lane& /*lane*/, const absl::Status& /*device*/) noexcept override {
    ended_.set_value(absl::OkStatus());
    return true;
  }
  void abandon(const absl::Status& why) noexcept override { ended_.set_value(why); }
  server::JobClass job_class() const override { return class_; }
  absl::Time deadline() const override { return deadline_; }
  const server::Principal& principal() const override { return principal_; }
  std::size_t cost_bytes() const override { return 0; }
  bool requested() const override { return false; }

  void wait_until_running() { running_.get_future().wait(); }
  void release() { released_.set_value(); }
  /// How the job ended: OK where it ran.
  absl::Status outcome() { return ended_.get_future().get(); }

 private:
  const server::JobClass class_;
  const absl::Time deadline_;
  const server::Principal principal_;
  std::promise<void> running_;
  std::promise<void> released_;
  std::promise<absl::Status> ended_;
};

}  // namespace cumulus::testing
