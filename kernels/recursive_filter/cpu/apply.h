#pragma once

#include "kernels/core/vector_width.h"
#include "kernels/recursive_filter/recursive_filter.h"

namespace cumulus::recursive_filter {

/// apply_recursive_filter on the CPU with chosen vectors, for tests: it takes the widest that there are.
template <class Vectors, class T>
RecursiveFilterRun apply_with(CpuExecutor& executor, FilterImages<const T, Space::kHost> images,
                              const RecursiveFilter& filter, FilterImages<T, Space::kHost> filtered);

}  // namespace cumulus::recursive_filter
