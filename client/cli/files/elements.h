#pragma once

#include <cstddef>
#include <cstdint>

#include "cli/files/half_float.h"
#include "cumulus/array.h"

namespace cumulus::cli {

/// How an element of type T is told apart from the others in memory: half floats have no C++ type.
struct Half {
  std::uint16_t bits;
  explicit operator float() const { return float_from_half(bits); }
  explicit operator double() const { return float_from_half(bits); }
};

/// Calls body(pointer to the first element), of the array's own type.
template <class Body>
auto with_elements(const Array& array, const Body& body) {
  const std::byte* at = array.bytes().data();
  switch (array.type()) {
    case ElementType::kUint8:
      return body(reinterpret_cast<const std::uint8_t*>(at));
    case ElementType::kUint16:
      return body(reinterpret_cast<const std::uint16_t*>(at));
    case ElementType::kUint32:
      return body(reinterpret_cast<const std::uint32_t*>(at));
    case ElementType::kUint64:
      return body(reinterpret_cast<const std::uint64_t*>(at));
    case ElementType::kInt32:
      return body(reinterpret_cast<const std::int32_t*>(at));
    case ElementType::kInt64:
      return body(reinterpret_cast<const std::int64_t*>(at));
    case ElementType::kFloat16:
      return body(reinterpret_cast<const Half*>(at));
    case ElementType::kFloat64:
      return body(reinterpret_cast<const double*>(at));
    case ElementType::kFloat32:
      break;
  }
  return body(reinterpret_cast<const float*>(at));
}

}  // namespace cumulus::cli
