#include "kernels/recursive_filter/math/matrix.h"

#include <cmath>
#include <cstdint>
#include <utility>

namespace cumulus::recursive_filter {

StateMatrix StateMatrix::identity(int order) {
  StateMatrix one;
  one.order = order;
  for (int i = 0; i < order; ++i) one.at(i, i) = 1;
  return one;
}

StateMatrix operator*(const StateMatrix& a, const StateMatrix& b) {
  StateMatrix product;
  product.order = a.order;
  for (int i = 0; i < a.order; ++i) {
    for (int k = 0; k < a.order; ++k) {
      for (int j = 0; j < a.order; ++j) product.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return product;
}

StateMatrix operator+(const StateMatrix& a, const StateMatrix& b) {
  StateMatrix sum = a;
  for (int i = 0; i < a.order; ++i) {
    for (int j = 0; j < a.order; ++j) sum.at(i, j) += b.at(i, j);
  }
  return sum;
}

StateMatrix operator-(const StateMatrix& a, const StateMatrix& b) {
  StateMatrix difference = a;
  for (int i = 0; i < a.order; ++i) {
    for (int j = 0; j < a.order; ++j) difference.at(i, j) -= b.at(i, j);
  }
  return difference;
}

StateVector operator*(const StateMatrix& a, const StateVector& v) {
  StateVector product{};
  for (int i = 0; i < a.order; ++i) {
    for (int j = 0; j < a.order; ++j) {
      product[static_cast<std::size_t>(i)] += a.at(i, j) * v[static_cast<std::size_t>(j)];
    }
  }
  return product;
}

StateVector operator*(const StateVector& row, const StateMatrix& a) {
  StateVector product{};
  for (int i = 0; i < a.order; ++i) {
    for (int j = 0; j < a.order; ++j) {
      product[static_cast<std::size_t>(j)] += row[static_cast<std::size_t>(i)] * a.at(i, j);
    }
  }
  return product;
}

StateMatrix power(StateMatrix base, std::int64_t exponent) {
  StateMatrix result = StateMatrix::identity(base.order);
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = result * base;
    base = base * base;
  }
  return result;
}

StateMatrix inverse(StateMatrix matrix) {
  StateMatrix result = StateMatrix::identity(matrix.order);
  for (int column = 0; column < matrix.order; ++column) {
    int pivot = column;
    for (int row = column + 1; row < matrix.order; ++row) {
      if (std::abs(matrix.at(row, column)) > std::abs(matrix.at(pivot, column))) pivot = row;
    }
    std::swap(matrix.rows[static_cast<std::size_t>(column)], matrix.rows[static_cast<std::size_t>(pivot)]);
    std::swap(result.rows[static_cast<std::size_t>(column)], result.rows[static_cast<std::size_t>(pivot)]);
    const long double scale = 1 / matrix.at(column, column);
    for (int j = 0; j < matrix.order; ++j) {
      matrix.at(column, j) *= scale;
      result.at(column, j) *= scale;
    }
    for (int row = 0; row < matrix.order; ++row) {
      if (row == column) continue;
      const long double factor = matrix.at(row, column);
      for (int j = 0; j < matrix.order; ++j) {
        matrix.at(row, j) -= factor * matrix.at(column, j);
        result.at(row, j) -= factor * result.at(column, j);
      }
    }
  }
  return result;
}

}  // namespace cumulus::recursive_filter
