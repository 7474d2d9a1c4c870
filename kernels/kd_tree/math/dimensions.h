#pragma once

#include <type_traits>

#include "kernels/kd_tree/shape.h"

namespace cumulus::kd_tree {

/// A number of dimensions that the compiler knows (D > 0), or that is known when the code runs (D = 0).
template <int D>
class Dimensions {
 public:
  /// Of any point.
  static constexpr int kMax = D > 0 ? D : kMaxKdTreeDimensions;

  CUMULUS_HOST_DEVICE constexpr explicit Dimensions(int count) : count_(count) {}
  CUMULUS_HOST_DEVICE constexpr int count() const { return D > 0 ? D : count_; }

 private:
  int count_;
};

/// Calls body(Dimensions<D>): 2, 3 and 4 dimensions have code of their own, the others share one.
template <class Body>
void with_dimensions(int count, const Body& body) {
  switch (count) {
    case 2:
      return body(Dimensions<2>(count));
    case 3:
      return body(Dimensions<3>(count));
    case 4:
      return body(Dimensions<4>(count));
    default:
      return body(Dimensions<0>(count));
  }
}

}  // namespace cumulus::kd_tree
