#include "kernels/core/memory.h"

#include <oneapi/tbb/scalable_allocator.h>

#include <algorithm>
#include <new>

namespace cumulus {

HostMemory allocate_host(std::size_t bytes) {
  void* data = scalable_aligned_malloc(std::max<std::size_t>(bytes, 1), kBlockAlignment);
  if (data == nullptr) throw std::bad_alloc();
  return {static_cast<std::byte*>(data), bytes, nullptr,
          [](void*, std::byte* block, std::size_t) { scalable_aligned_free(block); }};
}

}  // namespace cumulus
