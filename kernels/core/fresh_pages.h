#pragma once

#include <cstddef>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/views.h"

namespace cumulus {

/// Writes to each page of `memory` what is there, in slices of the call: before work whose pieces go to many
/// pages each. The system fills a page with zeros at its first write, of large pages 2 MiB, which can take a
/// hundred times as long as what such a piece writes to it. Throws Interrupted.
void touch_pages(CpuExecutor& executor, HostSpan<std::byte> memory);

/// Of a dense image.
template <class T>
void touch_pages(CpuExecutor& executor, const HostImage<T>& image) {
  const auto elements = static_cast<std::size_t>(image.elements());
  touch_pages(executor, HostSpan<std::byte>(reinterpret_cast<std::byte*>(image.data), elements * sizeof(T)));
}

}  // namespace cumulus
