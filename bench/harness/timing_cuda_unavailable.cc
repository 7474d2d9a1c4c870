// A build without CUDA: no executor exists, so nothing below is ever reached with one.
#include "bench/harness/timing.h"

namespace cumulus::bench {
namespace {

[[noreturn]] void unavailable(int line) { throw CudaError(0, "no device", __FILE__, line); }

}  // namespace

double time_runs(CudaExecutor& /*executor*/, int /*count*/, const std::function<void()>& /*run*/) {
  unavailable(__LINE__);
}
void copy(CudaExecutor& /*executor*/, DeviceSpan<const std::byte> /*from*/, DeviceSpan<std::byte> /*to*/) {
  unavailable(__LINE__);
}
bool equal_bytes(CudaExecutor& /*executor*/, DeviceSpan<const std::byte> /*a*/,
                 DeviceSpan<const std::byte> /*b*/) {
  unavailable(__LINE__);
}
std::string describe(const CudaExecutor& /*executor*/) { unavailable(__LINE__); }

}  // namespace cumulus::bench
