#pragma once

#include "kernels/core/vector_width.h"
#include "kernels/summed_area_table/summed_area_table.h"

namespace cumulus::summed_area_table {

/// build_summed_area_table on the CPU with chosen vectors, for tests: it takes the widest that there are.
template <class Vectors, class Input, class Sum>
void build_with(CpuExecutor& executor, const TableJob<Input, Sum, Space::kHost>& job);

}  // namespace cumulus::summed_area_table
