#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string>

#include "cumulus/session.h"

namespace cumulus::cli {

/// A row of `cumulus bench`: an operation on data that is made up, the same in every run.
struct BenchRow {
  std::string name;
  std::function<absl::StatusOr<Array>(std::int64_t size)> input;
  std::function<Operation(const Buffer& input)> operation;
};

/// float32, from 0 to 1.
absl::StatusOr<Array> bench_floats(Shape shape);
/// The same, [size, size].
absl::StatusOr<Array> bench_image(std::int64_t size);
/// The same, [size * size / 4, 3].
absl::StatusOr<Array> bench_points(std::int64_t size);
/// uint8 [size * size], one less if that is odd: opening and closing brackets that all have partners.
absl::StatusOr<Array> bench_brackets(std::int64_t size);

}  // namespace cumulus::cli
