#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <string_view>

#include "kernels/core/interrupt.h"
#include "server/runtime/device.h"
#include "server/runtime/job_class.h"
#include "server/runtime/principal.h"

namespace cumulus::server {

/// One call that wants to run on a device. Either `abandon` is called, once, or `submit`, once, and then
/// `finish` until the call is over.
class Job : public Interrupt {
 public:
  /// Takes the memory that the call needs, before `submit`. UNAVAILABLE where it is not free now: it comes
  /// again once some has been given back. Other failures are the call's end.
  virtual absl::Status reserve() = 0;
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
  virtual std::string_view operation() const = 0;
  /// What its plan predicts that it takes on the device.
  virtual double cost_seconds() const = 0;
  /// After `finish`: all of its work was done, so that the time that it took says something.
  virtual bool succeeded() const = 0;
};

}  // namespace cumulus::server
