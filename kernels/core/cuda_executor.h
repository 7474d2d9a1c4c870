#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/core/call_tags.h"
#include "kernels/core/cuda_error.h"
#include "kernels/core/device_numbers.h"
#include "kernels/core/interrupt.h"
#include "kernels/core/memory.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/core/views.h"

struct CUstream_st;  // cudaStream_t is a pointer to it; CUDA's headers stay inside kernels/*.cu
struct CUevent_st;

namespace cumulus {

/// GPUs that this build and this machine can use; 0 in a build without CUDA.
int cuda_device_count() noexcept;
/// Why cuda_device_count() is 0, as a clause ("built without CUDA", "no CUDA driver: ...").
std::string cuda_unavailable_reason();

/// One GPU and its memory pool. Outlives its executors and every block of its pool.
class CudaDevice {
 public:
  /// Reserves `pool_bytes` of device memory at once; 0: grows as needed. Throws CudaError.
  explicit CudaDevice(int ordinal, std::size_t pool_bytes = 0);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  int ordinal() const { return ordinal_; }
  const std::string& model() const { return model_; }
  std::size_t total_bytes() const { return total_bytes_; }
  std::size_t free_bytes() const;
  /// Blocks until all work on the device is done.
  void synchronize() const;
  const DeviceNumbers& numbers() const { return numbers_; }
  int multiprocessors() const { return numbers_.multiprocessors; }
  std::size_t l2_bytes() const { return numbers_.l2_bytes; }

  /// Stream-ordered: the block may be used by work put on `stream` from here on, by other streams
  /// once the host has seen `stream` reach this point. The block must be idle when it is given
  /// back. Throws CudaError (out_of_memory() where the pool is full).
  DeviceMemory allocate(std::size_t bytes, CUstream_st* stream);

 private:
  int ordinal_;
  std::string model_;
  std::size_t total_bytes_ = 0;
  DeviceNumbers numbers_;
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

/// Pinned host memory. Throws CudaError.
HostMemory allocate_pinned(std::size_t bytes);

/// A point in a stream that the host can ask about.
class CudaEvent {
 public:
  CudaEvent();
  ~CudaEvent();
  CudaEvent(CudaEvent&& other) noexcept;
  CudaEvent& operator=(CudaEvent&& other) noexcept;

  void record(CUstream_st* stream);
  /// True once the stream has passed the last record. Throws CudaError where the work has failed.
  bool reached() const;
  void wait() const;
  /// Milliseconds of device time from `earlier` to this; both must have been reached.
  float milliseconds_since(const CudaEvent& earlier) const;

 private:
  CUevent_st* event_ = nullptr;
};

/// Whose blocks a GPU takes first, where several streams have some that wait.
enum class StreamPriority { kUsual, kHigh };

/// Submits operations to one stream of its own for each priority, one at a time. Calls return before the work
/// is done, except where they say otherwise. Kernels run in the order of their submission. One call at a
/// time.
class CudaExecutor {
 public:
  static constexpr Space kSpace = Space::kDevice;

  explicit CudaExecutor(CudaDevice& device);
  ~CudaExecutor();
  CudaExecutor(CudaExecutor&& other) noexcept;
  CudaExecutor& operator=(CudaExecutor&&) = delete;

  CudaDevice& device() const { return *device_; }
  const DeviceNumbers& numbers() const { return device_->numbers(); }
  CUstream_st* stream() const { return streams_[static_cast<std::size_t>(priority_)]; }
  /// Between calls: the stream of those that follow. kUsual at first.
  void set_priority(StreamPriority priority) { priority_ = priority; }
  /// Makes the device current on this thread; CUDA calls outside the executor need it first.
  void bind_thread() const;

  /// Begins a call whose scratch memory is at most `bytes`; what the call before took is gone.
  void reserve_scratch(std::size_t bytes);
  void release_scratch() { scratch_.begin({}, 0); }
  /// Begins a call on the scratch memory of the call before, which is as large; waits for nothing.
  void reuse_scratch() { scratch_.rewind(); }
  template <class T>
  DeviceSpan<T> scratch(std::size_t count) {
    return scratch_.take<T>(count);
  }
  const ScratchArena<Space::kDevice>& scratch_arena() const { return scratch_; }

  /// Status words that blocks of one kernel publish to each other, kept from call to call so that none has to
  /// be cleared before a call. A word of 64 bits has 32 bits of a value and, in its upper half, a tag, and is
  /// written whole; one that carries another tag has not been published in this call. Nothing else is ever
  /// written there. The words are the executor's alone, and its kernels run one after the other. A
  /// kernel that uses words several times asks for as many tags: `tag` and those after it. The memory,
  /// kStatusWordBytes, is taken from the device on first use and kept to the end, beside what calls reserve.
  struct StatusWords {
    DeviceSpan<std::uint64_t> words;  // kStatusWords
    std::uint32_t tag;
  };
  static constexpr std::size_t kStatusWords = 360 * 1024;  // what tables of bytes in strips take
  StatusWords status_words(std::uint32_t tags = 1);

  /// The same in words of 128 bits, three values and a tag. They lie apart from the others: a value of one
  /// form stands where the other has its tag.
  struct alignas(16) WideStatusWord {
    std::uint32_t values[3];
    std::uint32_t tag;
  };
  struct WideStatusWords {
    DeviceSpan<WideStatusWord> words;  // kWideStatusWords
    std::uint32_t tag;
  };
  static constexpr std::size_t kWideStatusWords = 600 * 1024;
  WideStatusWords wide_status_words(std::uint32_t tags = 1);
  static constexpr std::size_t kStatusWordBytes =
      kStatusWords * sizeof(std::uint64_t) + kWideStatusWords * sizeof(WideStatusWord);

  DeviceMemory allocate(std::size_t bytes) { return device_->allocate(bytes, stream()); }
  /// Asynchronous where the host side is pinned; otherwise returns when the host side is free again.
  void upload(HostSpan<const std::byte> from, DeviceSpan<std::byte> to);
  void download(DeviceSpan<const std::byte> from, HostSpan<std::byte> to);
  void copy(DeviceSpan<const std::byte> from, DeviceSpan<std::byte> to);
  /// Where kernels see what lies at `host`, so that few bytes need no download, which takes 10 microseconds
  /// between kernels: pinned memory; null elsewhere. What they write there is seen once the stream has passed
  /// them.
  void* device_view(void* host) const;
  /// Blocks until all work submitted so far is done. Throws CudaError where any of it failed.
  void synchronize();

  void set_interrupt(const Interrupt* interrupt) { interrupt_ = interrupt; }
  /// Call between kernels. Throws Interrupted.
  void check_interrupt() const {
    if (interrupt_ != nullptr && interrupt_->requested()) throw Interrupted();
  }

 private:
  /// The first of a call's tags, which are in no word yet.
  std::uint32_t take_tags(std::uint32_t tags);

  CudaDevice* device_;
  std::array<CUstream_st*, 2> streams_{};
  StreamPriority priority_ = StreamPriority::kUsual;
  ScratchArena<Space::kDevice> scratch_;
  DeviceMemory status_memory_;
  CallTags tags_;
  const Interrupt* interrupt_ = nullptr;
};

}  // namespace cumulus
