#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace cumulus {

/// A barrier in shared memory that threads arrive at and others wait for, of one use after the other.
class SharedBarrier {
 public:
  /// A use ends with so many arrivals.
  __device__ void init(int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  __device__ void arrive() {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address()) : "memory");
  }
  /// For the end of use number `use`.
  __device__ void wait(std::uint32_t use) {
    std::uint32_t over = 0;
    while (over == 0) {
      asm volatile(
          "{ .reg .pred over; mbarrier.try_wait.parity.shared.b64 over, [%1], %2; selp.u32 %0, 1, 0, over; }"
          : "=r"(over)
          : "r"(address()), "r"(use % 2)
          : "memory");
    }
  }

 private:
  __device__ std::uint32_t address() const {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(&state_));
  }

  std::uint64_t state_;
};

}  // namespace cumulus
