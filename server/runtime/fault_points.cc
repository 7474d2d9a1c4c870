#include "server/runtime/fault_points.h"

#include "server/pipeline/text.h"

#ifdef CUMULUS_FAULT_POINTS
#include <absl/time/clock.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>

#include "kernels/core/faulting_kernel.h"
#endif

namespace cumulus::server {

#ifdef CUMULUS_FAULT_POINTS
namespace {

struct Point {
  std::int64_t first = 0;  // the pass that fails; 0: none
  std::int64_t times = 0;  // how many fail from there on
  absl::Duration delay;
  std::atomic<std::int64_t> passes = 0;
};

Point& point_at(FaultPoint::Place place) {
  static std::array<Point, FaultPoint::Place_ARRAYSIZE> points;
  return points.at(static_cast<std::size_t>(place));
}

}  // namespace

absl::Status set_fault_points(const config::v1::ServerConfig& config) {
  for (const FaultPoint& wanted : config.fault_points()) {
    if (!FaultPoint::Place_IsValid(wanted.place()) || wanted.place() == FaultPoint::PLACE_UNSPECIFIED ||
        wanted.nth() < 0 || wanted.times() < 0) {
      return absl::InvalidArgumentError(
          "fault_points: each names a place, and nth and times are at least 0 (0 means 1)");
    }
    Point& point = point_at(wanted.place());
    point.first = wanted.nth() > 0 ? wanted.nth() : 1;
    point.times = wanted.times() > 0 ? wanted.times() : 1;
    point.delay = absl::Seconds(wanted.delay().seconds()) + absl::Nanoseconds(wanted.delay().nanos());
  }
  return absl::OkStatus();
}

bool fault_due(FaultPoint::Place place) {
  Point& point = point_at(place);
  if (point.first == 0) return false;
  const std::int64_t pass = ++point.passes;
  return pass >= point.first && pass < point.first + point.times;
}

void slow_down_device() {
  if (fault_due(FaultPoint::SLOW_DEVICE)) absl::SleepFor(point_at(FaultPoint::SLOW_DEVICE).delay);
}

void kill_worker_if_due() {
  if (fault_due(FaultPoint::KILL_WORKER)) ::kill(::getpid(), SIGKILL);
}

void fault_in_kernel_if_due(CudaExecutor& executor) {
  if (fault_due(FaultPoint::FAULTING_KERNEL)) launch_faulting_kernel(executor);
}
#else
absl::Status set_fault_points(const config::v1::ServerConfig& config) {
  if (config.fault_points().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "fault_points: this build has none; they are for tests, in builds with -DCUMULUS_FAULT_POINTS=ON");
}

bool fault_due(FaultPoint::Place /*place*/) { return false; }
void slow_down_device() {}
void kill_worker_if_due() {}
void fault_in_kernel_if_due(CudaExecutor& /*executor*/) {}
#endif

}  // namespace cumulus::server
