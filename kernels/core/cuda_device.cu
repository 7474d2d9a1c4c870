#include <cuda_runtime.h>

#include <utility>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/kept_blocks.h"
#include "kernels/core/pinned_memory.h"

namespace cumulus {
namespace {

std::string describe(int code, const char* call, const char* file, int line) {
  const auto error = static_cast<cudaError_t>(code);
  return std::string(call) + " at " + file + ":" + std::to_string(line) + ": " + cudaGetErrorName(error) +
         " (" + cudaGetErrorString(error) + ")";
}

/// What it was compiled for, all kernels were.
/// Owns: nothing: it is never launched. Reads: nothing. Writes: nothing.
/// Waits for: nothing, so that it cannot deadlock. Source: this project.
__global__ void compiled_kernel() {}

DeviceNumbers numbers_of(const cudaDeviceProp& properties) {
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, compiled_kernel));
  return {.architecture = compiled.ptxVersion,
          .multiprocessors = properties.multiProcessorCount,
          .multiprocessor_threads = properties.maxThreadsPerMultiProcessor,
          .multiprocessor_shared_bytes = properties.sharedMemPerMultiprocessor,
          .block_shared_bytes = properties.sharedMemPerBlockOptin,
          .l2_bytes = static_cast<std::size_t>(properties.l2CacheSize)};
}

}  // namespace

CudaError::CudaError(int code, const char* call, const char* file, int line)
    : std::runtime_error(describe(code, call, file, line)), code_(code) {}

bool CudaError::out_of_memory() const { return code_ == cudaErrorMemoryAllocation; }

bool CudaError::sticky() const {
  switch (static_cast<cudaError_t>(code_)) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
      return true;
    default:
      return false;
  }
}

void check_cuda(int code, const char* call, const char* file, int line) {
  if (code == cudaSuccess) return;
  (void)cudaGetLastError();  // a non-sticky error must not be reported again by the next launch check
  throw CudaError(code, call, file, line);
}

int cuda_device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    (void)cudaGetLastError();
    return 0;
  }
  return count;
}

std::string cuda_unavailable_reason() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (error != cudaSuccess) return cudaGetErrorString(error);
  return count == 0 ? "no CUDA device" : "";
}

struct CudaDevice::Pool {
  cudaMemPool_t pool = nullptr;
  cudaStream_t free_stream = nullptr;
  int ordinal = 0;
  KeptBlocks kept;

  /// Runs in destructors: an error here is that of a lost context, which the next call reports.
  void free(void* block) const {
    (void)cudaSetDevice(ordinal);
    (void)cudaFreeAsync(block, free_stream);
  }
  /// Where the pool has no block of that size, those that are kept may be in its way.
  void* allocate(std::size_t bytes, cudaStream_t stream) {
    CUMULUS_CUDA(cudaSetDevice(ordinal));
    void* data = nullptr;
    const cudaError_t first = cudaMallocFromPoolAsync(&data, bytes, pool, stream);
    if (first != cudaErrorMemoryAllocation || !kept.free_all([this](void* block) { free(block); })) {
      CUMULUS_CUDA(first);
      return data;
    }
    (void)cudaGetLastError();
    CUMULUS_CUDA(cudaStreamSynchronize(free_stream));
    CUMULUS_CUDA(cudaMallocFromPoolAsync(&data, bytes, pool, stream));
    return data;
  }

  ~Pool() {
    kept.free_all([this](void* block) { free(block); });
    if (free_stream != nullptr) {
      cudaStreamSynchronize(free_stream);
      cudaStreamDestroy(free_stream);
    }
    if (pool != nullptr) cudaMemPoolDestroy(pool);
  }
};

