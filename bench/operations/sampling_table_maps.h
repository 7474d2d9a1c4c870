#pragma once

#include <cstdint>
#include <string>

#include "bench/harness/bench.h"

namespace cumulus::bench {

/// Builds tables of a photographed map by every method, and draws so many samples of each: with random
/// points, and with Sobol's and Hammersley's in their order; and at points that are ready, evenly spread and
/// in the order of a grid. Throws std::runtime_error where the file cannot be read.
void bench_map_file(Runner<CpuExecutor>& runner, const std::string& path, std::int64_t samples);
void bench_map_file(Runner<CudaExecutor>& runner, const std::string& path, std::int64_t samples);

}  // namespace cumulus::bench
