#pragma once

#include <string>

#include "bench/harness/bench.h"
#include "tests/cases/sampling_table_case.h"

namespace cumulus::bench {

/// Searches of random points in a line by every monotone method, by whole warps and by one thread of each.
void bench_searches(Runner<CudaExecutor>& runner, const std::string& name,
                    const testing::TestMap<float>& map);

}  // namespace cumulus::bench
