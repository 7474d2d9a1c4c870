#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/recursive_filter/design.h"

namespace cumulus::recursive_filter {

using StateVector = std::array<long double, kMaxFilterOrder>;

/// A square matrix; what lies beyond its order is not looked at.
struct StateMatrix {
  int order = 0;
  std::array<StateVector, kMaxFilterOrder> rows{};

  static StateMatrix identity(int order);
  long double& at(int row, int column) {
    return rows[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
  }
  long double at(int row, int column) const {
    return rows[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
  }
};

StateMatrix operator*(const StateMatrix& a, const StateMatrix& b);
StateMatrix operator+(const StateMatrix& a, const StateMatrix& b);
StateMatrix operator-(const StateMatrix& a, const StateMatrix& b);
StateVector operator*(const StateMatrix& a, const StateVector& v);
StateVector operator*(const StateVector& row, const StateMatrix& a);
StateMatrix power(StateMatrix base, std::int64_t exponent);
StateMatrix inverse(StateMatrix matrix);

}  // namespace cumulus::recursive_filter
