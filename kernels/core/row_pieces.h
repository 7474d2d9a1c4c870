#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/core/parallel.h"

namespace cumulus {

/// Numbers first, ..., end - 1 of a row.
struct RowPiece {
  std::int64_t row;
  std::int64_t first;
  std::int64_t end;
};

/// Calls body(piece) for `rows` rows of `numbers` numbers, of long ones piece by piece, on the executor's
/// threads, in slices: some `at_once` numbers in a row. Exceptions from the body reach the caller; throws
/// Interrupted.
template <class Body>
void parallel_row_pieces(CpuExecutor& executor, std::int64_t rows, std::int64_t numbers, std::int64_t at_once,
                         const Body& body) {
  const std::int64_t pieces = divide_up(numbers, at_once);  // of a row
  const std::int64_t grain = std::max<std::int64_t>(1, at_once / numbers);
  parallel_ranges(executor, rows * pieces, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % pieces * at_once;
      body(RowPiece{i / pieces, first, std::min(first + at_once, numbers)});
    }
  });
}

}  // namespace cumulus
