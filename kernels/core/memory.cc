#include "kernels/core/memory.h"

#include <oneapi/tbb/scalable_allocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace cumulus {
namespace {

// The first touch of a page costs more than a copy of what is on it; 512 times fewer, larger pages make fresh
// blocks nearly as fast as used ones.
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kLargeBlockBytes = 2 * kHugePageBytes;

}  // namespace

HostMemory allocate_host(std::size_t bytes) {
  const bool large = bytes >= kLargeBlockBytes;
  void* data =
      scalable_aligned_malloc(std::max<std::size_t>(bytes, 1), large ? kHugePageBytes : kBlockAlignment);
  if (data == nullptr) throw std::bad_alloc();
  if (large) madvise(data, bytes, MADV_HUGEPAGE);  // a wish: what the kernel makes of it changes nothing else
  return {static_cast<std::byte*>(data), bytes, nullptr,
          [](void*, std::byte* block, std::size_t) { scalable_aligned_free(block); }};
}

}  // namespace cumulus
