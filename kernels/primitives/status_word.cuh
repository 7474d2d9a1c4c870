#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// Words of 16 bytes that one block publishes while others wait for them: written and read whole, past the
// caches of a multiprocessor.

namespace cumulus {

__device__ inline void store_relaxed(uint4* to, const uint4& word) {
  asm volatile(
      "{\n\t.reg .b64 low, high;\n\t.reg .b128 whole;\n\t"
      "mov.b64 low, {%1, %2};\n\tmov.b64 high, {%3, %4};\n\tmov.b128 whole, {low, high};\n\t"
      "st.relaxed.gpu.global.b128 [%0], whole;\n\t}" ::"l"(to),
      "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
      : "memory");
}
__device__ inline uint4 load_relaxed(const uint4* from) {
  uint4 word;
  asm volatile(
      "{\n\t.reg .b64 low, high;\n\t.reg .b128 whole;\n\t"
      "ld.relaxed.gpu.global.b128 whole, [%4];\n\tmov.b128 {low, high}, whole;\n\t"
      "mov.b64 {%0, %1}, low;\n\tmov.b64 {%2, %3}, high;\n\t}"
      : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
      : "l"(from)
      : "memory");
  return word;
}

}  // namespace cumulus
