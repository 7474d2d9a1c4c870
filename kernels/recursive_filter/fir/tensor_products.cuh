#pragma once

#include <cuda_runtime.h>

// Products of floats on matrix units that take 11 bits (TF32): each float is a sum of two parts, and the
// product of two low parts is left out.

namespace cumulus::recursive_filter {

/// Weights of a k-step and an output block that a thread of a warp has: of the two numbers of a k-step that
/// its fragments hold, the high parts first.
struct alignas(16) TensorWeights {
  unsigned parts[4];
};

__device__ __forceinline__ void multiply_tf32(const unsigned (&a)[4], unsigned b0, unsigned b1,
                                              float (&sums)[4]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}
__device__ __forceinline__ void multiply_bf16(const unsigned (&a)[4], unsigned b0, unsigned b1,
                                              float (&sums)[4]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}
__device__ __forceinline__ void multiply_bf16(const unsigned (&a)[2], unsigned b, float (&sums)[4]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
#endif
}
/// Two numbers rounded to 8 bits.
__device__ __forceinline__ unsigned pack_bf16(float first, float second) {
  unsigned packed = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
#endif
  return packed;
}

/// The matrix units leave out what is below these bits.
inline constexpr unsigned kHighBits = 0xffffe000U;
inline constexpr unsigned kHalfOfLowest = 0x1000U;
/// Never rounded up: infinity stays the first number that is too large.
__device__ __forceinline__ unsigned high_part(float value) { return __float_as_uint(value) & kHighBits; }
__device__ __forceinline__ float low_part(float value, unsigned high) {
  return value - __uint_as_float(high);
}

/// Floats by floats, to 2^-21 of each product: three products in TF32. The sums have to be rounded.
struct ExactProducts {
  static constexpr bool kRounds = true;
  struct Fragment {
    unsigned high[4], low[4];
  };
  __device__ static TensorWeights weights(const float (&high)[2], const float (&low)[2]) {
    return {{__float_as_uint(high[0]), __float_as_uint(high[1]), __float_as_uint(low[0]),
             __float_as_uint(low[1])}};
  }
  __device__ __forceinline__ static Fragment split(const float (&values)[4]) {
    Fragment fragment;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      fragment.high[i] = high_part(values[i]);
      fragment.low[i] = __float_as_uint(low_part(values[i], fragment.high[i])) + kHalfOfLowest;
    }
    return fragment;
  }
  __device__ __forceinline__ static void add(const Fragment& data, const TensorWeights& weights,
                                             float (&sums)[4]) {
    multiply_tf32(data.high, weights.parts[2], weights.parts[3], sums);
    multiply_tf32(data.low, weights.parts[0], weights.parts[1], sums);
    multiply_tf32(data.high, weights.parts[0], weights.parts[1], sums);
  }
};

/// To 2^-18 of each product, for results that are rounded to halves: low parts in BF16, both products of a
/// k-step at once.
struct NearProducts {
  static constexpr bool kRounds = false;
  struct Fragment {
    unsigned high[4], packed[4];
  };
  __device__ static TensorWeights weights(const float (&high)[2], const float (&low)[2]) {
    return {{__float_as_uint(high[0]), __float_as_uint(high[1]), pack_bf16(low[0], low[1]),
             pack_bf16(high[0], high[1])}};
  }
  __device__ __forceinline__ static Fragment split(const float (&values)[4]) {
    Fragment fragment;
    float low[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      fragment.high[i] = high_part(values[i]);
      low[i] = low_part(values[i], fragment.high[i]);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      fragment.packed[i] = pack_bf16(values[i], values[i + 2]);
      fragment.packed[i + 2] = pack_bf16(low[i], low[i + 2]);
    }
    return fragment;
  }
  __device__ __forceinline__ static void add(const Fragment& data, const TensorWeights& weights,
                                             float (&sums)[4]) {
    multiply_bf16(data.packed, weights.parts[2], weights.parts[3], sums);
    multiply_tf32(data.high, weights.parts[0], weights.parts[1], sums);
  }
};

/// The same of halves, which have no low parts.
struct HalfProducts {
  static constexpr bool kRounds = false;
  struct Fragment {
    unsigned high[4], packed[2];
  };
  __device__ static TensorWeights weights(const float (&high)[2], const float (&low)[2]) {
    return NearProducts::weights(high, low);
  }
  __device__ __forceinline__ static Fragment split(const float (&values)[4]) {
    return {{__float_as_uint(values[0]), __float_as_uint(values[1]), __float_as_uint(values[2]),
             __float_as_uint(values[3])},
            {pack_bf16(values[0], values[2]), pack_bf16(values[1], values[3])}};
  }
  __device__ __forceinline__ static void add(const Fragment& data, const TensorWeights& weights,
                                             float (&sums)[4]) {
    multiply_bf16(data.packed, weights.parts[2], sums);
    multiply_tf32(data.high, weights.parts[0], weights.parts[1], sums);
  }
};

}  // namespace cumulus::recursive_filter
