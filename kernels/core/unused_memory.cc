#include "kernels/core/unused_memory.h"

#include <malloc.h>
#include <oneapi/tbb/scalable_allocator.h>

namespace cumulus {

void release_unused_host_memory() {
  scalable_allocation_command(TBBMALLOC_CLEAN_ALL_BUFFERS, nullptr);
  malloc_trim(0);
}

}  // namespace cumulus
