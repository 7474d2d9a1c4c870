#pragma once

#include <type_traits>

#include "kernels/kd_tree/query/search.cuh"

namespace cumulus::kd_tree {

/// Calls body(Dimensions<D>, bool constant): the number of dimensions and whether an axis closes, as the
/// compiler is to know them.
template <class T, class Body>
void with_kernels(const Search<T>& search, const Body& body) {
  if (search.parameters.periodic) return body(Dimensions<0>(search.shape.dimensions), std::true_type());
  with_dimensions(search.shape.dimensions, [&](auto dimensions) { body(dimensions, std::false_type()); });
}

}  // namespace cumulus::kd_tree
