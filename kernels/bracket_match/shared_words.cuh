#pragma once

#include <cstdint>

// Shared memory by its own 32-bit addresses, for the one loop that is bound by its instructions: left to
// itself the compiler works out generic addresses anew for each access, and branches around an addition.

namespace cumulus::bracket_match {

using SharedAddress = std::uint32_t;

inline __device__ SharedAddress shared_address(const void* memory) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(memory));
}
inline __device__ std::uint32_t load_shared_16(SharedAddress from) {
  std::uint16_t value;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(from));
  return value;
}
inline __device__ void store_shared_16(SharedAddress to, std::uint32_t value) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(static_cast<std::uint16_t>(value)));
}
/// value += addend, by one instruction with a predicate.
inline __device__ void add_if(bool wanted, std::uint32_t& value, std::int32_t addend) {
  asm("{ .reg .pred wanted; setp.ne.u32 wanted, %1, 0; @wanted add.u32 %0, %0, %2; }"
      : "+r"(value)
      : "r"(static_cast<std::uint32_t>(wanted)), "r"(addend));
}
/// Between the accesses above and others to the same memory.
inline __device__ void finish_shared_accesses() { asm volatile("" ::: "memory"); }

}  // namespace cumulus::bracket_match