CudaDevice::CudaDevice(int ordinal, std::size_t pool_bytes)
    : ordinal_(ordinal), pool_(std::make_unique<Pool>()) {
  CUMULUS_CUDA(cudaSetDevice(ordinal));
  cudaDeviceProp properties{};
  CUMULUS_CUDA(cudaGetDeviceProperties(&properties, ordinal));
  model_ = properties.name;
  total_bytes_ = properties.totalGlobalMem;
  numbers_ = numbers_of(properties);

  pool_->ordinal = ordinal;
  CUMULUS_CUDA(cudaStreamCreateWithFlags(&pool_->free_stream, cudaStreamNonBlocking));
  cudaMemPoolProps pool_properties{};
  pool_properties.allocType = cudaMemAllocationTypePinned;
  pool_properties.location.type = cudaMemLocationTypeDevice;
  pool_properties.location.id = ordinal;
  CUMULUS_CUDA(cudaMemPoolCreate(&pool_->pool, &pool_properties));
  std::uint64_t keep_all = UINT64_MAX;
  CUMULUS_CUDA(cudaMemPoolSetAttribute(pool_->pool, cudaMemPoolAttrReleaseThreshold, &keep_all));
  if (pool_bytes > 0) {
    void* reserved = nullptr;
    CUMULUS_CUDA(cudaMallocFromPoolAsync(&reserved, pool_bytes, pool_->pool, pool_->free_stream));
    CUMULUS_CUDA(cudaFreeAsync(reserved, pool_->free_stream));
    CUMULUS_CUDA(cudaStreamSynchronize(pool_->free_stream));
  }
}

CudaDevice::~CudaDevice() = default;

std::size_t CudaDevice::free_bytes() const {
  CUMULUS_CUDA(cudaSetDevice(ordinal_));
  std::size_t free = 0;
  std::size_t total = 0;
  CUMULUS_CUDA(cudaMemGetInfo(&free, &total));
  return free;
}

void CudaDevice::synchronize() const {
  CUMULUS_CUDA(cudaSetDevice(ordinal_));
  CUMULUS_CUDA(cudaDeviceSynchronize());
}

DeviceMemory CudaDevice::allocate(std::size_t bytes, CUstream_st* stream) {
  const std::size_t whole = align_block(bytes > 0 ? bytes : 1);
  void* data = pool_->kept.take(whole);
  if (data == nullptr && stream == kOnlyKept) return {};
  if (data == nullptr) data = pool_->allocate(whole, stream);
  const auto give_back = [](void* pool, std::byte* block, std::size_t size) {
    auto* const owner = static_cast<Pool*>(pool);
    owner->kept.keep(align_block(size > 0 ? size : 1), block, [owner](void* each) { owner->free(each); });
  };
  return {static_cast<std::byte*>(data), bytes, pool_.get(), give_back};
}

HostMemory allocate_pinned(std::size_t bytes) {
  void* data = nullptr;
  CUMULUS_CUDA(cudaHostAlloc(&data, bytes > 0 ? bytes : 1, cudaHostAllocPortable));
  return {static_cast<std::byte*>(data), bytes, nullptr,
          [](void*, std::byte* block, std::size_t) { (void)cudaFreeHost(block); }};
}

void register_pinned(HostSpan<std::byte> memory) {
  CUMULUS_CUDA(cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable));
}

void unregister_pinned(const void* memory) noexcept { (void)cudaHostUnregister(const_cast<void*>(memory)); }

CudaEvent::CudaEvent() { CUMULUS_CUDA(cudaEventCreate(&event_)); }

CudaEvent::~CudaEvent() {
  if (event_ != nullptr) (void)cudaEventDestroy(event_);
}

CudaEvent::CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

CudaEvent& CudaEvent::operator=(CudaEvent&& other) noexcept {
  std::swap(event_, other.event_);
  return *this;
}

void CudaEvent::record(CUstream_st* stream) { CUMULUS_CUDA(cudaEventRecord(event_, stream)); }

