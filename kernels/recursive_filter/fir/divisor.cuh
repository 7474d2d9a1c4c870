#pragma once

#include <cuda_runtime.h>

namespace cumulus::recursive_filter {

/// Division by a number that all threads share: a whole one takes twenty instructions. Of numbers that times
/// the divisor are below 2^31.
struct FirDivisor {
  int value = 1;
  unsigned factor = kOne;

  FirDivisor() = default;
  explicit FirDivisor(int by)
      : value(by), factor((kOne + static_cast<unsigned>(by) - 1) / static_cast<unsigned>(by)) {}

  /// Replaces `number` by the remainder.
  __device__ __forceinline__ int divide(int& number) const {
    const auto quotient = static_cast<int>(__umulhi(2 * static_cast<unsigned>(number), factor));
    number -= quotient * value;
    return quotient;
  }

 private:
  static constexpr unsigned kOne = 1U << 31;
};

}  // namespace cumulus::recursive_filter
