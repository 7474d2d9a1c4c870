#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/slice.h"

// oneTBB's loops are compiled once, in parallel.cc, and call their bodies through a pointer: they are some
// 3,000 instructions for each body that they are compiled with.

namespace cumulus {

namespace parallel {

/// Refers to a function of any type, which has to outlive it.
template <class... Arguments>
class FunctionReference {
 public:
  template <class F>
  FunctionReference(const F& function)
      : function_(&function),
        call_([](const void* f, Arguments... arguments) { (*static_cast<const F*>(f))(arguments...); }) {}

  void operator()(Arguments... arguments) const { call_(function_, arguments...); }

 private:
  const void* function_;
  void (*call_)(const void* function, Arguments... arguments);
};
using IndexBody = FunctionReference<std::size_t>;
using RangeBody = FunctionReference<std::int64_t, std::int64_t>;

/// Calls body(i) for each i below `count`, on the executor's threads.
void for_each_index(CpuExecutor& executor, std::size_t count, const IndexBody& body);

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
    parallel::for_each_index(executor, items.size(), [&](std::size_t i) {
      if (i > 0 && slice.over()) return left.add(items[i]);
      body(items[i], open);
    });
    items = left.take();
  }
}

/// Calls body(first, last) on pieces of [0, count) of at least `grain`, on the executor's threads, in slices.
/// Exceptions from the body reach the caller; throws Interrupted.
void parallel_ranges(CpuExecutor& executor, std::int64_t count, std::int64_t grain,
                     const parallel::RangeBody& body);

}  // namespace cumulus
