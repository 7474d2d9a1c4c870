#pragma once

#include <cstddef>

#include "kernels/core/memory.h"

namespace cumulus {

class CudaDevice;

/// What the sizes of exported memory are multiples of.
inline constexpr std::size_t kExportedGranularity = std::size_t{2} << 20;

/// Device memory in an allocation of its own, and a descriptor by which another process can map that
/// allocation, and nothing else of this one's. The descriptor is the caller's to close.
struct ExportedMemory {
  DeviceMemory memory;
  int descriptor = -1;
};

/// Of zeros: what the allocation's pages held before is nobody's to see. Lies beside the device's pool.
/// Throws CudaError (out_of_memory() where the device has no `bytes` beside the pool).
ExportedMemory allocate_exported(const CudaDevice& device, std::size_t bytes);

}  // namespace cumulus
