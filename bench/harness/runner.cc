#include <algorithm>
#include <cmath>
#include <type_traits>

#include "bench/harness/bench.h"
#include "bench/harness/timing.h"

namespace cumulus::bench {
namespace {

/// A sample is as many runs in a row as fill about this time: a clock's grain and the cost of an event
/// vanish.
constexpr double kSampleSeconds = 200e-6;
constexpr int kMostRunsPerSample = 100;
constexpr int kWarmUps = 3;
constexpr std::size_t kSamples = 21;
constexpr std::size_t kQuickSamples = 3;
/// Slow runs are not repeated beyond about this time, but at least once.
constexpr double kMostSeconds = 1;

struct Measurement {
  std::size_t samples;
  double median_seconds;
  double fastest_seconds;
};

template <class Executor>
Measurement sample(Executor& executor, std::size_t samples, const std::function<void()>& run) {
  double warm = time_runs(executor, 1, run);
  for (int i = 1; i < kWarmUps && warm < kMostSeconds / 2; ++i) warm = time_runs(executor, 1, run);
  samples = std::clamp<std::size_t>(static_cast<std::size_t>(kMostSeconds / warm), 2, samples);
  const int runs = std::clamp(static_cast<int>(std::ceil(kSampleSeconds / warm)), 1, kMostRunsPerSample);
  std::vector<double> seconds(samples);
  for (double& one : seconds) one = time_runs(executor, runs, run) / runs;
  std::sort(seconds.begin(), seconds.end());
  return {samples, seconds[samples / 2], seconds.front()};
}

/// What a copy reads. On a host it is written first: pages that never were are all the same one of zeros.
template <class Executor>
Array<std::byte, Executor> memory_to_copy(Executor& executor, std::size_t bytes) {
  if constexpr (Executor::kSpace == Space::kHost) return {executor, std::vector<std::byte>(bytes)};
  return {executor, bytes};
}

}  // namespace

template <class Executor>
void Runner<Executor>::measure(const Subject& subject) {
  const std::size_t samples = options_.quick ? kQuickSamples : kSamples;
  executor_->reserve_scratch(subject.scratch_bytes);
  const Measurement measured = sample(*executor_, samples, [&] {
    executor_->reuse_scratch();
    subject.run();
  });
  const std::string difference = subject.verify();

  const std::size_t half = (subject.bytes / 2 + 15) / 16 * 16;
  const auto from = memory_to_copy(*executor_, half);
  const Array<std::byte, Executor> to(*executor_, half);
  const Measurement copied = sample(*executor_, samples, [&] { copy(*executor_, from.span(), to.span()); });

  Row row;
  row.name = subject.name;
  row.backend = std::is_same_v<Executor, CpuExecutor> ? "cpu" : "cuda";
  row.samples = measured.samples;
  row.median_seconds = measured.median_seconds;
  row.fastest_seconds = measured.fastest_seconds;
  row.bytes = subject.bytes;
  row.copy_seconds = copied.median_seconds;
  row.items = subject.items;
  row.unit = subject.unit;
  row.scratch_bytes = subject.scratch_bytes;
  row.difference = difference;
  row.verified_by = subject.verified_by;
  report_->add(row);
}

template class Runner<CpuExecutor>;
template class Runner<CudaExecutor>;

}  // namespace cumulus::bench
