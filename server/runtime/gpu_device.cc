#include <absl/strings/str_cat.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "kernels/core/exported_memory.h"
#include "kernels/core/kept_blocks.h"
#include "kernels/core/pinned_memory.h"
#include "server/pipeline/errors.h"
#include "server/runtime/completion_poller.h"
#include "server/runtime/device.h"
#include "server/runtime/fault_points.h"
#include "server/runtime/pinned_heads.h"

namespace cumulus::server {
namespace {

using Clock = std::chrono::steady_clock;

/// Most calls' kernels end within this time of their launch.
constexpr std::chrono::microseconds kBriefly{300};

/// One more than a principal's calls of one priority have, so that another's find one free.
int lane_count(const GpuDeviceOptions& options) { return options.streams + 1; }

class GpuLane final : public Lane {
 public:
  GpuLane(CudaExecutor executor, HostMemory landing) : Lane(std::move(executor), std::move(landing)) {}

  /// An interactive call's blocks go before those of batch calls that have begun.
  void take(JobClass job_class) override {
    std::get<CudaExecutor>(executor())
        .set_priority(job_class == JobClass::kInteractive ? StreamPriority::kHigh : StreamPriority::kUsual);
  }
  /// Reached once all that has been put on the lane so far is done.
  const CudaEvent& mark_all() {
    all_.record(stream());
    return all_;
  }
  void mark_compute_begin() override { begin_.record(stream()); }
  void mark_compute_end() override { end_.record(stream()); }
  double compute_seconds() const override { return end_.milliseconds_since(begin_) / 1e3; }
  CUstream_st* stream() { return std::get<CudaExecutor>(executor()).stream(); }

 private:
  CudaEvent begin_;
  CudaEvent end_;
  CudaEvent all_;
};

/// Copies in one direction, on a stream of their own.
class Copier {
 public:
  explicit Copier(CudaDevice& device) : executor_(device) {}

  void bind_thread() const { executor_.bind_thread(); }

  template <class Copy>
  void submit(Device& device, CompletionPoller& poller, Done done, const Copy& copy) {
    try {
      const std::lock_guard lock(mutex_);
      executor_.bind_thread();
      copy(executor_);
      poller.watch(executor_.stream(), absl::InfiniteDuration(), done);
    } catch (const CudaError& error) {
      done(device.fault(error));
    }
  }

 private:
  std::mutex mutex_;
  CudaExecutor executor_;
};

class GpuDevice final : public Device {
 public:
  GpuDevice(std::unique_ptr<CudaDevice> cuda, const GpuDeviceOptions& options, std::size_t budget_bytes)
      : Device(absl::StrCat("cuda", options.ordinal), cuda->model(), budget_bytes),
        cuda_(std::move(cuda)),
        allocator_(*cuda_),
        in_(*cuda_),
        out_(*cuda_),
        within_(*cuda_),
        poller_(*this) {
    for (int i = 0; i < lane_count(options); ++i) {
      lanes_.push_back(
          std::make_unique<GpuLane>(CudaExecutor(*cuda_), allocate_pinned(options.landing_bytes)));
    }
  }
  ~GpuDevice() override { lanes_.clear(); }

  std::string_view backend() const override { return "cuda"; }
  Space space() const override { return Space::kDevice; }
  std::size_t lanes_of_a_flow() const override { return lanes_.size() - 1; }
  DeviceNumbers numbers() const override { return cuda_->numbers(); }

  BufferMemory allocate(std::size_t bytes) override {
    fail_where_due();
    // Beside an upload's copy a wait for a stream on which nothing is takes 28 us, of cold code.
    if (DeviceMemory kept = cuda_->allocate(bytes, kOnlyKept); kept.data() != nullptr) return kept;
    const std::lock_guard lock(allocator_mutex_);
    DeviceMemory memory = allocate_from(allocator_, bytes);
    allocator_.synchronize();  // nothing else is on its stream; now every stream may use the block
    return memory;
  }
  BufferMemory allocate_on(Lane& lane, std::size_t bytes) override {
    fail_where_due();
    return allocate_from(std::get<CudaExecutor>(lane.executor()), bytes);
  }

  HostMemory allocate_staging(std::size_t bytes) override { return allocate_pinned(bytes); }
  HostMemory allocate_head() override { return heads_.take(); }
  std::shared_ptr<const void> register_memory(std::span<std::byte> memory) override {
    in_.bind_thread();
    register_pinned({memory.data(), memory.size()});
    return {memory.data(), [](const void* data) { unregister_pinned(data); }};
  }

  void copy_in(std::span<const std::byte> from, const BufferMemory& to, std::size_t offset,
               Done done) override {
    in_.submit(*this, poller_, std::move(done), [&](CudaExecutor& executor) {
      executor.upload({from.data(), from.size()}, to.span<Space::kDevice>().subspan(offset, from.size()));
    });
  }