bool CudaEvent::reached() const {
  const cudaError_t state = cudaEventQuery(event_);
  if (state == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  CUMULUS_CUDA(state);
  return true;
}

void CudaEvent::wait() const { CUMULUS_CUDA(cudaEventSynchronize(event_)); }

float CudaEvent::milliseconds_since(const CudaEvent& earlier) const {
  float milliseconds = 0;
  CUMULUS_CUDA(cudaEventElapsedTime(&milliseconds, earlier.event_, event_));
  return milliseconds;
}

CudaExecutor::CudaExecutor(CudaDevice& device) : device_(&device) {
  bind_thread();
  int lowest = 0;  // the lowest priority is the highest number
  int highest = 0;
  CUMULUS_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  const auto create = [&](StreamPriority priority, int number) {
    CUMULUS_CUDA(cudaStreamCreateWithPriority(&streams_[static_cast<std::size_t>(priority)],
                                              cudaStreamNonBlocking, number));
  };
  create(StreamPriority::kUsual, lowest);
  create(StreamPriority::kHigh, highest);
}

CudaExecutor::CudaExecutor(CudaExecutor&& other) noexcept
    : device_(other.device_),
      streams_(std::exchange(other.streams_, {})),
      priority_(other.priority_),
      scratch_(std::move(other.scratch_)),
      status_memory_(std::move(other.status_memory_)),
      tags_(other.tags_),
      interrupt_(other.interrupt_) {}

CudaExecutor::~CudaExecutor() {
  if (stream() == nullptr) return;
  (void)cudaSetDevice(device_->ordinal());
  for (CUstream_st* stream : streams_) {
    (void)cudaStreamSynchronize(stream);
    (void)cudaStreamDestroy(stream);
  }
}

void CudaExecutor::bind_thread() const { CUMULUS_CUDA(cudaSetDevice(device_->ordinal())); }

void CudaExecutor::reserve_scratch(std::size_t bytes) {
  synchronize();  // the block goes back to the pool, which other streams draw on
  release_scratch();
  if (bytes > 0) scratch_.begin(allocate(bytes), bytes);
}

std::uint32_t CudaExecutor::take_tags(std::uint32_t tags) {
  const CallTags::Next call = tags_.next(tags);
  if (call.clear) {
    if (status_memory_.bytes() == 0) status_memory_ = allocate(kStatusWordBytes);
    CUMULUS_CUDA(cudaMemsetAsync(status_memory_.data(), 0, kStatusWordBytes, stream()));
  }
  tags_.take(call);
  return call.tag;
}

CudaExecutor::StatusWords CudaExecutor::status_words(std::uint32_t tags) {
  const std::uint32_t tag = take_tags(tags);
  return {status_memory_.as<std::uint64_t>(kStatusWords), tag};
}

CudaExecutor::WideStatusWords CudaExecutor::wide_status_words(std::uint32_t tags) {
  const std::uint32_t tag = take_tags(tags);
  std::byte* wide_words = status_memory_.data() + kStatusWords * sizeof(std::uint64_t);
  return {{reinterpret_cast<WideStatusWord*>(wide_words), kWideStatusWords}, tag};
}

void CudaExecutor::upload(HostSpan<const std::byte> from, DeviceSpan<std::byte> to) {
  if (from.empty()) return;
  CUMULUS_CUDA(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyHostToDevice, stream()));
}

void CudaExecutor::download(DeviceSpan<const std::byte> from, HostSpan<std::byte> to) {
  if (from.empty()) return;
  CUMULUS_CUDA(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToHost, stream()));
}

void CudaExecutor::copy(DeviceSpan<const std::byte> from, DeviceSpan<std::byte> to) {
  if (from.empty()) return;
  CUMULUS_CUDA(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToDevice, stream()));
}

void* CudaExecutor::device_view(void* host) const {
  cudaPointerAttributes attributes{};
  CUMULUS_CUDA(cudaPointerGetAttributes(&attributes, host));
  return attributes.type == cudaMemoryTypeHost ? attributes.devicePointer : nullptr;
}

void CudaExecutor::synchronize() {
  bind_thread();
  CUMULUS_CUDA(cudaStreamSynchronize(stream()));
}

}  // namespace cumulus
