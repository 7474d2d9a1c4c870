#pragma once

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/slice.h"
#include "kernels/core/slice_size.h"

namespace cumulus {

namespace parallel {

struct Range {
  std::int64_t begin;
  std::int64_t end;

  std::int64_t count() const { return end - begin; }
};

/// What a slice left for the next one.
template <class Item>
class Leftovers {
 public:
  /// From any thread.
  void add(const Item& item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(item);
  }
  std::vector<Item> take() { return std::exchange(items_, {}); }
  bool empty() const { return items_.empty(); }

 private:
  std::mutex mutex_;
  std::vector<Item> items_;
};

/// A slice of work that is found as it goes.
template <class Item>
struct OpenSlice {
  const Slice& slice;
  Leftovers<Item>& left;
};

}  // namespace parallel

/// Calls body(item, open_slice) for each of `items`, a few large ones, on the executor's threads. Once
/// `open_slice.slice` is over, the body adds what it has not done to `open_slice.left`: the items of the next
/// slice. It does a part in any case. Exceptions from the body reach the caller; throws Interrupted.
template <class Item, class Body>
void parallel_items(CpuExecutor& executor, std::vector<Item> items, const Body& body) {
  parallel::Leftovers<Item> left;
  while (!items.empty()) {
    const Slice slice(executor);
    const parallel::OpenSlice<Item> open{slice, left};
    executor.run([&] {
      oneapi::tbb::parallel_for(std::size_t{0}, items.size(), [&](std::size_t i) {
        if (i > 0 && slice.over()) return left.add(items[i]);
        body(items[i], open);
      });
    });
    items = left.take();
  }
}

/// Calls body(first, last) on pieces of [0, count) of at least `grain`, on the executor's threads, in slices.
/// Exceptions from the body reach the caller; throws Interrupted.
template <class Body>
void parallel_ranges(CpuExecutor& executor, std::int64_t count, std::int64_t grain, const Body& body) {
  constexpr std::int64_t kFirstGrains = 4;  // of each thread
  constexpr std::int64_t kChecks = 16;      // by each thread, in a slice that takes longer than foreseen
  const std::int64_t threads = executor.threads();
  SliceSize size(kCpuSliceLength, kFirstGrains * grain * threads, grain);
  parallel::Leftovers<parallel::Range> left;
  for (std::int64_t begin = 0; begin < count || !left.empty();) {
    const Slice slice(executor);
    std::vector<parallel::Range> ranges = left.take();
    const bool fresh = ranges.empty();
    if (fresh) {
      const std::int64_t end = slice.ends() ? std::min(count, begin + size.pieces()) : count;
      ranges.push_back({begin, end});
      begin = end;
    }
    const std::int64_t step = std::max(grain, ranges.front().count() / (kChecks * threads));
    const auto run_range = [&](const auto& range) {
      if (!slice.ends()) return body(range.begin(), range.end());
      for (std::int64_t first = range.begin(); first < range.end(); first += step) {
        if (slice.wanted()) return left.add(parallel::Range{first, range.end()});
        executor.check_interrupt();
        body(first, std::min(first + step, range.end()));
      }
    };
    executor.run([&] {
      oneapi::tbb::parallel_for(std::size_t{0}, ranges.size(), [&](std::size_t i) {
        oneapi::tbb::parallel_for(oneapi::tbb::blocked_range<std::int64_t>(ranges[i].begin, ranges[i].end,
                                                                           static_cast<std::size_t>(grain)),
                                  run_range);
      });
    });
    if (fresh && left.empty()) size.took(ranges.front().count(), slice.elapsed());
  }
}

}  // namespace cumulus
