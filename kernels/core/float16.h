#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

#include "kernels/core/host_device.h"

namespace cumulus {

/// An IEEE 754 binary16 number, as it lies in memory. Read only: it becomes a float, exactly.
struct Float16 {
  std::uint16_t bits;

  CUMULUS_HOST_DEVICE operator float() const {  // NOLINT(google-explicit-constructor): a number like others
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(bits));
#else
    return widen(bits);
#endif
  }

 private:
  static float widen(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16;
    const std::uint32_t magnitude = half & 0x7FFFu;
    if (magnitude < 0x0400u) {  // zero or subnormal: a multiple of 2^-24
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return sign != 0 ? -value : value;
    }
    // Infinity and NaN keep an exponent of all ones.
    const std::uint32_t bias = magnitude >= 0x7C00u ? 0x38000000u + 0x38000000u : 0x38000000u;
    const std::uint32_t wide = sign | ((magnitude << 13) + bias);
    float value = 0;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
};
static_assert(sizeof(Float16) == 2);

}  // namespace cumulus
