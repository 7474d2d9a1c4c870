#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_error.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/exported_memory.h"
#include "server/runtime/descriptor.h"
#include "server/runtime/job_class.h"
#include "server/runtime/memory_budget.h"

namespace cumulus::server {

/// A block in the memory of one device, whichever kind that is.
class BufferMemory {
 public:
  BufferMemory() = default;
  BufferMemory(HostMemory memory) : memory_(std::move(memory)) {}    // NOLINT(google-explicit-constructor)
  BufferMemory(DeviceMemory memory) : memory_(std::move(memory)) {}  // NOLINT(google-explicit-constructor)

  std::size_t bytes() const {
    return std::visit([](const auto& memory) { return memory.bytes(); }, memory_);
  }
  /// The block as memory of space `S`, which must be the one it lies in.
  template <Space S>
  Span<std::byte, S> span() const {
    const auto& memory = std::get<Memory<S>>(memory_);
    return {memory.data(), memory.bytes()};
  }
  /// The block's bytes where the host can address them (the CPU backend), else null.
  std::byte* host_data() const {
    const auto* memory = std::get_if<HostMemory>(&memory_);
    return memory != nullptr ? memory->data() : nullptr;
  }

 private:
  std::variant<HostMemory, DeviceMemory> memory_;
};

/// Where one call at a time runs on a device: an executor, host memory that results of a call can be
/// downloaded to without waiting, and the marks between its stages.
class Lane {
 public:
  using Executor = std::variant<CpuExecutor, CudaExecutor>;

  Lane(Executor executor, HostMemory landing)
      : executor_(std::move(executor)), landing_(std::move(landing)) {}
  virtual ~Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Executor& executor() { return executor_; }
  /// Pinned where the device is a GPU; landing_bytes() of it.
  std::span<std::byte> landing() const { return {landing_.data(), landing_.bytes()}; }

  /// Before a call of this class begins.
  virtual void take(JobClass /*job_class*/) {}
  /// Put marks into the executor's stream before and after the call's kernels.
  virtual void mark_compute_begin() = 0;
  virtual void mark_compute_end() = 0;
  /// Between the two marks, once the call is done.
  virtual double compute_seconds() const = 0;

 private:
  Executor executor_;
  HostMemory landing_;
};

/// Tells when something is done; the status is not OK where the device failed.
using Done = std::function<void(absl::Status)>;

/// One GPU, or the CPU. Thread-safe, except for its lanes: a lane belongs to whoever runs a call there.
class Device {
 public:
  Device(std::string name, std::string model, std::size_t budget_bytes);
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }
  const std::string& model() const { return model_; }
  virtual std::string_view backend() const = 0;
  virtual Space space() const = 0;
  /// What operations choose methods by; of no GPU for others.
  virtual DeviceNumbers numbers() const { return {}; }
  const std::shared_ptr<MemoryBudget>& budget() const { return budget_; }

  /// False once the device has failed for good; its process must be restarted.
  bool healthy() const { return healthy_.load(std::memory_order_relaxed); }
  /// From any thread, and however often.
  void mark_unhealthy();
  /// What a call that met `error` answers; afterwards the device is unhealthy if the error is sticky.
  absl::Status fault(const CudaError& error);
  /// `failed` is called when the device fails; it must not block. Before calls use the device.
  void on_failure(std::function<void()> failed) { failed_ = std::move(failed); }

  /// Memory that admission has counted. Throws std::bad_alloc or CudaError.
  virtual BufferMemory allocate(std::size_t bytes) = 0;
  /// For the lane's executor at once, and for all others when the call there has ended: waits for nothing.
  virtual BufferMemory allocate_on(Lane& /*lane*/, std::size_t bytes) { return allocate(bytes); }
  /// Host memory that copy_in and copy_out are fastest with. Throws std::bad_alloc or CudaError.
  virtual HostMemory allocate_staging(std::size_t bytes) = 0;
  /// kHeadBytes of such memory, which is there already as a rule.
  virtual HostMemory allocate_head();
  /// Makes host memory that others have mapped as fast to copy from and to, until the last owner of what is
  /// answered ends, and the memory lives as long: takes milliseconds. Null where copies gain nothing by it.
  /// Throws CudaError.
  virtual std::shared_ptr<const void> register_memory(std::span<std::byte> /*memory*/) { return nullptr; }

