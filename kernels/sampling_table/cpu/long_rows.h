#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/core/parallel.h"

namespace cumulus::sampling_table {

/// Rows of as many cells take a good part of a slice, or more than one.
inline constexpr std::int64_t kLongRowCells = 1 << 17;

/// Runs the Work that make(row) makes of each row in as many slices as that takes, a few rows at a time,
/// and calls conclude(row, work) where it has come to its end. Work::run(slice) goes on from where it was, to
/// the end or until the slice is over, and returns whether it has come to the end.
template <class Work, class Make, class Conclude>
void run_long_rows(CpuExecutor& executor, std::int64_t rows, const Make& make, const Conclude& conclude) {
  const std::int64_t at_once = 2 * std::int64_t{executor.threads()};
  for (std::int64_t first = 0; first < rows; first += at_once) {
    std::vector<std::uint32_t> items(static_cast<std::size_t>(std::min(at_once, rows - first)));
    std::iota(items.begin(), items.end(), static_cast<std::uint32_t>(first));
    std::vector<std::unique_ptr<Work>> begun(items.size());
    parallel_items(executor, std::move(items), [&](std::uint32_t row, const auto& open) {
      std::unique_ptr<Work>& work = begun[static_cast<std::size_t>(row - first)];
      if (work == nullptr) work = std::make_unique<Work>(make(row));
      if (!work->run(&open.slice)) return open.left.add(row);
      conclude(row, *work);
      work.reset();
    });
  }
}

}  // namespace cumulus::sampling_table