  /// One after the other on one stream, so that one notice is enough.
  void copy_in_and_read_head(std::span<const std::byte> from, const BufferMemory& to,
                             std::span<std::byte> head, Done done) override {
    in_.submit(*this, poller_, std::move(done), [&](CudaExecutor& executor) {
      const DeviceSpan<std::byte> memory = to.span<Space::kDevice>();
      executor.upload({from.data(), from.size()}, memory.subspan(0, from.size()));
      executor.download(memory.subspan(0, head.size()), {head.data(), head.size()});
    });
  }

  void copy_out(const BufferMemory& from, std::size_t offset, std::span<std::byte> to, Done done) override {
    out_.submit(*this, poller_, std::move(done), [&](CudaExecutor& executor) {
      executor.download(from.span<Space::kDevice>().subspan(offset, to.size()), {to.data(), to.size()});
    });
  }

  absl::StatusOr<Exported> allocate_exported(std::size_t bytes) override {
    ExportedMemory exported = cumulus::allocate_exported(*cuda_, bytes);
    return Exported{std::move(exported.memory), Descriptor(exported.descriptor)};
  }
  void copy_within(const BufferMemory& from, std::size_t offset, const BufferMemory& to, std::size_t bytes,
                   Done done) override {
    within_.submit(*this, poller_, std::move(done), [&](CudaExecutor& executor) {
      executor.copy(from.span<Space::kDevice>().subspan(offset, bytes),
                    to.span<Space::kDevice>().subspan(0, bytes));
    });
  }

  void when_done(Lane& lane, absl::Duration expected, Done done) override {
    poller_.watch(static_cast<GpuLane&>(lane).stream(), expected, std::move(done));
  }

  std::optional<absl::Status> wait_briefly(Lane& lane) override {
    try {
      const CudaEvent& all = static_cast<GpuLane&>(lane).mark_all();
      const Clock::time_point end = Clock::now() + kBriefly;
      while (!all.reached()) {
        if (Clock::now() > end) return std::nullopt;
      }
      return absl::OkStatus();
    } catch (const CudaError& error) {
      return fault(error);
    }
  }

 private:
  static void fail_where_due() {
    if (fault_due(FaultPoint::ALLOCATION)) throw std::bad_alloc();
  }
  /// Admission has counted the bytes, but blocks on their way back may not have reached the pool yet.
  DeviceMemory allocate_from(CudaExecutor& executor, std::size_t bytes) {
    try {
      return executor.allocate(bytes);
    } catch (const CudaError& error) {
      if (!error.out_of_memory()) throw;
      cuda_->synchronize();
      return executor.allocate(bytes);
    }
  }

  std::unique_ptr<CudaDevice> cuda_;
  PinnedHeads heads_;
  std::mutex allocator_mutex_;
  CudaExecutor allocator_;
  Copier in_;
  Copier out_;
  Copier within_;
  CompletionPoller poller_;
};

struct OpenGpu {
  std::unique_ptr<CudaDevice> device;
  std::size_t budget_bytes;
};

/// What the executors of the lanes keep besides.
std::size_t kept_bytes(const GpuDeviceOptions& options) {
  return static_cast<std::size_t>(lane_count(options)) * align_block(CudaExecutor::kStatusWordBytes);
}

constexpr std::size_t most_of(std::size_t free_bytes) { return free_bytes / 10 * 8; }

/// With a pool of 80 % of the free memory. Who opens the GPU at the same moment saw the same memory free: the
/// one that comes too late looks again.
OpenGpu open_with_most_of_free_memory(const GpuDeviceOptions& options) {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    const std::size_t pool_bytes = most_of(CudaDevice(options.ordinal).free_bytes());
    try {
      return {std::make_unique<CudaDevice>(options.ordinal, pool_bytes + kept_bytes(options)), pool_bytes};
    } catch (const CudaError& error) {
      if (!error.out_of_memory() || attempt == kAttempts) throw;
    }
  }
}

OpenGpu open_on_demand(const GpuDeviceOptions& options) {
  auto device = std::make_unique<CudaDevice>(options.ordinal);
  const std::size_t budget = options.budget_bytes > 0 ? options.budget_bytes : most_of(device->free_bytes());
  return {std::move(device), budget};
}

OpenGpu open_gpu(const GpuDeviceOptions& options) {
  if (options.memory_on_demand) return open_on_demand(options);
  if (options.budget_bytes == 0) return open_with_most_of_free_memory(options);
  return {std::make_unique<CudaDevice>(options.ordinal, options.budget_bytes + kept_bytes(options)),
          options.budget_bytes};
}

}  // namespace

std::unique_ptr<Device> make_gpu_device(const GpuDeviceOptions& options) {
  OpenGpu gpu = open_gpu(options);
  return std::make_unique<GpuDevice>(std::move(gpu.device), options, gpu.budget_bytes);
}

}  // namespace cumulus::server
