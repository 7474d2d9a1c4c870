#pragma once

#include <absl/time/clock.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "server/runtime/device_queue.h"

namespace cumulus::testing {

/// Holds a lane of a CPU device from the moment it runs until `release`.
class BlockingJob : public server::Job {
 public:
  struct Options {
    std::string principal = "test";
    server::PrincipalLimits limits = {};
    server::JobClass job_class = server::JobClass::kInteractive;
    absl::Time deadline = absl::InfiniteFuture();
    std::string operation = "Blocking";
    double cost_seconds = 0;
  };
  BlockingJob() : BlockingJob(Options()) {}
  explicit BlockingJob(Options options)
      : options_(std::move(options)), principal_{options_.principal, options_.limits} {}

  absl::Status reserve() override { return absl::OkStatus(); }
  void submit(server::Lane& /*lane*/) noexcept override {
    running_.set_value();
    released_.get_future().wait();
  }
  bool finish(server::Lane& /*lane*/, const absl::Status& /*device*/) noexcept override {
    ended_.set_value(absl::OkStatus());
    return true;
  }
  void abandon(const absl::Status& why) noexcept override { ended_.set_value(why); }
  server::JobClass job_class() const override { return options_.job_class; }
  const server::Principal& principal() const override { return principal_; }
  absl::Time deadline() const override { return options_.deadline; }
  std::string_view operation() const override { return options_.operation; }
  double cost_seconds() const override { return options_.cost_seconds; }
  bool succeeded() const override { return true; }
  bool requested() const override { return false; }

  void wait_until_running() { running_.get_future().wait(); }
  void release() { released_.set_value(); }
  /// How the job ended: OK where it ran.
  absl::Status outcome() { return ended_.get_future().get(); }

 private:
  const Options options_;
  const server::Principal principal_;
  std::promise<void> running_;
  std::promise<void> released_;
  std::promise<absl::Status> ended_;
};

}  // namespace cumulus::testing
