#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/core/float16.h"

// Image elements on the device. Their type is a value, not a template's argument: loads and stores branch on
// it, alike in all threads, and the filters are compiled once.

namespace cumulus::recursive_filter {

enum class ElementKind { kHalf, kFloat, kDouble };

template <class T>
constexpr ElementKind kind_of() {
  return std::is_same_v<T, double>  ? ElementKind::kDouble
         : std::is_same_v<T, float> ? ElementKind::kFloat
                                    : ElementKind::kHalf;
}

/// Elements of any kind, `Byte` const where they are only read.
template <class Byte>
struct Elements {
  Byte* first;
  ElementKind kind;

  template <class T>
  __device__ auto as() const {
    return reinterpret_cast<std::conditional_t<std::is_const_v<Byte>, const T, T>*>(first);
  }
  template <class Real>
  __device__ Real load(std::int64_t at) const {
    if (kind == ElementKind::kFloat) return static_cast<Real>(as<float>()[at]);
    if (kind == ElementKind::kDouble) return static_cast<Real>(as<double>()[at]);
    return static_cast<Real>(__half2float(as<__half>()[at]));
  }
  template <class Real>
  __device__ void store(std::int64_t at, Real value) const {
    if (kind == ElementKind::kFloat) {
      as<float>()[at] = static_cast<float>(value);
    } else if (kind == ElementKind::kDouble) {
      as<double>()[at] = static_cast<double>(value);
    } else {
      as<__half>()[at] = __float2half_rn(static_cast<float>(value));
    }
  }
};
using SourceElements = Elements<const std::byte>;
using TargetElements = Elements<std::byte>;

template <class T>
SourceElements source_elements(const T* first) {
  return {reinterpret_cast<const std::byte*>(first), kind_of<T>()};
}
template <class T>
TargetElements target_elements(T* first) {
  return {reinterpret_cast<std::byte*>(first), kind_of<T>()};
}
__host__ __device__ inline SourceElements read_only(const TargetElements& elements) {
  return {elements.first, elements.kind};
}

}  // namespace cumulus::recursive_filter
