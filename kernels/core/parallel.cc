#include "kernels/core/parallel.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>

#include "kernels/core/slice_size.h"

namespace cumulus {
namespace {

struct Range {
  std::int64_t begin;
  std::int64_t end;

  std::int64_t count() const { return end - begin; }
};

}  // namespace

void parallel::for_each_index(CpuExecutor& executor, std::size_t count, const IndexBody& body) {
  executor.run([&] { oneapi::tbb::parallel_for(std::size_t{0}, count, body); });
}

void parallel_ranges(CpuExecutor& executor, std::int64_t count, std::int64_t grain,
                     const parallel::RangeBody& body) {
  constexpr std::int64_t kFirstGrains = 4;  // of each thread
  constexpr std::int64_t kChecks = 16;      // by each thread, in a slice that takes longer than foreseen
  const std::int64_t threads = executor.threads();
  SliceSize size(kCpuSliceLength, kFirstGrains * grain * threads, grain);
  parallel::Leftovers<Range> left;
  for (std::int64_t begin = 0; begin < count || !left.empty();) {
    const Slice slice(executor);
    std::vector<Range> ranges = left.take();
    const bool fresh = ranges.empty();
    if (fresh) {
      const std::int64_t end = slice.ends() ? std::min(count, begin + size.pieces()) : count;
      ranges.push_back({begin, end});
      begin = end;
    }
    const std::int64_t step = std::max(grain, ranges.front().count() / (kChecks * threads));
    const auto run_range = [&](const oneapi::tbb::blocked_range<std::int64_t>& range) {
      if (!slice.ends()) return body(range.begin(), range.end());
      for (std::int64_t first = range.begin(); first < range.end(); first += step) {
        if (slice.wanted()) return left.add(Range{first, range.end()});
        executor.check_interrupt();
        body(first, std::min(first + step, range.end()));
      }
    };
    parallel::for_each_index(executor, ranges.size(), [&](std::size_t i) {
      oneapi::tbb::parallel_for(oneapi::tbb::blocked_range<std::int64_t>(ranges[i].begin, ranges[i].end,
                                                                         static_cast<std::size_t>(grain)),
                                run_range);
    });
    if (fresh && left.empty()) size.took(ranges.front().count(), slice.elapsed());
  }
}

}  // namespace cumulus
