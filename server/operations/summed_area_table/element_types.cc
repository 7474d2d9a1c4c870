#include "server/operations/summed_area_table/element_types.h"

#include <type_traits>

namespace cumulus::server::ops {

std::vector<v1::ElementType> image_types() {
  std::vector<v1::ElementType> types;
  summed_area_table::for_each_image_type([&]<class Image>() { types.push_back(kWireType<Image>); });
  return types;
}

std::vector<v1::ElementType> sum_types() {
  std::vector<v1::ElementType> types;
  summed_area_table::for_each_sum_type([&]<class Sum>() { types.push_back(kWireType<Sum>); });
  return types;
}

std::vector<v1::ElementType> sum_types_of(v1::ElementType image, bool squares) {
  std::vector<v1::ElementType> types;
  summed_area_table::for_each_element_pair([&]<class Image, class Sum>() {
    if (kWireType<Image> != image || (squares && !kSumsSquares<Image, Sum>)) return;
    // 32 bits hold the sums of 16 million bytes, enough for most images of them.
    const bool is_default = sizeof(Sum) == (std::is_same_v<Image, std::uint8_t> ? 4 : 8);
    types.insert(is_default ? types.begin() : types.end(), kWireType<Sum>);
  });
  return types;
}

}  // namespace cumulus::server::ops
