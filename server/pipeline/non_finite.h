#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "cumulus/v1/array.pb.h"
#include "kernels/core/float16.h"
#include "kernels/core/parallel.h"
#include "kernels/core/views.h"
#include "server/pipeline/operation.h"

namespace cumulus::server {

/// What a run found of its image's pixels, where it was asked to refuse those that are not finite.
struct NonFiniteReport {
  std::int64_t first_beyond;  // 1 + the number of the first element that is not finite; 0: there is none
  double value;               // of it
  bool unchecked;             // the device cannot look
};

/// Reads the field `non_finite`: whether to refuse. INVALID_ARGUMENT naming it.
absl::StatusOr<bool> read_non_finite(v1::NonFinitePolicy policy);

/// FAILED_PRECONDITION, reason NON_FINITE_PIXEL, with row, column and channel (and image, of a batch);
/// UNIMPLEMENTED where the device did not look.
absl::Status conclude_non_finite(const NonFiniteReport& report, std::string_view field,
                                 const ArrayShape& shape);

/// Looks for the first element that is not finite. False: there is one, and nothing is to be computed.
template <class T>
bool check_finite(CpuExecutor& executor, Span<const T, Space::kHost> elements, NonFiniteReport& report) {
  report = {};
  if constexpr (!std::is_integral_v<T>) {
    constexpr std::int64_t kGrain = std::int64_t{1} << 16;
    const auto count = static_cast<std::int64_t>(elements.size());
    std::atomic<std::int64_t> first = count;
    parallel_ranges(executor, count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < std::min(end, first.load(std::memory_order_relaxed)); ++i) {
        if (std::isfinite(static_cast<double>(elements.data()[i]))) continue;
        for (std::int64_t known = first; i < known && !first.compare_exchange_weak(known, i);) {
        }
        return;
      }
    });
    if (first < count) {
      report.first_beyond = first + 1;
      report.value = static_cast<double>(elements.data()[first]);
    }
  }
  return report.first_beyond == 0;
}

/// There is no kernel that looks.
template <class T>
bool check_finite(CudaExecutor& /*executor*/, Span<const T, Space::kDevice> /*elements*/,
                  NonFiniteReport& report) {
  report = {};
  report.unchecked = !std::is_integral_v<T>;
  return !report.unchecked;
}

}  // namespace cumulus::server
