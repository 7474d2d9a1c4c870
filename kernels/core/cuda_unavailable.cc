// A build without CUDA: no device exists, so nothing below is ever reached with one.
#include "kernels/core/cuda_executor.h"
#include "kernels/core/exported_memory.h"
#include "kernels/core/faulting_kernel.h"
#include "kernels/core/non_finite.h"
#include "kernels/core/pinned_memory.h"

namespace cumulus {
namespace {

[[noreturn]] void unavailable(int line) { throw CudaError(0, "no device", __FILE__, line); }

}  // namespace

CudaError::CudaError(int code, const char* call, const char* file, int line)
    : std::runtime_error(std::string(call) + " at " + file + ":" + std::to_string(line) +
                         ": this build has no CUDA; configure with -DCUMULUS_CUDA=ON"),
      code_(code) {}
bool CudaError::out_of_memory() const { return false; }
bool CudaError::sticky() const { return false; }
void check_cuda(int code, const char* call, const char* file, int line) {
  throw CudaError(code, call, file, line);
}

int cuda_device_count() noexcept { return 0; }
std::string cuda_unavailable_reason() { return "built without CUDA"; }

struct CudaDevice::Pool {};
CudaDevice::CudaDevice(int ordinal, std::size_t /*pool_bytes*/) : ordinal_(ordinal) { unavailable(__LINE__); }
CudaDevice::~CudaDevice() = default;
std::size_t CudaDevice::free_bytes() const { unavailable(__LINE__); }
void CudaDevice::synchronize() const { unavailable(__LINE__); }
DeviceMemory CudaDevice::allocate(std::size_t /*bytes*/, CUstream_st* /*stream*/) { unavailable(__LINE__); }

HostMemory allocate_pinned(std::size_t /*bytes*/) { unavailable(__LINE__); }
void register_pinned(HostSpan<std::byte> /*memory*/) { unavailable(__LINE__); }
void unregister_pinned(const void* /*memory*/) noexcept {}

CudaEvent::CudaEvent() { unavailable(__LINE__); }
CudaEvent::~CudaEvent() = default;
CudaEvent::CudaEvent(CudaEvent&& /*other*/) noexcept = default;
CudaEvent& CudaEvent::operator=(CudaEvent&& /*other*/) noexcept = default;
void CudaEvent::record(CUstream_st* /*stream*/) { unavailable(__LINE__); }
bool CudaEvent::reached() const { unavailable(__LINE__); }
void CudaEvent::wait() const { unavailable(__LINE__); }
float CudaEvent::milliseconds_since(const CudaEvent& /*earlier*/) const { unavailable(__LINE__); }

CudaExecutor::CudaExecutor(CudaDevice& device) : device_(&device) { unavailable(__LINE__); }
CudaExecutor::CudaExecutor(CudaExecutor&& /*other*/) noexcept = default;
CudaExecutor::~CudaExecutor() = default;
void CudaExecutor::bind_thread() const { unavailable(__LINE__); }
void CudaExecutor::reserve_scratch(std::size_t /*bytes*/) { unavailable(__LINE__); }
CudaExecutor::StatusWords CudaExecutor::status_words(std::uint32_t /*tags*/) { unavailable(__LINE__); }
void CudaExecutor::upload(HostSpan<const std::byte> /*from*/, DeviceSpan<std::byte> /*to*/) {
  unavailable(__LINE__);
}
void CudaExecutor::download(DeviceSpan<const std::byte> /*from*/, HostSpan<std::byte> /*to*/) {
  unavailable(__LINE__);
}
void CudaExecutor::copy(DeviceSpan<const std::byte> /*from*/, DeviceSpan<std::byte> /*to*/) {
  unavailable(__LINE__);
}
void* CudaExecutor::device_view(void* /*host*/) const { unavailable(__LINE__); }
void CudaExecutor::synchronize() { unavailable(__LINE__); }

template <class T>
void find_non_finite(CudaExecutor& /*executor*/, DeviceSpan<const T> /*elements*/, NonFinite& /*found*/) {
  unavailable(__LINE__);
}
template <class T>
DeviceSpan<const T> clamp_non_finite(CudaExecutor& /*executor*/, DeviceSpan<const T> /*elements*/) {
  unavailable(__LINE__);
}
#define CUMULUS_INSTANTIATE(T)                                                      \
  template void find_non_finite<T>(CudaExecutor&, DeviceSpan<const T>, NonFinite&); \
  template DeviceSpan<const T> clamp_non_finite<T>(CudaExecutor&, DeviceSpan<const T>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

ExportedMemory allocate_exported(const CudaDevice& /*device*/, std::size_t /*bytes*/) {
  unavailable(__LINE__);
}

void launch_faulting_kernel(CudaExecutor& /*executor*/) { unavailable(__LINE__); }

}  // namespace cumulus
