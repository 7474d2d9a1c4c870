#include <oneapi/tbb/scalable_allocator.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <new>

#include "server/runtime/device.h"
#include "server/runtime/fault_points.h"

namespace cumulus::server {
namespace {

using Clock = std::chrono::steady_clock;

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t value = line.find(": ");
    if (value != std::string::npos) return line.substr(value + 2);
  }
  return "CPU";
}

class CpuLane final : public Lane {
 public:
  using Lane::Lane;
  void mark_compute_begin() override { begin_ = Clock::now(); }
  void mark_compute_end() override { end_ = Clock::now(); }
  double compute_seconds() const override { return std::chrono::duration<double>(end_ - begin_).count(); }

 private:
  Clock::time_point begin_;
  Clock::time_point end_;
};

/// The allocator keeps blocks below 64 MiB that come back, and gives larger ones to the system, which takes
/// longer to clear new pages than an upload to fill them. All are kept, as far as what is in use and kept is
/// within `limit_bytes`, and until the process is idle.
void keep_large_blocks(std::size_t limit_bytes) {
  constexpr std::size_t kGivenBack = std::size_t{64} << 20;
  scalable_allocation_mode(TBBMALLOC_SET_HUGE_SIZE_THRESHOLD, static_cast<std::intptr_t>(kGivenBack));
  scalable_allocation_mode(TBBMALLOC_SET_SOFT_HEAP_LIMIT, static_cast<std::intptr_t>(limit_bytes));
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options) : Device("cpu", cpu_model(), options.budget_bytes) {
    keep_large_blocks(options.budget_bytes);
    for (int i = 0; i < options.lanes; ++i) {
      lanes_.push_back(
          std::make_unique<CpuLane>(CpuExecutor(options.threads), allocate_host(options.landing_bytes)));
    }
  }

  std::string_view backend() const override { return "cpu"; }
  Space space() const override { return Space::kHost; }
  /// A call has all of the cores.
  std::size_t lanes_of_a_flow() const override { return 1; }
  int cores() const override { return std::get<CpuExecutor>(lanes_.front()->executor()).threads(); }

  BufferMemory allocate(std::size_t bytes) override {
    if (fault_due(FaultPoint::ALLOCATION)) throw std::bad_alloc();
    return allocate_host(bytes);
  }
  HostMemory allocate_staging(std::size_t bytes) override { return allocate_host(bytes); }

  void copy_in(std::span<const std::byte> from, const BufferMemory& to, std::size_t offset,
               Done done) override {
    if (!from.empty()) std::memcpy(to.host_data() + offset, from.data(), from.size());
    done(absl::OkStatus());
  }

  void copy_out(const BufferMemory& from, std::size_t offset, std::span<std::byte> to, Done done) override {
    if (!to.empty()) std::memcpy(to.data(), from.host_data() + offset, to.size());
    done(absl::OkStatus());
  }

  void when_done(Lane& /*lane*/, absl::Duration /*expected*/, Done done) override { done(absl::OkStatus()); }
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace cumulus::server
