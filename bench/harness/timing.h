#pragma once

#include <functional>
#include <string>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"

// What measuring needs to know of a backend.

namespace cumulus::bench {

/// Seconds that `count` runs in a row take, on the host's clock.
double time_runs(CpuExecutor& executor, int count, const std::function<void()>& run);
/// Seconds between two events around `count` runs in a row. The stream is held until all of them
/// have been submitted, so that the host's part does not count, unless a run waits for the device.
double time_runs(CudaExecutor& executor, int count, const std::function<void()>& run);

/// Copies with all the executor's threads, each its own piece.
void copy(CpuExecutor& executor, HostSpan<const std::byte> from, HostSpan<std::byte> to);
/// Copies 16 bytes a thread, all at once. Sizes are multiples of 16.
void copy(CudaExecutor& executor, DeviceSpan<const std::byte> from, DeviceSpan<std::byte> to);

/// Whether two arrays of the same size are the same. Waits.
bool equal_bytes(CpuExecutor& executor, HostSpan<const std::byte> a, HostSpan<const std::byte> b);
bool equal_bytes(CudaExecutor& executor, DeviceSpan<const std::byte> a, DeviceSpan<const std::byte> b);

/// "cpu: <model>, <n> threads".
std::string describe(const CpuExecutor& executor);
/// "cuda: <model>, driver <version>, runtime <version>".
std::string describe(const CudaExecutor& executor);

}  // namespace cumulus::bench
