#pragma once

#include <cstdint>
#include <vector>

#include "cumulus/v1/array.pb.h"
#include "kernels/summed_area_table/element_pairs.h"

// The types of pixels and of sums, between the wire's names and the kernels' list of pairs.

namespace cumulus::server::ops {

/// The wire's name of a type.
template <class T>
inline constexpr v1::ElementType kWireType = v1::ELEMENT_TYPE_UNSPECIFIED;
template <>
inline constexpr v1::ElementType kWireType<std::uint8_t> = v1::UINT8;
template <>
inline constexpr v1::ElementType kWireType<std::uint16_t> = v1::UINT16;
template <>
inline constexpr v1::ElementType kWireType<std::uint32_t> = v1::UINT32;
template <>
inline constexpr v1::ElementType kWireType<std::uint64_t> = v1::UINT64;
template <>
inline constexpr v1::ElementType kWireType<std::int32_t> = v1::INT32;
template <>
inline constexpr v1::ElementType kWireType<std::int64_t> = v1::INT64;
template <>
inline constexpr v1::ElementType kWireType<Float16> = v1::FLOAT16;
template <>
inline constexpr v1::ElementType kWireType<float> = v1::FLOAT32;
template <>
inline constexpr v1::ElementType kWireType<double> = v1::FLOAT64;

/// The types that pixels have, and those that sums have.
std::vector<v1::ElementType> image_types();
std::vector<v1::ElementType> sum_types();

/// The types that pixels of type `image` are summed in, and with `squares` their squares too; the default
/// first.
std::vector<v1::ElementType> sum_types_of(v1::ElementType image, bool squares);

/// Calls body.operator()<Image>() of the type that `image` names, one of image_types().
template <class Body>
void with_image_type(v1::ElementType image, const Body& body) {
  summed_area_table::for_each_image_type([&]<class Image>() {
    if (kWireType<Image> == image) body.template operator()<Image>();
  });
}

/// Likewise of a type of sums.
template <class Body>
void with_sum_type(v1::ElementType sums, const Body& body) {
  summed_area_table::for_each_sum_type([&]<class Sum>() {
    if (kWireType<Sum> == sums) body.template operator()<Sum>();
  });
}

/// Likewise body.operator()<Image, Sum>() of a pair.
template <class Body>
void with_element_pair(v1::ElementType image, v1::ElementType sums, const Body& body) {
  summed_area_table::for_each_element_pair([&]<class Image, class Sum>() {
    if (kWireType<Image> == image && kWireType<Sum> == sums) body.template operator()<Image, Sum>();
  });
}

}  // namespace cumulus::server::ops
