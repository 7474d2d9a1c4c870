#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/core/interrupt.h"
#include "server/runtime/device.h"
#include "server/runtime/principal.h"

namespace cumulus::server {

enum class JobClass { kInteractive, kBatch };

/// One call that wants to run on a device. Either `abandon` is called, once, or `submit`, once, and then
/// `finish` until the call is over; none of them blocks on the device.
class Job : public Interrupt {
 public:
  /// Puts all of the call's work on the lane. Failures wait for `finish`.
  virtual void submit(Lane& lane) noexcept = 0;
  /// All that was submitted is done; `device` is not OK where the device failed. True: the call is over.
  /// False: more work has been put on the lane; finish comes again once that is done.
  virtual bool finish(Lane& lane, const absl::Status& device) noexcept = 0;
  /// The call left the queue without running.
  virtual void abandon(const absl::Status& why) noexcept = 0;

  virtual JobClass job_class() const = 0;
  virtual const Principal& principal() const = 0;
  virtual absl::Time deadline() const = 0;
  /// Relative to other jobs: the bytes that it touches.
  virtual std::size_t cost_bytes() const = 0;
};

/// The calls that wait for one device, and the thread that submits them. Thread-safe.
class DeviceQueue {
 public:
  explicit DeviceQueue(Device& device);
  /// Abandons what waits and lets what runs finish.
  ~DeviceQueue();
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  /// UNAVAILABLE (QUEUE_FULL of the job's own principal, DRAINING), or DEADLINE_EXCEEDED where the predicted
  /// wait is longer than the job can wait; the job is then untouched.
  absl::Status push(std::shared_ptr<Job> job);
  /// Takes `job` out of the queue; false where it no longer waits. It is not abandoned.
  bool withdraw(const Job& job);
  /// Abandons every waiting job whose deadline has passed.
  void sweep(absl::Time now);
  /// Refuses new jobs from now on.
  void drain();
  /// Jobs that wait.
  std::size_t depth() const;
  Device& device() const { return device_; }

 private:
  void run();
  /// Of the calls that wait, those of one principal.
  std::size_t depth_of(const Principal& principal) const;
  std::shared_ptr<Job> take_next();
  void start(const std::shared_ptr<Job>& job, Lane& lane);
  void watch(const std::shared_ptr<Job>& job, Lane& lane, absl::Time started);
  void lane_done(Lane& lane, const Job& job, absl::Time started);
  std::list<std::shared_ptr<Job>>& waiting(JobClass job_class) {
    return job_class == JobClass::kInteractive ? interactive_ : batch_;
  }

  Device& device_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<std::shared_ptr<Job>> interactive_;
  std::list<std::shared_ptr<Job>> batch_;
  std::vector<Lane*> free_lanes_;
  std::size_t waiting_cost_ = 0;
  double seconds_per_byte_ = 0;  // of recent jobs; 0: nothing known yet
  bool draining_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cumulus::server
