#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/float16.h"
#include "kernels/core/host_device.h"
#include "kernels/core/views.h"

// Elements that are NaN or infinite, which spoil whatever is summed with them. T is float, Float16 or double.

namespace cumulus {

/// The first element that is not finite, if any, in one word: the least such word is that of the first.
struct NonFinite {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  enum Kind : std::uint32_t { kNan, kInfinity, kMinusInfinity };

  std::uint64_t word = kNone;

  CUMULUS_HOST_DEVICE static constexpr std::uint64_t word_of(std::int64_t element, Kind kind) {
    return static_cast<std::uint64_t>(element) << 2 | kind;
  }
  bool found() const { return word != kNone; }
  std::int64_t element() const { return static_cast<std::int64_t>(word >> 2); }
  double value() const {
    constexpr double kValues[] = {std::numeric_limits<double>::quiet_NaN(),
                                  std::numeric_limits<double>::infinity(),
                                  -std::numeric_limits<double>::infinity()};
    return kValues[word & 3];
  }
};

/// Whether all of `count` elements are, on this thread.
template <class T>
bool all_finite(const T* elements, std::int64_t count);

/// Sets `found`. On the GPU it lies in pinned memory, and is set when the stream has come so far.
template <class T>
void find_non_finite(CpuExecutor& executor, HostSpan<const T> elements, NonFinite& found);
template <class T>
void find_non_finite(CudaExecutor& executor, DeviceSpan<const T> elements, NonFinite& found);

/// `elements` with NaN as 0 and infinities as the largest finite magnitude among them, but at least
/// 65504: a copy in scratch memory, or, where all of them are finite and that is known at once,
/// themselves.
template <class T>
HostSpan<const T> clamp_non_finite(CpuExecutor& executor, HostSpan<const T> elements);
template <class T>
DeviceSpan<const T> clamp_non_finite(CudaExecutor& executor, DeviceSpan<const T> elements);
template <class T>
std::size_t clamp_non_finite_scratch_bytes(std::size_t count) {
  return ScratchSize().add<T>(count).template add<std::uint64_t>(1).bytes();
}

namespace non_finite {

/// As integers, whose order is that of the magnitudes.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;

template <class T>
CUMULUS_HOST_DEVICE constexpr Bits<T> sign_bit() {
  return static_cast<Bits<T>>(Bits<T>{1} << (sizeof(T) * 8 - 1));
}
/// Of infinity: an exponent of ones.
template <class T>
CUMULUS_HOST_DEVICE constexpr Bits<T> infinity_bits() {
  if constexpr (sizeof(T) == 8) return 0x7FF0000000000000u;
  if constexpr (sizeof(T) == 4) return 0x7F800000u;
  return 0x7C00u;
}
/// Of 65504, half floats' largest number.
template <class T>
CUMULUS_HOST_DEVICE constexpr Bits<T> largest_half_bits() {
  if constexpr (sizeof(T) == 8) return 0x40EFFC0000000000u;
  if constexpr (sizeof(T) == 4) return 0x477FE000u;
  return 0x7BFFu;
}

template <class T>
CUMULUS_HOST_DEVICE constexpr Bits<T> magnitude(Bits<T> bits) {
  return static_cast<Bits<T>>(bits & static_cast<Bits<T>>(~sign_bit<T>()));
}
template <class T>
CUMULUS_HOST_DEVICE constexpr bool is_finite(Bits<T> bits) {
  return magnitude<T>(bits) < infinity_bits<T>();
}
template <class T>
CUMULUS_HOST_DEVICE constexpr NonFinite::Kind kind_of(Bits<T> bits) {
  if (magnitude<T>(bits) > infinity_bits<T>()) return NonFinite::kNan;
  return bits == infinity_bits<T>() ? NonFinite::kInfinity : NonFinite::kMinusInfinity;
}
/// `largest`: the magnitude that an infinity becomes.
template <class T>
CUMULUS_HOST_DEVICE constexpr Bits<T> clamped(Bits<T> bits, Bits<T> largest) {
  if (is_finite<T>(bits)) return bits;
  if (magnitude<T>(bits) > infinity_bits<T>()) return 0;
  return static_cast<Bits<T>>((bits & sign_bit<T>()) | largest);
}

}  // namespace non_finite
}  // namespace cumulus
