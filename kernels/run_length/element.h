#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/run_length/check.h"

namespace cumulus::run_length {

/// An element that no machine word holds.
template <class UnitType, int N>
struct Pixel {
  using Unit = UnitType;
  static constexpr int kUnits = N;
  Unit units[N];
};

/// True for the elements that are machine words.
template <class T>
inline constexpr bool kIsWord = std::is_integral_v<T>;

/// Calls body(T{}) with the type of elements of so many bytes.
template <class Body>
void with_element(int element_bytes, const Body& body) {
  switch (element_bytes) {
    case 1:
      return body(std::uint8_t{});
    case 2:
      return body(std::uint16_t{});
    case 3:
      return body(Pixel<std::uint8_t, 3>{});
    case 4:
      return body(std::uint32_t{});
    case 6:
      return body(Pixel<std::uint16_t, 3>{});
    case 8:
      return body(std::uint64_t{});
    case 12:
      return body(Pixel<std::uint32_t, 3>{});
    case 16:
      return body(Pixel<std::uint64_t, 2>{});
    default:
      check_format({element_bytes});
  }
}

}  // namespace cumulus::run_length
