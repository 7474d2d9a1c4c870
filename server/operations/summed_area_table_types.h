#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "cumulus/v1/array.pb.h"
#include "kernels/core/float16.h"

// The element types of summed-area tables, between their names in a request and their types in the kernels.

namespace cumulus::server::ops {

/// What images of one element type are summed in.
struct TableType {
  v1::ElementType image;
  v1::ElementType usual;  // the default
  v1::ElementType other;  // the other one, or `usual`
  v1::ElementType wide;   // the one of 64 bits
  std::uint64_t largest;  // pixel, in magnitude; 0: floats, which do not overflow
  bool squares;           // squares can be summed too
};

inline constexpr std::array<TableType, 7> kTableTypes = {{
    {v1::UINT8, v1::UINT32, v1::UINT64, v1::UINT64, 255, true},
    {v1::UINT16, v1::UINT64, v1::UINT32, v1::UINT64, 65535, true},
    {v1::UINT32, v1::UINT64, v1::UINT64, v1::UINT64, 4294967295, false},
    {v1::INT32, v1::INT64, v1::INT64, v1::INT64, 2147483648, false},
    {v1::FLOAT16, v1::FLOAT64, v1::FLOAT32, v1::FLOAT64, 0, true},
    {v1::FLOAT32, v1::FLOAT64, v1::FLOAT32, v1::FLOAT64, 0, true},
    {v1::FLOAT64, v1::FLOAT64, v1::FLOAT64, v1::FLOAT64, 0, true},
}};
inline constexpr std::initializer_list<v1::ElementType> kTableInputs = {
    v1::UINT8, v1::UINT16, v1::UINT32, v1::INT32, v1::FLOAT16, v1::FLOAT32, v1::FLOAT64};
inline constexpr std::initializer_list<v1::ElementType> kTableSums = {v1::UINT32, v1::UINT64, v1::INT64,
                                                                      v1::FLOAT32, v1::FLOAT64};

/// `image` is one of kTableInputs.
inline const TableType& table_type(v1::ElementType image) {
  std::size_t i = 0;
  while (kTableTypes[i].image != image) ++i;
  return kTableTypes[i];
}

template <class T>
inline constexpr T* kNullOf = nullptr;

/// Calls body(null pointer) of an input's type, one of kTableInputs.
template <class Body>
auto with_input_type(v1::ElementType image, const Body& body) {
  switch (image) {
    case v1::UINT8:
      return body(kNullOf<std::uint8_t>);
    case v1::UINT16:
      return body(kNullOf<std::uint16_t>);
    case v1::UINT32:
      return body(kNullOf<std::uint32_t>);
    case v1::INT32:
      return body(kNullOf<std::int32_t>);
    case v1::FLOAT16:
      return body(kNullOf<Float16>);
    case v1::FLOAT64:
      return body(kNullOf<double>);
    default:
      return body(kNullOf<float>);
  }
}

/// Likewise of a table's type, one of kTableSums.
template <class Body>
auto with_sum_type(v1::ElementType sums, const Body& body) {
  switch (sums) {
    case v1::UINT32:
      return body(kNullOf<std::uint32_t>);
    case v1::UINT64:
      return body(kNullOf<std::uint64_t>);
    case v1::INT64:
      return body(kNullOf<std::int64_t>);
    case v1::FLOAT32:
      return body(kNullOf<float>);
    default:
      return body(kNullOf<double>);
  }
}

/// Calls body(null pointer, null pointer) of the types of an image and its sums, a pair of kTableTypes.
template <class Body>
auto with_table_types(v1::ElementType image, v1::ElementType sums, const Body& body) {
  if (image == v1::UINT8 && sums == v1::UINT32) return body(kNullOf<std::uint8_t>, kNullOf<std::uint32_t>);
  if (image == v1::UINT8) return body(kNullOf<std::uint8_t>, kNullOf<std::uint64_t>);
  if (image == v1::UINT16 && sums == v1::UINT32) return body(kNullOf<std::uint16_t>, kNullOf<std::uint32_t>);
  if (image == v1::UINT16) return body(kNullOf<std::uint16_t>, kNullOf<std::uint64_t>);
  if (image == v1::UINT32) return body(kNullOf<std::uint32_t>, kNullOf<std::uint64_t>);
  if (image == v1::INT32) return body(kNullOf<std::int32_t>, kNullOf<std::int64_t>);
  if (image == v1::FLOAT16 && sums == v1::FLOAT32) return body(kNullOf<Float16>, kNullOf<float>);
  if (image == v1::FLOAT16) return body(kNullOf<Float16>, kNullOf<double>);
  if (image == v1::FLOAT64) return body(kNullOf<double>, kNullOf<double>);
  if (sums == v1::FLOAT32) return body(kNullOf<float>, kNullOf<float>);
  return body(kNullOf<float>, kNullOf<double>);
}

}  // namespace cumulus::server::ops
