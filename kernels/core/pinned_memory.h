#pragma once

#include "kernels/core/views.h"

namespace cumulus {

/// Pins host memory that something else owns, page by page, for all devices: copies from and to it are then
/// as fast as those of allocate_pinned. Throws CudaError.
void register_pinned(HostSpan<std::byte> memory);
/// Before the memory goes; no copy may be on its way.
void unregister_pinned(const void* memory) noexcept;

}  // namespace cumulus
