#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/report.h"
#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"

// What an operation's benchmark needs. bench/operations/<stem>.cc of each operation defines
//
//   void bench_<stem>(Runner<CpuExecutor>& runner);
//   void bench_<stem>(Runner<CudaExecutor>& runner);
//
// in namespace cumulus::bench, usually as two lines around one template. They go through their sizes and
// call runner.measure; main.cc calls them.

namespace cumulus::bench {

struct Options {
  std::vector<std::string> filters;   // parts of the names to measure, with $ at their ends; empty: all
  bool quick = false;                 // small sizes and few samples: shows that everything runs
  std::vector<std::string> clouds;    // files of points, for KD-trees
  std::vector<std::string> maps;      // environment maps, for sampling tables
  std::vector<std::string> pictures;  // for run-length coding
};

/// One thing to measure.
struct Subject {
  /// operation/variant/size: "summed_area_table/f32-f64/4096x4096".
  std::string name;
  /// Bytes that any method must move: inputs read once, outputs written once. The copy that the
  /// measurement is compared with moves as many, half of them read, half written.
  std::size_t bytes;
  /// What one run gets through, and its unit in the plural: 16777216, "pixels".
  double items;
  std::string unit;
  /// What the *_scratch_bytes function says of one run.
  std::size_t scratch_bytes;
  /// Puts one run on the executor, whose scratch memory is reserved. Called again and again.
  std::function<void()> run;
  /// Called once, after the last run: empty if the result is right, else what is wrong with it.
  std::function<std::string()> verify;
  /// How `verify` knows, in a few words: "serial oracle, every element".
  std::string verified_by;
};

template <class Executor>
class Runner {
 public:
  Runner(Executor& executor, Options options, Report& report)
      : executor_(&executor), options_(std::move(options)), report_(&report) {}

  Executor& executor() const { return *executor_; }
  bool quick() const { return options_.quick; }
  const std::vector<std::string>& clouds() const { return options_.clouds; }
  const std::vector<std::string>& maps() const { return options_.maps; }
  const std::vector<std::string>& pictures() const { return options_.pictures; }
  /// False where the user's filter leaves this name out: ask before preparing a subject's data.
  bool wants(std::string_view name) const {
    if (options_.filters.empty()) return true;
    return std::any_of(options_.filters.begin(), options_.filters.end(), [&](std::string_view part) {
      if (part.ends_with('$')) return name.ends_with(part.substr(0, part.size() - 1));
      return name.find(part) != std::string_view::npos;
    });
  }

  /// Warms up, measures the subject and a copy of as many bytes, verifies, and puts the row into
  /// the report.
  void measure(const Subject& subject);

 private:
  Executor* executor_;
  Options options_;
  Report* report_;
};

extern template class Runner<CpuExecutor>;
extern template class Runner<CudaExecutor>;

/// An array in the executor's memory.
template <class T, class Executor>
class Array {
 public:
  static constexpr Space kSpace = Executor::kSpace;

  /// Uninitialised.
  Array(Executor& executor, std::size_t count)
      : executor_(&executor), count_(count), memory_(executor.allocate(count * sizeof(T))) {}
  Array(Executor& executor, const std::vector<T>& values) : Array(executor, values.size()) {
    executor.upload({reinterpret_cast<const std::byte*>(values.data()), count_ * sizeof(T)},
                    {memory_.data(), count_ * sizeof(T)});
    executor.synchronize();
  }

  Span<T, kSpace> span() const { return memory_.template as<T>(count_); }
  T* data() const { return span().data(); }
  std::size_t size() const { return count_; }

  /// Waits for the executor's work.
  std::vector<T> to_host() const { return to_host(0, count_); }

  /// `count` elements from `first` on; waits, too.
  std::vector<T> to_host(std::size_t first, std::size_t count) const {
    std::vector<T> values(count);
    executor_->download({memory_.data() + first * sizeof(T), count * sizeof(T)},
                        {reinterpret_cast<std::byte*>(values.data()), count * sizeof(T)});
    executor_->synchronize();
    return values;
  }

 private:
  Executor* executor_;
  std::size_t count_;
  Memory<kSpace> memory_;
};

/// What a run reports, where a GPU writes it without the host waiting.
template <class T, class Executor>
class ReportMemory {
 public:
  ReportMemory()
      : memory_(Executor::kSpace == Space::kDevice ? allocate_pinned(sizeof(T)) : allocate_host(sizeof(T))) {}
  T* get() const { return reinterpret_cast<T*>(memory_.data()); }

 private:
  HostMemory memory_;
};

}  // namespace cumulus::bench
