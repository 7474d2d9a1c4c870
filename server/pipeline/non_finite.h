#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "cumulus/v1/array.pb.h"
#include "kernels/core/non_finite.h"
#include "kernels/core/views.h"
#include "server/runtime/array_spec.h"

// What filters do with pixels that are NaN or infinite.

namespace cumulus::server {

enum class NonFinitePolicy : std::uint8_t { kRefuse, kClamp, kKeep };

/// Reads the field `non_finite`.
absl::StatusOr<NonFinitePolicy> read_non_finite(v1::NonFinitePolicy policy);

/// FAILED_PRECONDITION, reason NON_FINITE_PIXEL, with row, column, channel and value (and image, of a batch),
/// where a pixel of the request's field `field`, of that shape, was found.
absl::Status check_non_finite(const NonFinite& found, std::string_view field, const ArrayShape& shape);

template <class T>
std::size_t non_finite_scratch_bytes(NonFinitePolicy policy, std::size_t elements) {
  if constexpr (std::is_integral_v<T>)
    return 0;
  else
    return policy == NonFinitePolicy::kClamp ? clamp_non_finite_scratch_bytes<T>(elements) : 0;
}

/// The pixels that a filter is to take. With kRefuse `found` says which are to be refused: on the CPU at
/// once, on a GPU when the stream has come so far.
template <class E, class T>
Span<const T, E::kSpace> treat_non_finite(E& executor, NonFinitePolicy policy,
                                          Span<const T, E::kSpace> pixels, NonFinite& found) {
  if constexpr (!std::is_integral_v<T>) {
    if (policy == NonFinitePolicy::kClamp) return clamp_non_finite<T>(executor, pixels);
    if (policy == NonFinitePolicy::kRefuse) find_non_finite<T>(executor, pixels, found);
  }
  return pixels;
}

/// For treat_non_finite before a filter whose CPU form says itself whether all its pixels are finite: on a
/// CPU pixels to be refused are looked for after it, by refuse_after.
template <class E>
NonFinitePolicy policy_before(NonFinitePolicy policy) {
  const bool later = E::kSpace == Space::kHost && policy == NonFinitePolicy::kRefuse;
  return later ? NonFinitePolicy::kKeep : policy;
}

/// After such a filter on a CPU, which has said `all_finite`. False where a pixel is refused, which `found`
/// is.
template <class T>
bool refuse_after(CpuExecutor& executor, bool all_finite, NonFinitePolicy policy, HostSpan<const T> pixels,
                  NonFinite& found) {
  if (all_finite || policy != NonFinitePolicy::kRefuse) return true;
  treat_non_finite<CpuExecutor, T>(executor, policy, pixels, found);
  return !found.found();
}

}  // namespace cumulus::server