  /// Device memory in an allocation of its own, and what another process maps that with.
  struct Exported {
    BufferMemory memory;
    Descriptor descriptor;
  };
  /// Of zeros; `bytes` is a multiple of kExportedGranularity. FAILED_PRECONDITION where the device has no
  /// such memory. Throws CudaError.
  virtual absl::StatusOr<Exported> allocate_exported(std::size_t bytes);

  /// Copies between host and device memory; `done` comes, on any thread, once both may be used again.
  /// On the CPU backend it comes before the call returns.
  virtual void copy_in(std::span<const std::byte> from, const BufferMemory& to, std::size_t offset,
                       Done done) = 0;
  virtual void copy_out(const BufferMemory& from, std::size_t offset, std::span<std::byte> to, Done done) = 0;
  /// copy_in to the first byte of `to`, and then what lies there to `head`, of allocate_head.
  virtual void copy_in_and_read_head(std::span<const std::byte> from, const BufferMemory& to,
                                     std::span<std::byte> head, Done done);
  /// Likewise `bytes` of device memory, from byte `offset` of `from` on, to the first of `to`; such copies
  /// are made one after the other. Where allocate_exported has none, there are none to be made.
  virtual void copy_within(const BufferMemory& from, std::size_t offset, const BufferMemory& to,
                           std::size_t bytes, Done done);

  const std::vector<std::unique_ptr<Lane>>& lanes() const { return lanes_; }
  /// How many of them the calls of one principal and priority may have at a time.
  virtual std::size_t lanes_of_a_flow() const = 0;
  /// Cores that a call's kernels run on; 1 where they run on a GPU.
  virtual int cores() const { return 1; }
  /// Calls `done` once all that has been put on the lane's executor is done, which is `expected` to take so
  /// long from now on; infinite where nobody knows.
  virtual void when_done(Lane& lane, absl::Duration expected, Done done) = 0;
  /// Waits on this thread, for the time of a short call at most, until all that has been put on the lane's
  /// executor is done, which spares waking another thread: how it ended, or nothing where it goes on. A CPU
  /// has done all when it has been put there.
  virtual std::optional<absl::Status> wait_briefly(Lane& /*lane*/) { return absl::OkStatus(); }

 protected:
  std::vector<std::unique_ptr<Lane>> lanes_;

 private:
  const std::string name_;
  const std::string model_;
  const std::shared_ptr<MemoryBudget> budget_;
  std::atomic<bool> healthy_{true};
  std::function<void()> failed_;
};

/// INTERNAL (DEVICE_FAULT): what calls are told that need a device which has failed.
absl::Status failed_device(const Device& device);

/// What a lane's landing memory holds: a report, and the inline outputs of a call or the heads of its arrays.
inline constexpr std::size_t kReportBytes = 4096;
inline constexpr std::size_t kHeadBytes = 512;
inline constexpr std::size_t kMaxOutputs = 16;
constexpr std::size_t landing_bytes(std::size_t max_inline_bytes) {
  return kReportBytes + std::max(max_inline_bytes, kMaxOutputs * kHeadBytes);
}

struct CpuDeviceOptions {
  int threads = 0;  // 0: all cores
  int lanes = 1;    // calls at a time, each on all of the threads
  std::size_t budget_bytes = 0;
  std::size_t landing_bytes = 0;
};
std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options);

struct GpuDeviceOptions {
  int ordinal = 0;
  std::size_t budget_bytes = 0;   // 0: 80 % of what is free
  bool memory_on_demand = false;  // taken when it is needed, rather than the whole budget at once
  int streams = 2;                // for the calls of one principal and priority; there is one more
  std::size_t landing_bytes = 0;
};
/// Throws CudaError.
std::unique_ptr<Device> make_gpu_device(const GpuDeviceOptions& options);

}  // namespace cumulus::server
