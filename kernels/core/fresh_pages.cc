#include "kernels/core/fresh_pages.h"

#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/core/parallel.h"

namespace cumulus {

void touch_pages(CpuExecutor& executor, HostSpan<std::byte> memory) {
  constexpr std::int64_t kPageBytes = 4096;
  constexpr std::int64_t kLargePagePages = 512;
  const std::int64_t pages = divide_up(static_cast<std::int64_t>(memory.size()), kPageBytes);
  parallel_ranges(executor, pages, kLargePagePages, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t page = first; page < end; ++page) {
      volatile std::byte& byte = memory.data()[page * kPageBytes];
      const std::byte held = byte;
      byte = held;
    }
  });
}

}  // namespace cumulus
