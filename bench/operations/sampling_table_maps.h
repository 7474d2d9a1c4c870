#pragma once

#include <cstdint>
#include <string>

#include "bench/harness/bench.h"
#include "tests/cases/sampling_table_case.h"

namespace cumulus::bench {

/// A photographed map; what is below zero, as resampling leaves it, is zero. Throws std::runtime_error where
/// the file cannot be read.
testing::TestMap<float> read_map(const std::string& path);

/// The first channel, or luminance, of a lat-long map in another size: bilinear, columns go round.
testing::TestMap<float> resized(const testing::TestMap<float>& map, testing::MapShape shape);

/// Builds tables of a photographed map by every method, and draws so many samples of each: with random
/// points, and with Sobol's and Hammersley's in their order; and at points that are ready, evenly spread and
/// in the order of a grid. Throws std::runtime_error where the file cannot be read.
void bench_map_file(Runner<CpuExecutor>& runner, const std::string& path, std::int64_t samples);
void bench_map_file(Runner<CudaExecutor>& runner, const std::string& path, std::int64_t samples);

}  // namespace cumulus::bench
