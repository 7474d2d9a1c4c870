#pragma once

#include "bench/harness/bench.h"

namespace cumulus::bench {

/// Runs the benchmarks of every operation of the build.
template <class Executor>
void bench_operations(Runner<Executor>& runner);

}  // namespace cumulus::bench
