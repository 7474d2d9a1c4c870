#pragma once

#include "bench/harness/bench.h"

namespace cumulus::bench {

/// Every method on the same points, with the same marginals and loads: samples at points that are ready,
/// random, Sobol's and Hammersley's, of lines like those of Binder and Keller's Table 1, and of the maps of
/// --map in two sizes; on a GPU also searches alone, by whole warps and by single threads of them.
void bench_comparison(Runner<CpuExecutor>& runner);
void bench_comparison(Runner<CudaExecutor>& runner);

}  // namespace cumulus::bench
