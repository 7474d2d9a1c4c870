#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/core/float16.h"

// The one list of the (pixel, sum) types that tables are built for, and what follows from it. In groups, so
// that explicit instantiations can be spread over files:
//
//   image     sums
//   u8, u16   u32, u64   exact modulo 2^32 or 2^64: differences are exact wherever the
//   u32       u64        rectangle's own sum fits
//   i32       i64        (likewise)
//   f16, f32  f32, f64   |error| of an element is at most (height + width) * u * (the sum of |image| over
//   f64       f64        its rectangle), to first order; u = 2^-24 for f32, 2^-53 for f64
#define CUMULUS_SUMMED_AREA_TABLE_BYTE_PAIRS(apply) \
  apply(std::uint8_t, std::uint32_t);               \
  apply(std::uint8_t, std::uint64_t)
#define CUMULUS_SUMMED_AREA_TABLE_SHORT_PAIRS(apply) \
  apply(std::uint16_t, std::uint32_t);               \
  apply(std::uint16_t, std::uint64_t)
#define CUMULUS_SUMMED_AREA_TABLE_HALF_PAIRS(apply) \
  apply(Float16, float);                            \
  apply(Float16, double)
#define CUMULUS_SUMMED_AREA_TABLE_FLOAT_PAIRS(apply) \
  apply(float, float);                               \
  apply(float, double)
#define CUMULUS_SUMMED_AREA_TABLE_OTHER_PAIRS(apply) \
  apply(std::uint32_t, std::uint64_t);               \
  apply(std::int32_t, std::int64_t);                 \
  apply(double, double)
#define CUMULUS_SUMMED_AREA_TABLE_PAIRS(apply)  \
  CUMULUS_SUMMED_AREA_TABLE_BYTE_PAIRS(apply);  \
  CUMULUS_SUMMED_AREA_TABLE_SHORT_PAIRS(apply); \
  CUMULUS_SUMMED_AREA_TABLE_HALF_PAIRS(apply);  \
  CUMULUS_SUMMED_AREA_TABLE_FLOAT_PAIRS(apply); \
  CUMULUS_SUMMED_AREA_TABLE_OTHER_PAIRS(apply)

// Each type of image of these pairs, and each type of sums, once.
#define CUMULUS_SUMMED_AREA_TABLE_IMAGES(apply) \
  apply(std::uint8_t);                          \
  apply(std::uint16_t);                         \
  apply(std::uint32_t);                         \
  apply(std::int32_t);                          \
  apply(Float16);                               \
  apply(float);                                 \
  apply(double)
#define CUMULUS_SUMMED_AREA_TABLE_SUMS(apply) \
  apply(std::uint32_t);                       \
  apply(std::uint64_t);                       \
  apply(std::int64_t);                        \
  apply(float);                               \
  apply(double)

namespace cumulus {

/// True where tables are built for this pair.
template <class Input, class Sum>
inline constexpr bool kSummedAs = false;
#define CUMULUS_SUMMED_AS(Input, Sum) \
  template <>                         \
  inline constexpr bool kSummedAs<Input, Sum> = true
CUMULUS_SUMMED_AREA_TABLE_PAIRS(CUMULUS_SUMMED_AS);
#undef CUMULUS_SUMMED_AS

namespace summed_area_table {

/// The types of elements of images and tables by name, for what is decided at run time.
enum class ElementType {
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt32,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat64,
};

constexpr std::size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return 1;
    case ElementType::kUint16:
    case ElementType::kFloat16:
      return 2;
    case ElementType::kUint32:
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return 4;
    default:
      return 8;
  }
}

template <class T>
inline constexpr ElementType kElementType = ElementType::kFloat64;
template <>
inline constexpr ElementType kElementType<std::uint8_t> = ElementType::kUint8;
template <>
inline constexpr ElementType kElementType<std::uint16_t> = ElementType::kUint16;
template <>
inline constexpr ElementType kElementType<std::uint32_t> = ElementType::kUint32;
template <>
inline constexpr ElementType kElementType<std::uint64_t> = ElementType::kUint64;
template <>
inline constexpr ElementType kElementType<std::int32_t> = ElementType::kInt32;
template <>
inline constexpr ElementType kElementType<std::int64_t> = ElementType::kInt64;
template <>
inline constexpr ElementType kElementType<Float16> = ElementType::kFloat16;
template <>
inline constexpr ElementType kElementType<float> = ElementType::kFloat32;

struct ElementPair {
  ElementType image;
  ElementType sum;

  constexpr bool operator==(const ElementPair&) const = default;
};
template <class Input, class Sum>
inline constexpr ElementPair kElementPair = {kElementType<Input>, kElementType<Sum>};

/// True for images whose interleaved channels the GPU sums together. Of others, and where squares or offsets
/// are asked for, it sums each channel by itself, element by element.
constexpr bool summed_interleaved(ElementType image) {
  return element_bytes(image) <= 2 || image == ElementType::kFloat32;
}

}  // namespace summed_area_table

/// True where squares can be summed too: the square of a 32-bit integer leaves no room for sums in 64 bits.
template <class Input, class Sum>
inline constexpr bool kSumsSquares = kSummedAs<Input, Sum> && sizeof(Sum) == 8 &&
                                     !(std::is_integral_v<Input> && sizeof(Input) == 4);

template <class Input>
inline constexpr bool kSummedInterleaved =
    summed_area_table::summed_interleaved(summed_area_table::kElementType<Input>);

namespace summed_area_table {

/// Calls body.operator()<Input, Sum>() for each pair.
template <class Body>
void for_each_element_pair(const Body& body) {
#define CUMULUS_CALL(Input, Sum) body.template operator()<Input, Sum>()
  CUMULUS_SUMMED_AREA_TABLE_PAIRS(CUMULUS_CALL);
#undef CUMULUS_CALL
}
/// Likewise for each type of image, and of sums.
template <class Body>
void for_each_image_type(const Body& body) {
#define CUMULUS_CALL(Input) body.template operator()<Input>()
  CUMULUS_SUMMED_AREA_TABLE_IMAGES(CUMULUS_CALL);
#undef CUMULUS_CALL
}
template <class Body>
void for_each_sum_type(const Body& body) {
#define CUMULUS_CALL(Sum) body.template operator()<Sum>()
  CUMULUS_SUMMED_AREA_TABLE_SUMS(CUMULUS_CALL);
#undef CUMULUS_CALL
}

}  // namespace summed_area_table
}  // namespace cumulus
